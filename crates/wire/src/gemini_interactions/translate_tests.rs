//! What media, responses and JSON from elsewhere become.

use throughline_model::json::{self, RawJson};
use throughline_model::{
    Arguments, Body, CallId, Content, Family, Media, MediaKind, MediaSource, Message, Outcome,
    Output, Request, Response, Role, Stop, ToolCall, ToolDef, Usage, VendorError, Wire,
};

use super::CODEC;
use crate::sse::Frame;
use crate::{Losses, assemble};

fn lost(losses: &Losses) -> Vec<String> {
    let line = |loss: &crate::Loss| format!("{} {}", loss.path, loss.kind.as_str());
    losses.as_slice().iter().map(line).collect()
}

fn call(arguments: &str) -> ToolCall {
    let id = CallId::natural("call_1").unwrap();
    ToolCall::function(id, "get_tide", arguments)
}

/// What one piece of media becomes, and how often something was noted of it.
fn said(kind: MediaKind, media_type: Option<&str>, source: MediaSource) -> (String, usize) {
    let media = Content::new(Body::Media(Media {
        kind,
        media_type: media_type.map(str::to_owned),
        source,
        name: None,
        transcript: None,
    }));
    let mut losses = Losses::default();
    let message = Message::new(Role::User, vec![media]);
    let text = CODEC.encode_messages(&[message], &mut losses);
    let text = text.strip_prefix(r#"[{"type":"user_input","content":["#);
    let text = text.and_then(|text| text.strip_suffix("]}]"));
    assert!(lost(&losses).iter().all(|line| line.ends_with(" media")));
    (text.unwrap_or_default().to_owned(), losses.as_slice().len())
}

/// A kind of media, its media type and data, what is written for it, and how many losses are noted.
type DataCase = (
    MediaKind,
    Option<&'static str>,
    &'static str,
    &'static str,
    usize,
);

fn assert_written(cases: &[DataCase]) {
    for (kind, media_type, data, wanted, noted) in cases {
        let found = said(*kind, *media_type, MediaSource::Data((*data).to_owned()));
        assert_eq!(
            found,
            ((*wanted).to_owned(), *noted),
            "{kind:?} {media_type:?}"
        );
    }
}

const OCTETS: Option<&str> = Some("application/octet-stream");

#[test]
fn the_type_of_images_and_sounds_decides_what_they_are() {
    use MediaKind::{Audio, File, Image};
    assert_written(&[
        (
            File,
            Some("audio/wav"),
            "AA==",
            r#"{"type":"audio","mime_type":"audio/wav","data":"AA=="}"#,
            0,
        ),
        (
            Image,
            Some("application/pdf"),
            "AA==",
            r#"{"type":"document","mime_type":"application/pdf","data":"AA=="}"#,
            0,
        ),
        (
            Image,
            Some("IMAGE/JPG; q=1"),
            "AA==",
            r#"{"type":"image","mime_type":"image/jpeg","data":"AA=="}"#,
            0,
        ),
        (
            Image,
            OCTETS,
            "AA==",
            r#"{"type":"image","mime_type":"image/png","data":"AA=="}"#,
            1,
        ),
        (
            Image,
            OCTETS,
            "/9j/AA==",
            r#"{"type":"image","mime_type":"image/jpeg","data":"/9j/AA=="}"#,
            0,
        ),
        (
            File,
            None,
            "JVBERi0x",
            r#"{"type":"document","mime_type":"application/pdf","data":"JVBERi0x"}"#,
            0,
        ),
        (
            Image,
            Some("image/svg+xml"),
            "AA==",
            r#"{"type":"image","mime_type":"image/png","data":"AA=="}"#,
            1,
        ),
        (
            Audio,
            None,
            "AA==",
            r#"{"type":"audio","mime_type":"audio/wav","data":"AA=="}"#,
            1,
        ),
    ]);
}

#[test]
fn the_type_of_videos_and_documents_decides_what_they_are() {
    use MediaKind::{File, Video};
    assert_written(&[
        (
            Video,
            Some("video/ogg"),
            "AA==",
            r#"{"type":"video","mime_type":"video/mp4","data":"AA=="}"#,
            1,
        ),
        (
            File,
            Some("video/ogg"),
            "AA==",
            r#"{"type":"video","mime_type":"video/mp4","data":"AA=="}"#,
            1,
        ),
        (
            File,
            Some("application/zip"),
            "AA==",
            r#"{"type":"document","data":"AA=="}"#,
            1,
        ),
        (
            File,
            None,
            "AA==",
            r#"{"type":"document","data":"AA=="}"#,
            1,
        ),
        (
            File,
            Some("text/csv"),
            "YSxi",
            r#"{"type":"document","mime_type":"text/csv","data":"YSxi"}"#,
            0,
        ),
        (
            File,
            Some("text/markdown"),
            "IyBh",
            r##"{"type":"text","text":"# a"}"##,
            1,
        ),
        (
            File,
            Some("application/json"),
            "e30=",
            r#"{"type":"text","text":"{}"}"#,
            1,
        ),
        (File, Some("text/plain"), "", "", 1),
        (
            File,
            Some("text/plain"),
            "/w==",
            r#"{"type":"document","data":"/w=="}"#,
            1,
        ),
    ]);
}

#[test]
fn the_type_of_media_at_an_address_decides_what_they_are() {
    use MediaKind::{File, Image};
    for (kind, media_type, wanted, noted) in [
        (
            Image,
            None,
            r#"{"type":"image","uri":"https://a.example/x"}"#,
            0,
        ),
        (
            Image,
            OCTETS,
            r#"{"type":"image","uri":"https://a.example/x"}"#,
            0,
        ),
        (
            File,
            Some("video/quicktime"),
            r#"{"type":"video","mime_type":"video/mov","uri":"https://a.example/x"}"#,
            0,
        ),
        (
            File,
            Some("text/plain"),
            r#"{"type":"document","uri":"https://a.example/x"}"#,
            1,
        ),
    ] {
        let source = MediaSource::Uri("https://a.example/x".to_owned());
        let found = said(kind, media_type, source);
        assert_eq!(found, (wanted.to_owned(), noted), "{kind:?} {media_type:?}");
    }
}

#[test]
fn media_of_our_own_keep_any_type() {
    let array = r#"[{"type":"user_input","content":[{"type":"document","mime_type":"audio/wav","data":"AA=="},{"type":"image","mime_type":"application/octet-stream","uri":"u"}]}]"#;
    let value = json::parse(array).unwrap();
    let items = value.as_array().unwrap();
    let messages = CODEC.decode_messages(items).unwrap();
    let mut losses = Losses::default();
    assert_eq!(CODEC.encode_messages(&messages, &mut losses), array);
    assert!(losses.is_empty());
}

fn failed(contents: Vec<Content>) -> Response {
    let messages = match contents.is_empty() {
        true => Vec::new(),
        false => vec![Message::new(Role::Assistant, contents)],
    };
    Response {
        id: None,
        model: None,
        messages,
        usage: None,
        stop: Stop::Failed,
        error: Some(VendorError {
            wire: Wire::OpenAiResponses,
            message: "fell over".to_owned(),
            kind: Some("overloaded_error".to_owned()),
            code: None,
            param: None,
            retry_after_ms: None,
            body: None,
        }),
        vendor: None,
        service: None,
    }
}

fn data(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.data.as_str()).collect()
}

