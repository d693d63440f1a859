//! What steps mean, and what becomes of messages from elsewhere.

use throughline_model::json::{self, RawJson};
use throughline_model::{
    Arguments, Body, CallId, Citation, Content, Event, Family, Form, Media, MediaKind, MediaSource,
    Message, Outcome, Output, Place, Reasoning, Request, Response, Role, Runner, Status, Stop,
    Text, ToolCall, ToolDef, ToolResult, Usage, Vendor, Wire,
};

use super::CODEC;
use crate::sse::Frame;
use crate::{DocumentKind, Losses, StreamDecoder, assemble};

fn decode(array: &str) -> Vec<Message> {
    let value = json::parse(array).unwrap();
    let items = value.as_array().unwrap();
    CODEC.decode_messages(items).unwrap()
}

fn encode(messages: &[Message]) -> (String, Vec<String>) {
    let mut losses = Losses::default();
    let text = CODEC.encode_messages(messages, &mut losses);
    (text, lost(&losses))
}

fn lost(losses: &Losses) -> Vec<String> {
    let line = |loss: &crate::Loss| format!("{} {}", loss.path, loss.kind.as_str());
    losses.as_slice().iter().map(line).collect()
}

fn response(body: &str) -> Response {
    let value = json::parse(body).unwrap();
    CODEC.decode_response(&value).unwrap()
}

fn id(value: &str) -> CallId {
    CallId::natural(value).unwrap()
}

fn frame(data: &str) -> Frame {
    Frame {
        data: data.to_owned(),
        ..Frame::default()
    }
}

fn media(kind: MediaKind, source: MediaSource) -> Content {
    Content::new(Body::Media(Media {
        kind,
        media_type: None,
        source,
        name: None,
        transcript: None,
    }))
}

