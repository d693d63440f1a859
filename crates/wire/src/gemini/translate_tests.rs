//! What responses and JSON from elsewhere become.

use throughline_model::json::{self, RawJson};
use throughline_model::{
    Arguments, CallId, Content, Family, Message, Outcome, Output, Request, Response, Role, Stop,
    ToolCall, ToolDef, Usage, VendorError, Wire,
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

const ERROR: &str = r#"{"error":{"code":503,"message":"fell over","status":"UNAVAILABLE"}}"#;

#[test]
fn an_error_stays_out_of_a_whole_body() {
    let mut losses = Losses::default();
    let text = CODEC.encode_response(&failed(Vec::new()), &mut losses);
    assert_eq!(
        text,
        r#"{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"OTHER","index":0}]}"#
    );
    assert_eq!(lost(&losses), ["error marking"]);
    // One of our own goes back as it came.
    let body = r#"{"error":{"code":500,"message":"x"},"responseId":"r"}"#;
    let own = CODEC.decode_response(&json::parse(body).unwrap()).unwrap();
    let mut losses = Losses::default();
    assert_eq!(CODEC.encode_response(&own, &mut losses), body);
    assert!(losses.is_empty());
    let frames = CODEC.encode_stream(&own, &mut losses);
    assert_eq!(assemble(&CODEC, &frames).unwrap(), own);
}

#[test]
fn a_stream_that_fails_ends_with_an_error_body() {
    let mut losses = Losses::default();
    let frames = CODEC.encode_stream(&failed(Vec::new()), &mut losses);
    assert_eq!(data(&frames), [ERROR]);
    let found = Response {
        id: Some("r".to_owned()),
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
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hel"}]},"index":0}],"responseId":"r"}"#,
            r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"get_tide","args":{}}}]},"index":0}],"usageMetadata":{"promptTokenCount":3},"responseId":"r"}"#,
            ERROR,
        ]
    );
    assert!(losses.is_empty());
    let heard = assemble(&CODEC, &frames).unwrap();
    assert_eq!(heard.stop, Stop::Failed);
    assert_eq!(heard.id.as_deref(), Some("r"));
    assert_eq!(heard.usage.as_ref().and_then(|usage| usage.input), Some(3));
    assert_eq!(heard.messages[0].text(), "Hel");
    let error = heard.error.as_ref().unwrap();
    assert_eq!(
        (error.message.as_str(), error.kind.as_deref()),
        ("fell over", Some("UNAVAILABLE"))
    );
    // What was heard is told again the same way.
    let again = CODEC.encode_stream(&heard, &mut losses);
    assert_eq!(assemble(&CODEC, &again).unwrap(), heard);
    // Cut before the error, it is not taken for whole.
    let cut = assemble(&CODEC, &frames[..2]).unwrap();
    assert_eq!(cut.stop, Stop::Cut);
}

#[test]
fn results_of_the_application_have_no_place_in_a_response() {
    let answer = call("{}").answer(Outcome::Ok, Output::Text("04:12".to_owned()));
    let found = Response {
        stop: Stop::Done,
        error: None,
        ..failed(vec![Content::text("a"), answer.into(), Content::text("b")])
    };
    let mut losses = Losses::default();
    assert_eq!(
        CODEC.encode_response(&found, &mut losses),
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"a"},{"text":"b"}]},"finishReason":"STOP","index":0}]}"#
    );
    assert_eq!(lost(&losses), ["messages[0].contents[1] standalone_result"]);
}

#[test]
fn json_from_elsewhere_has_no_unpaired_surrogates() {
    let odd = RawJson::new(r#"{"a":"\ud800","b":1.0}"#).unwrap();
    let asked = ToolCall {
        arguments: Arguments::Json(odd.clone()),
        ..call("")
    };
    let answer = asked.answer(Outcome::Ok, Output::Json(odd.clone()));
    let request = Request {
        messages: vec![
            Message::new(
                Role::Assistant,
                vec![asked.into(), call(r#"{"c":"\udc00 \u00e9"}"#).into()],
            ),
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
            r#"{"contents":[{"role":"model","parts":[{"functionCall":{"name":"get_tide","args":{"a":"�","b":1.0}}},"#,
            r#"{"functionCall":{"name":"get_tide","args":{"c":"� é"}}}]},"#,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"get_tide","response":{"output":{"a":"�","b":1.0}}}}]}],"#,
            r#""tools":[{"functionDeclarations":[{"name":"get_tide","parametersJsonSchema":{"a":"�","b":1.0}}]}]}"#,
        )
    );
    assert_eq!(
        lost(&losses),
        [
            "messages[0].contents[0] lone_surrogate",
            "messages[0].contents[1] lone_surrogate",
            "messages[1].contents[0] lone_surrogate",
            "tools[0] lone_surrogate",
        ]
    );
}

#[test]
fn alternatives_that_were_added_become_candidates() {
    let of = |count: usize, text: &str| {
        let one = |index: usize| {
            let said = format!(r#"{{"parts":[{{"text":"{text}{index}"}}],"role":"model"}}"#);
            format!(r#"{{"index":{index},"content":{said}}}"#)
        };
        let all: Vec<String> = (0..count).map(one).collect();
        format!(r#"{{"candidates":[{}]}}"#, all.join(","))
    };
    // More than a few, since many holes are filled another way than few.
    for count in [1, 30] {
        let body = of(count, "a");
        let value = json::parse(&body).unwrap();
        let mut whole = CODEC.decode_response(&value).unwrap();
        let mut losses = Losses::default();
        assert_eq!(CODEC.encode_response(&whole, &mut losses), body);
        let more = Message::new(Role::Assistant, vec![Content::text("b")]);
        whole.messages.extend([more.clone(), more]);
        let text = CODEC.encode_response(&whole, &mut losses);
        let rest = text.strip_prefix(body.trim_end_matches("]}")).unwrap();
        let said = r#"{"content":{"role":"model","parts":[{"text":"b"}]},"index":"#;
        let next = count + 1;
        assert_eq!(rest, format!(",{said}{count}}},{said}{next}}}]}}"));
    }
    let empty = CODEC.decode_response(&json::parse("{}").unwrap()).unwrap();
    let added = Response {
        messages: vec![Message::new(Role::Assistant, vec![Content::text("b")])],
        ..empty
    };
    assert_eq!(
        CODEC.encode_response(&added, &mut Losses::default()),
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"b"}]},"index":0}]}"#
    );
}

#[test]
fn a_history_is_not_taken_for_a_stream() {
    let array = r#"[{"role":"model","parts":[{"text":"a"}]}]"#;
    let error = CODEC.decode_response(&json::parse(array).unwrap());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("[0]") && error.contains("a response"),
        "{error}"
    );
}