const ERROR: &str =
    r#"{"error":{"code":"overloaded_error","message":"fell over"},"event_type":"error"}"#;

#[test]
fn errors_stand_in_the_whole_interaction_and_end_its_stream() {
    let mut losses = Losses::default();
    assert_eq!(
        CODEC.encode_response(&failed(Vec::new()), &mut losses),
        r#"{"id":"interaction_0","status":"failed","steps":[],"errors":[{"code":"overloaded_error","message":"fell over"}]}"#
    );
    let frames = CODEC.encode_stream(&failed(Vec::new()), &mut losses);
    assert_eq!(data(&frames), [ERROR]);
    let found = Response {
        id: Some("i".to_owned()),
        usage: Some(Usage {
            input: Some(3),
            ..Usage::default()
        }),
        ..failed(vec![Content::text("Hel"), call("{}").into()])
    };
    let frames = CODEC.encode_stream(&found, &mut losses);
    assert_eq!(
        data(&frames),
        [
            r#"{"interaction":{"id":"i","status":"in_progress"},"event_type":"interaction.created"}"#,
            r#"{"index":0,"step":{"type":"model_output","content":[]},"event_type":"step.start"}"#,
            r#"{"index":0,"delta":{"type":"text","text":"Hel"},"event_type":"step.delta"}"#,
            r#"{"index":0,"event_type":"step.stop"}"#,
            r#"{"index":1,"step":{"type":"function_call","id":"call_1","name":"get_tide","arguments":{}},"event_type":"step.start"}"#,
            r#"{"index":1,"delta":{"type":"arguments_delta","arguments":"{}"},"event_type":"step.delta"}"#,
            r#"{"index":1,"event_type":"step.stop"}"#,
            r#"{"interaction_id":"i","status":"failed","usage":{"total_input_tokens":3},"event_type":"interaction.status_update"}"#,
            ERROR,
        ]
    );
    assert!(losses.is_empty());
    let heard = assemble(&CODEC, &frames).unwrap();
    assert_eq!(
        (heard.id.as_deref(), &heard.stop),
        (Some("i"), &Stop::Failed)
    );
    assert_eq!(heard.usage.as_ref().and_then(|usage| usage.input), Some(3));
    assert_eq!(heard.messages[0].text(), "Hel");
    let error = heard.error.as_ref().unwrap();
    assert_eq!(error.code.as_deref(), Some("overloaded_error"));
    // What was heard is told again the same way.
    let again = CODEC.encode_stream(&heard, &mut losses);
    assert_eq!(assemble(&CODEC, &again).unwrap(), heard);
}