#[test]
fn steps_become_what_they_say() {
    let array = r#"[{"type":"thought","signature":"YQ==","summary":[{"type":"text","text":"hm"}]},{"type":"code_execution_call","id":"c","arguments":{"code":"1"}},{"type":"code_execution_result","call_id":"c","result":"no","is_error":true},{"type":"model_output","error":{"code":8,"message":"full"}},{"type":"model_output","content":[{"type":"text","text":"a","annotations":[{"type":"file_citation","file_name":"f","media_id":"m","start_index":1}]}]}]"#;
    let messages = decode(array);
    let bodies: Vec<_> = messages[0].contents.iter().map(|it| &it.body).collect();
    let Body::Reasoning(thought) = bodies[0] else {
        panic!("{bodies:?}");
    };
    assert_eq!(
        (thought.summary.concat(), thought.sealed),
        ("hm".to_owned(), true)
    );
    let code = ToolCall {
        call: id("c"),
        family: Family::CODE_EXECUTION,
        name: String::new(),
        arguments: Arguments::Json(RawJson::new(r#"{"code":"1"}"#).unwrap()),
        status: None,
        runner: Runner::Vendor,
    };
    let failed = code.answer(Outcome::Error, Output::Text("no".to_owned()));
    assert_eq!(bodies[1], &Body::ToolCall(code));
    assert_eq!(bodies[2], &Body::ToolResult(failed));
    assert!(matches!(bodies[3], Body::Error(fault) if fault.message == "full"));
    let cited = Citation {
        title: Some("f".to_owned()),
        file: Some("m".to_owned()),
        start: Some(1),
        ..Citation::default()
    };
    assert!(matches!(bodies[4], Body::Text(text) if text.citations == [cited]));
    assert_eq!(encode(&messages), (array.to_owned(), Vec::new()));
}

#[test]
fn contents_alone_are_what_the_user_says() {
    let array = r#"[{"type":"text","text":"hi"},{"type":"image","uri":"https://a.example/b.png"}]"#;
    let messages = decode(array);
    assert_eq!(messages.len(), 1);
    assert_eq!(
        (&messages[0].role, messages[0].contents.len()),
        (&Role::User, 2)
    );
    assert_eq!(encode(&messages), (array.to_owned(), Vec::new()));
}

#[test]
fn media_with_two_places_are_where_something_stands() {
    let array = r#"[{"type":"audio","data":"","uri":"https://a.example/s.wav"}]"#;
    let messages = decode(array);
    let Body::Media(found) = &messages[0].contents[0].body else {
        panic!("{messages:?}");
    };
    let address = MediaSource::Uri("https://a.example/s.wav".to_owned());
    assert_eq!(found.source, address);
    assert_eq!(encode(&messages), (array.to_owned(), Vec::new()));
}

#[test]
fn what_the_user_said_is_not_the_models_word() {
    let body = r#"{"id":"i","status":"completed","steps":[{"type":"user_input","content":[{"type":"text","text":"hi"}]},{"type":"model_output","content":[{"type":"text","text":"Hello."}]}]}"#;
    let found = response(body);
    assert_eq!(found.messages[0].text(), "Hello.");
    let back = CODEC.encode_response(&found, &mut Losses::default());
    assert_eq!(back, body);
}

#[test]
fn messages_from_elsewhere_are_said_and_losses_listed() {
    let first = ToolCall::function(id("call_1"), "get_tide", r#"{ "port": "Brest" }"#);
    let second = ToolCall::function(id("call_2"), "list", "");
    let hosted = ToolCall {
        runner: Runner::Vendor,
        family: Family::WEB_SEARCH,
        ..ToolCall::function(id("ws_1"), "", "{}")
    };
    let parts = Output::Parts(vec![
        Content::text("see"),
        media(MediaKind::Image, MediaSource::Data("AA==".to_owned())),
    ]);
    let mut plain = first.answer(Outcome::Ok, Output::Json(RawJson::new("[1]").unwrap()));
    plain.name = None;
    let object = Output::Json(RawJson::new(r#"{"a":1}"#).unwrap());
    let messages = [
        Message::new(Role::System, vec![Content::text("Be brief.")]),
        Message::new(
            Role::User,
            vec![
                Content::text("When?"),
                Content::text(""),
                media(MediaKind::File, MediaSource::Uri("data:,a%20b".to_owned())),
                media(
                    MediaKind::Video,
                    MediaSource::Uri("https://a.example/v".to_owned()),
                ),
                media(MediaKind::Image, MediaSource::File("file_1".to_owned())),
            ],
        ),
        Message::new(
            Role::Assistant,
            vec![
                Content::new(Body::Reasoning(Reasoning::default())),
                Content::new(Body::Text(Text {
                    text: "Looking.".to_owned(),
                    citations: vec![Citation {
                        url: Some("https://a.example".to_owned()),
                        ..Citation::default()
                    }],
                })),
                hosted.into(),
                first.clone().into(),
                second.clone().into(),
                Content::new(Body::Refusal(Text {
                    text: "I cannot.".to_owned(),
                    citations: Vec::new(),
                })),
            ],
        ),
        Message::new(
            Role::Tool,
            vec![
                plain.into(),
                second.answer(Outcome::Rejected, parts).into(),
                first.answer(Outcome::Ok, object).into(),
                ToolResult::standalone(id("x"), Family::FUNCTION, Output::None).into(),
            ],
        ),
    ];
    let (text, losses) = encode(&messages);
    assert_eq!(
        text,
        concat!(
            r#"[{"type":"user_input","content":[{"type":"text","text":"When?"},{"type":"text","text":"a b"},{"type":"video","uri":"https://a.example/v"}]},"#,
            r#"{"type":"model_output","content":[{"type":"text","text":"Looking.","annotations":[{"type":"url_citation","url":"https://a.example"}]}]},"#,
            r#"{"type":"function_call","id":"call_1","name":"get_tide","arguments":{"port":"Brest"}},"#,
            r#"{"type":"function_call","id":"call_2","name":"list","arguments":{}},"#,
            r#"{"type":"model_output","content":[{"type":"text","text":"I cannot."}]},"#,
            r#"{"type":"function_result","call_id":"call_1","result":"[1]"},"#,
            r#"{"type":"function_result","call_id":"call_2","name":"list","result":[{"type":"text","text":"see"},{"type":"image","mime_type":"image/png","data":"AA=="}],"is_error":true},"#,
            r#"{"type":"function_result","call_id":"call_1","name":"get_tide","result":{"a":1}},"#,
            r#"{"type":"function_result","call_id":"x","result":""}]"#,
        )
    );
    assert_eq!(
        losses,
        [
            "messages[0].contents[0] system_text",
            "messages[1].contents[2] media",
            "messages[1].contents[4] media",
            "messages[2].contents[0] reasoning",
            "messages[2].contents[2] hosted_tool",
            "messages[2].contents[5] marking",
            "messages[3].contents[1].output[1] media",
            "messages[3].contents[3] standalone_result",
        ]
    );
}

#[test]
fn a_request_from_elsewhere_keeps_system_text_and_functions() {
    let body = RawJson::new(r#"{"contents":[],"generationConfig":{}}"#).unwrap();
    let request = Request {
        system: vec![Content::text("You are a pilot.")],
        messages: vec![
            Message::user("hi"),
            Message::new(Role::System, vec![Content::text("Be brief.")]),
        ],
        tools: vec![ToolDef {
            family: Family::FUNCTION,
            name: "f".to_owned(),
            description: None,
            parameters: Some(RawJson::new("{}").unwrap()),
            ..ToolDef::default()
        }],
        vendor: Some(Vendor::item(Wire::Gemini, body)),
    };
    let mut losses = Losses::default();
    let text = CODEC.encode_request(&request, &mut losses);
    assert_eq!(
        text,
        r#"{"system_instruction":"You are a pilot.\n\nBe brief.","input":[{"type":"user_input","content":[{"type":"text","text":"hi"}]}],"tools":[{"type":"function","name":"f","parameters":{}}]}"#
    );
    assert_eq!(lost(&losses), ["request.generationConfig request_key"]);
}

#[test]
fn a_request_of_our_own_takes_what_is_added() {
    let body = r#"{"input":"hi","system_instruction":"Be brief.","x":1}"#;
    let value = json::parse(body).unwrap();
    let mut request = CODEC.decode_request(&value).unwrap();
    request.messages.push(Message::user("more"));
    request.system.push(Content::text("Be kind."));
    let text = CODEC.encode_request(&request, &mut Losses::default());
    assert_eq!(
        text,
        r#"{"input":[{"type":"user_input","content":[{"type":"text","text":"hi"}]},{"type":"user_input","content":[{"type":"text","text":"more"}]}],"system_instruction":"Be brief.\n\nBe kind.","x":1}"#
    );
}

#[test]
fn a_part_whose_step_was_dropped_opens_another() {
    let array = r#"[{"type":"model_output","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]"#;
    let mut messages = decode(array);
    messages.insert(0, Message::user("q"));
    messages[1].contents.remove(0);
    assert!(matches!(
        messages[1].contents[0].vendor.as_ref().unwrap().form,
        Form::Part(_)
    ));
    assert_eq!(
        encode(&messages).0,
        r#"[{"type":"user_input","content":[{"type":"text","text":"q"}]},{"type":"model_output","content":[{"type":"text","text":"b"}]}]"#
    );
}

#[test]
fn status_and_usage_are_read() {
    let call = r#"{"type":"function_call","id":"f","name":"f","arguments":{}}"#;
    let result = r#"{"type":"function_result","call_id":"f","result":""}"#;
    let stop = |status: &str, steps: &str| {
        response(&format!(r#"{{"status":"{status}","steps":[{steps}]}}"#)).stop
    };
    assert_eq!(stop("completed", ""), Stop::Done);
    assert_eq!(stop("completed", call), Stop::ToolCalls);
    assert_eq!(stop("completed", &format!("{call},{result}")), Stop::Done);
    assert_eq!(stop("requires_action", ""), Stop::ToolCalls);
    assert_eq!(stop("requires_continuation", ""), Stop::Paused);
    assert_eq!(stop("incomplete", ""), Stop::Length);
    assert_eq!(
        stop("budget_exceeded", ""),
        Stop::Other("budget_exceeded".into())
    );
    assert_eq!(stop("queued", ""), Stop::InProgress);
    let failed = response(r#"{"status":"failed","errors":[{"code":"u","message":"m"}]}"#);
    assert_eq!(failed.stop, Stop::Failed);
    let error = failed.error.unwrap();
    assert_eq!(
        (error.code.as_deref(), error.message.as_str()),
        (Some("u"), "m")
    );
    let usage = response(
        r#"{"usage":{"total_input_tokens":10,"total_cached_tokens":4,"total_tool_use_tokens":2,"total_output_tokens":20,"total_thought_tokens":5,"total_tokens":37}}"#,
    )
    .usage
    .unwrap();
    let counts = (usage.input, usage.output, usage.total);
    assert_eq!(counts, (Some(12), Some(25), Some(37)));
    assert_eq!((usage.cache_read, usage.reasoning), (Some(4), Some(5)));
}

#[test]
fn a_response_from_elsewhere_is_an_interaction() {
    let found = Response {
        id: None,
        model: Some("m".to_owned()),
        messages: vec![Message::new(Role::Assistant, vec![Content::text("Hello.")])],
        usage: Some(Usage {
            input: Some(3),
            output: Some(5),
            reasoning: Some(2),
            ..Usage::default()
        }),
        stop: Stop::Done,
        error: None,
        vendor: None,
        service: None,
    };
    let text = CODEC.encode_response(&found, &mut Losses::default());
    assert_eq!(
        text,
        r#"{"id":"interaction_0","status":"completed","model":"m","steps":[{"type":"model_output","content":[{"type":"text","text":"Hello."}]}],"usage":{"total_input_tokens":3,"total_output_tokens":3,"total_thought_tokens":2}}"#
    );
    let frames = CODEC.encode_stream(&found, &mut Losses::default());
    assert_eq!(assemble(&CODEC, &frames).unwrap(), response(&text));
}

#[test]
fn shapes_are_told_apart() {
    let shape = |text: &str| CODEC.document_kind(&json::parse(text).unwrap());
    assert_eq!(
        shape(r#"{"id":"i","status":"completed"}"#),
        DocumentKind::Response
    );
    assert_eq!(shape(r#"{"steps":[]}"#), DocumentKind::Response);
    assert_eq!(
        shape(r#"{"input":"hi","model":"m"}"#),
        DocumentKind::Request
    );
    assert_eq!(shape(r#"{"type":"thought"}"#), DocumentKind::Message);
    assert_eq!(shape(r#"{"error":{}}"#), DocumentKind::Error);
    assert_eq!(shape(r#"[{"error":{}}]"#), DocumentKind::Error);
    assert_eq!(shape("{}"), DocumentKind::Unknown);
}

#[test]
fn text_and_arguments_are_told_as_they_come() {
    let mut decoder = super::stream::Decoder::default();
    let mut push = |data: &str| decoder.push(&frame(data)).unwrap();
    push(r#"{"event_type":"interaction.created","interaction":{"id":"i","status":"in_progress"}}"#);
    let start = r#"{"event_type":"step.start","index":3,"step":{"type":"model_output"}}"#;
    assert_eq!(push(start), []);
    let events =
        push(r#"{"event_type":"step.delta","index":3,"delta":{"type":"text","text":"Hel"}}"#);
    let at = Place::new(0, 3, 0);
    let delta = |at, text: &str| Event::Delta {
        at,
        text: text.to_owned(),
    };
    assert!(matches!(&events[0], Event::Opened { at: opened, .. } if *opened == at));
    assert_eq!(events[1..], [delta(at, "Hel")]);
    let events =
        push(r#"{"event_type":"step.delta","index":3,"delta":{"type":"text","text":"lo"}}"#);
    assert_eq!(events, [delta(at, "lo")]);
    push(
        r#"{"event_type":"step.start","index":4,"step":{"type":"function_call","id":"f","name":"f","arguments":{}}}"#,
    );
    let events = push(
        r#"{"event_type":"step.delta","index":4,"delta":{"type":"arguments_delta","arguments":"{}"}}"#,
    );
    assert_eq!(events, [delta(Place::new(0, 4, 0), "{}")]);
    let events = push(r#"{"event_type":"step.delta","index":9,"delta":{"type":"smell"}}"#);
    assert!(matches!(events[..], [Event::Other { .. }]));
}

#[test]
fn a_stream_that_breaks_off_is_cut_or_failed() {
    let created = frame(
        r#"{"event_type":"interaction.created","interaction":{"id":"i","status":"in_progress"}}"#,
    );
    let text =
        frame(r#"{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"Hel"}}"#);
    let error = frame(r#"{"event_type":"error","error":{"code":"overloaded","message":"busy"}}"#);
    let cut = assemble(&CODEC, &[created.clone(), text.clone()]).unwrap();
    assert_eq!(cut.stop, Stop::Cut);
    assert_eq!(cut.messages[0].status, Some(Status::Incomplete));
    assert_eq!(
        encode(&cut.messages).0,
        r#"[{"type":"model_output","content":[{"type":"text","text":"Hel"}]}]"#
    );
    let failed = assemble(&CODEC, &[created, text, error.clone()]).unwrap();
    assert_eq!(failed.stop, Stop::Failed);
    assert_eq!(failed.error.unwrap().code.as_deref(), Some("overloaded"));
    let alone = assemble(&CODEC, &[error]).unwrap();
    let frames = CODEC.encode_stream(&alone, &mut Losses::default());
    assert_eq!(assemble(&CODEC, &frames).unwrap(), alone);
}

#[test]
fn what_was_cut_or_shortened_still_goes_back() {
    let frames = [
        frame(
            r#"{"event_type":"interaction.created","interaction":{"id":"i","status":"in_progress"}}"#,
        ),
        frame(
            r#"{"event_type":"step.start","index":0,"step":{"type":"function_call","id":"f","name":"f","arguments":{}}}"#,
        ),
        frame(
            r#"{"event_type":"step.delta","index":0,"delta":{"type":"arguments_delta","arguments":"{\"po"}}"#,
        ),
    ];
    let cut = assemble(&CODEC, &frames).unwrap();
    assert_eq!(
        encode(&cut.messages).0,
        r#"[{"type":"function_call","id":"f","name":"f","arguments":{"input":"{\"po"}}]"#
    );
    let mut messages = decode(r#"[{"type":"function_result","call_id":"f","result":{"a":1}}]"#);
    let Body::ToolResult(result) = &mut messages[0].contents[0].body else {
        panic!("{messages:?}");
    };
    result.output = Output::Text("…".to_owned());
    assert_eq!(
        encode(&messages).0,
        r#"[{"type":"function_result","call_id":"f","result":"…"}]"#
    );
}

#[test]
fn a_stream_is_written_step_by_step() {
    let body = r#"{"id":"i","status":"completed","steps":[{"type":"thought","summary":[{"type":"text","text":"hm"}],"signature":"YQ=="},{"type":"model_output","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"type":"function_call","id":"f","name":"f","arguments":{"a":1}}],"usage":{"total_tokens":1}}"#;
    let whole = response(body);
    let frames = CODEC.encode_stream(&whole, &mut Losses::default());
    let data: Vec<_> = frames.iter().map(|frame| frame.data.as_str()).collect();
    assert_eq!(
        data,
        [
            r#"{"interaction":{"id":"i","status":"in_progress"},"event_type":"interaction.created"}"#,
            r#"{"index":0,"step":{"type":"thought","summary":[],"signature":""},"event_type":"step.start"}"#,
            r#"{"index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"hm"}},"event_type":"step.delta"}"#,
            r#"{"index":0,"delta":{"type":"thought_signature","signature":"YQ=="},"event_type":"step.delta"}"#,
            r#"{"index":0,"event_type":"step.stop"}"#,
            r#"{"index":1,"step":{"type":"model_output","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"event_type":"step.start"}"#,
            r#"{"index":1,"event_type":"step.stop"}"#,
            r#"{"index":2,"step":{"type":"function_call","id":"f","name":"f","arguments":{}},"event_type":"step.start"}"#,
            r#"{"index":2,"delta":{"type":"arguments_delta","arguments":"{\"a\":1}"},"event_type":"step.delta"}"#,
            r#"{"index":2,"event_type":"step.stop"}"#,
            r#"{"interaction":{"id":"i","status":"completed","steps":[],"usage":{"total_tokens":1}},"event_type":"interaction.completed"}"#,
        ]
    );
    assert_eq!(frames[0].event.as_deref(), Some("interaction.created"));
    assert_eq!(assemble(&CODEC, &frames).unwrap(), whole);
}