#[test]
fn an_interaction_of_our_own_keeps_its_errors_in_its_stream() {
    let body = r#"{"id":"i","object":"interaction","status":"failed","steps":[{"type":"function_call","id":"f","name":"f","arguments":"{\"po"}],"errors":[{"message":"m","x":1}]}"#;
    let value = json::parse(body).unwrap();
    let own = CODEC.decode_response(&value).unwrap();
    let mut losses = Losses::default();
    assert_eq!(CODEC.encode_response(&own, &mut losses), body);
    let frames = CODEC.encode_stream(&own, &mut losses);
    assert_eq!(assemble(&CODEC, &frames).unwrap(), own);
    assert!(losses.is_empty());
}

#[test]
fn results_of_the_application_have_no_place_in_a_response() {
    let answer = call("{}").answer(Outcome::Ok, Output::Text("04:12".to_owned()));
    let found = Response {
        stop: Stop::Done,
        error: None,
        ..failed(vec![Content::text("a"), answer.into()])
    };
    let mut losses = Losses::default();
    assert_eq!(
        CODEC.encode_response(&found, &mut losses),
        r#"{"id":"interaction_0","status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"a"}]}]}"#
    );
    assert_eq!(lost(&losses), ["messages[0].contents[1] standalone_result"]);
}

#[test]
fn json_from_elsewhere_has_no_unpaired_surrogates() {
    let odd = RawJson::new(r#"{"a":"\ud800"}"#).unwrap();
    let asked = ToolCall {
        arguments: Arguments::Json(odd.clone()),
        ..call("")
    };
    let answer = asked.answer(Outcome::Ok, Output::Json(odd.clone()));
    let request = Request {
        messages: vec![
            Message::new(Role::Assistant, vec![asked.into()]),
            Message::new(Role::Tool, vec![answer.into()]),
        ],
        tools: vec![ToolDef {
            family: Family::FUNCTION,
            name: "get_tide".to_owned(),
            description: None,
            parameters: Some(odd),
            ..ToolDef::default()
        }],
        ..Request::default()
    };
    let mut losses = Losses::default();
    assert_eq!(
        CODEC.encode_request(&request, &mut losses),
        concat!(
            r#"{"input":[{"type":"function_call","id":"call_1","name":"get_tide","arguments":{"a":"�"}},"#,
            r#"{"type":"function_result","call_id":"call_1","name":"get_tide","result":{"a":"�"}}],"#,
            r#""tools":[{"type":"function","name":"get_tide","parameters":{"a":"�"}}]}"#,
        )
    );
    assert_eq!(
        lost(&losses),
        [
            "messages[0].contents[0] lone_surrogate",
            "messages[1].contents[0] lone_surrogate",
            "tools[0] lone_surrogate",
        ]
    );
}
