//! What contents mean, and what becomes of messages from elsewhere.

use throughline_model::json::{self, RawJson};
use throughline_model::{
    ApprovalRequest, Arguments, Body, CallId, Citation, Content, Event, Family, Fault, Media,
    MediaKind, MediaSource, Message, Opaque, Outcome, Output, Pairing, Place, Reasoning, Request,
    Response, Role, Runner, Scope, Status, Stop, Text, ToolCall, ToolDef, ToolResult, Usage,
    Vendor, VendorError, Wire,
};

use super::CODEC;
use crate::sse::Frame;
use crate::{DocumentKind, Losses, StreamDecoder, assemble};

fn decode(array: &str) -> Vec<Message> {
    let value = json::parse(array).unwrap();
    CODEC.decode_messages(value.as_array().unwrap()).unwrap()
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
    CODEC.decode_response(&json::parse(body).unwrap()).unwrap()
}

fn id(value: &str) -> CallId {
    CallId::natural(value).unwrap()
}

fn image(source: MediaSource) -> Content {
    Content::new(Body::Media(Media {
        kind: MediaKind::Image,
        media_type: Some("image/jpeg".to_owned()),
        source,
        name: None,
        transcript: None,
    }))
}

fn results(messages: &[Message]) -> Vec<(&CallId, Pairing)> {
    let contents = messages.iter().flat_map(|message| &message.contents);
    let results = contents.filter_map(Content::as_tool_result);
    results
        .map(|result| (result.call(), result.pairing()))
        .collect()
}

#[test]
fn a_user_content_with_results_is_two_messages_and_one_content_again() {
    let array = r#"[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"text":"a"},{"functionResponse":{"name":"f","response":{"output":1}}},{"text":"b"}]},{"parts":[{"functionResponse":{"name":"g"}}]},{"role":"user","parts":[{"functionResponse":{"name":"h"}}]}]"#;
    let messages = decode(array);
    let roles: Vec<_> = messages
        .iter()
        .map(|message| (message.role.clone(), message.contents.len()))
        .collect();
    assert_eq!(
        roles,
        [
            (Role::Assistant, 1),
            (Role::User, 1),
            (Role::Tool, 1),
            (Role::User, 1),
            (Role::Tool, 2),
        ]
    );
    assert_eq!(encode(&messages), (array.to_owned(), Vec::new()));
}

#[test]
fn results_without_ids_pair_by_order_and_by_name() {
    let calls = r#"{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"g"}},{"functionCall":{"name":"f"}}]}"#;
    let answer = |name: &str| format!(r#"{{"functionResponse":{{"name":"{name}"}}}}"#);
    let minted = |place, ordinal| CallId::minted(Scope::Place(place), ordinal);
    let paired = |names: &[&str]| {
        let parts: Vec<_> = names.iter().map(|name| answer(name)).collect();
        let array = format!(r#"[{calls},{{"parts":[{}]}}]"#, parts.join(","));
        let messages = decode(&array);
        let found: Vec<_> = results(&messages)
            .into_iter()
            .map(|(call, pairing)| (call.clone(), pairing))
            .collect();
        found
    };
    let answers = |place, ordinal| (minted(place, ordinal), Pairing::Answers);
    assert_eq!(
        paired(&["f", "g", "f"]),
        [answers(0, 0), answers(0, 1), answers(0, 2)]
    );
    // Sorted results: the names say what they answer.
    assert_eq!(
        paired(&["g", "f", "f"]),
        [answers(0, 1), answers(0, 0), answers(0, 2)]
    );
    // A name without a call falls back to the order.
    assert_eq!(
        paired(&["x", "g", "f"]),
        [answers(0, 0), answers(0, 1), answers(0, 2)]
    );
    // One too many answers nothing, and has a handle of its own.
    let found = paired(&["f", "g", "f", "f", "f"]);
    assert_eq!(found[3].1, Pairing::Standalone);
    assert_eq!(found[4].1, Pairing::Standalone);
    assert_ne!(found[3].0, found[4].0);
}

#[test]
fn an_unanswered_call_of_an_earlier_content_is_not_answered_later() {
    let array = r#"[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"text":"no"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"name":"f"}}]}]"#;
    let messages = decode(array);
    let call = CallId::minted(Scope::Place(2), 0);
    assert_eq!(results(&messages), [(&call, Pairing::Answers)]);
}

#[test]
fn a_result_that_lost_its_id_still_finds_its_call() {
    let array = r#"[{"role":"model","parts":[{"functionCall":{"id":"a","name":"f"}},{"functionCall":{"id":"b","name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f"}},{"functionResponse":{"name":"f"}}]}]"#;
    let messages = decode(array);
    let (a, b) = (id("a"), id("b"));
    assert_eq!(
        results(&messages),
        [(&a, Pairing::Answers), (&b, Pairing::Answers)]
    );
    assert_eq!(encode(&messages).0, array);
}

#[test]
fn code_results_pair_inside_their_content_first() {
    let code = r#"{"executableCode":{"code":"1"}}"#;
    let result = r#"{"codeExecutionResult":{"output":"1"}}"#;
    let minted = |place, ordinal| CallId::minted(Scope::Place(place), ordinal);
    let model = |parts: &[&str]| format!(r#"{{"role":"model","parts":[{}]}}"#, parts.join(","));
    let (two, one) = (model(&[code, code, result]), model(&[code, result]));
    let messages = decode(&format!("[{two},{one},{}]", model(&[result])));
    assert_eq!(
        results(&messages),
        [
            (&minted(0, 0), Pairing::Answers),
            (&minted(1, 0), Pairing::Answers),
            // One content that was split.
            (&minted(0, 1), Pairing::Answers),
        ]
    );
    let user = r#"{"role":"user","parts":[{"text":"go on"}]}"#;
    let messages = decode(&format!("[{two},{user},{}]", model(&[result])));
    assert_eq!(results(&messages)[1].1, Pairing::Standalone);
}

#[test]
fn parts_become_what_they_say() {
    let array = r#"[{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"YQ=="},{"text":"u","thought":true},{"executableCode":{"id":"c","code":"1/0"}},{"codeExecutionResult":{"id":"c","outcome":"OUTCOME_DEADLINE_EXCEEDED","output":"late"}},{"functionCall":{"id":"p","name":"f","partialArgs":[{"jsonPath":"$.a","numberValue":1}],"willContinue":true}},{"functionCall":{}},{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/x","mimeType":"audio/ogg"}}]},{"role":"user","parts":[{"functionResponse":{"id":"z","name":"f","response":{"error":"no","x":1}}},{"functionResponse":{"id":"y","name":"f","response":{"output":"see"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}}]}]"#;
    let messages = decode(array);
    let bodies: Vec<_> = messages
        .iter()
        .flat_map(|message| &message.contents)
        .map(|content| &content.body)
        .collect();
    let thought = |text: &str, sealed| {
        Body::Reasoning(Reasoning {
            summary: vec![text.to_owned()],
            text: Vec::new(),
            sealed,
        })
    };
    assert_eq!(bodies[0], &thought("t", true));
    assert_eq!(bodies[1], &thought("u", false));
    let code = ToolCall {
        call: id("c"),
        family: Family::CODE_EXECUTION,
        name: String::new(),
        arguments: Arguments::Free("1/0".to_owned()),
        status: None,
        runner: Runner::Vendor,
    };
    let late = code.answer(Outcome::Error, Output::Text("late".to_owned()));
    assert_eq!(bodies[2], &Body::ToolCall(code));
    assert_eq!(bodies[3], &Body::ToolResult(late));
    let begun = ToolCall {
        call: id("p"),
        family: Family::FUNCTION,
        name: "f".to_owned(),
        arguments: Arguments::Json(RawJson::new(r#"{"a":1}"#).unwrap()),
        status: Some(Status::InProgress),
        runner: Runner::Client,
    };
    assert_eq!(bodies[4], &Body::ToolCall(begun));
    let fragment = Opaque {
        tag: "functionCall".to_owned(),
    };
    assert_eq!(bodies[5], &Body::Opaque(fragment));
    let Body::Media(media) = bodies[6] else {
        panic!("{:?}", bodies[6]);
    };
    assert_eq!(media.kind, MediaKind::Audio);
    assert!(matches!(media.source, MediaSource::File(_)));
    let Body::ToolResult(failed) = bodies[7] else {
        panic!("{:?}", bodies[7]);
    };
    assert_eq!(failed.outcome, Outcome::Error);
    let json = RawJson::new(r#"{"error":"no","x":1}"#).unwrap();
    assert_eq!(failed.output, Output::Json(json));
    let Body::ToolResult(seen) = bodies[8] else {
        panic!("{:?}", bodies[8]);
    };
    let Output::Parts(parts) = &seen.output else {
        panic!("{seen:?}");
    };
    assert_eq!(parts[0].as_text(), Some("see"));
    assert!(
        matches!(&parts[1].body, Body::Media(media) if media.source == MediaSource::Data("AA==".to_owned()))
    );
    assert_eq!(encode(&messages), (array.to_owned(), Vec::new()));
}

/// A history that another vendor could have left.
fn foreign() -> Vec<Message> {
    let first = ToolCall::function(id("call_1"), "get_tide", r#"{ "port": "Brest" }"#);
    let second = ToolCall {
        arguments: Arguments::Free("raw text".to_owned()),
        family: Family::CUSTOM,
        ..ToolCall::function(id("call_2"), "run", "")
    };
    let broken = ToolCall::function(id("call_3"), "log", "{\"a\":");
    let hosted = ToolCall {
        runner: Runner::Vendor,
        family: Family::WEB_SEARCH,
        ..ToolCall::function(id("ws_1"), "", "{}")
    };
    let searched = hosted.answer(Outcome::Ok, Output::Text("found".to_owned()));
    let mut nameless = ToolResult::answering(
        id("call_1"),
        Family::FUNCTION,
        Output::Text("04:12".to_owned()),
    );
    nameless.name = None;
    let seen = Output::Parts(vec![
        Content::text("see"),
        image(MediaSource::Data("AA==".to_owned())),
    ]);
    vec![
        Message::new(Role::System, vec![Content::text("Be brief.")]),
        Message::new(
            Role::User,
            vec![
                Content::text("When?"),
                Content::text(""),
                image(MediaSource::Uri("data:image/gif;base64,R0lG".to_owned())),
                image(MediaSource::Uri("https://tides.example/a.jpg".to_owned())),
                image(MediaSource::File("file_1".to_owned())),
            ],
        ),
        Message::new(
            Role::Assistant,
            vec![
                Content::new(Body::Reasoning(Reasoning::default())),
                Content::new(Body::Text(Text {
                    text: "Looking.".to_owned(),
                    citations: vec![Citation::default()],
                })),
                hosted.into(),
                searched.into(),
                first.into(),
                second.clone().into(),
                broken.clone().into(),
                Content::new(Body::ApprovalRequest(ApprovalRequest {
                    request: id("apr_1"),
                    name: "rm".to_owned(),
                    arguments: Arguments::None,
                    server: None,
                })),
                Content::new(Body::Refusal(Text {
                    text: "I cannot.".to_owned(),
                    citations: Vec::new(),
                })),
            ],
        ),
        Message::new(
            Role::Tool,
            vec![
                nameless.into(),
                second
                    .answer(Outcome::Error, Output::Text("boom".to_owned()))
                    .into(),
                broken.answer(Outcome::Ok, seen).into(),
            ],
        ),
        Message::new(
            Role::Other("critic".into()),
            vec![
                Content::new(Body::Error(Fault {
                    message: "late".to_owned(),
                    code: None,
                })),
                Content::new(Body::Opaque(Opaque {
                    tag: "compaction".to_owned(),
                }))
                .with_vendor(Vendor::item(
                    Wire::OpenAiResponses,
                    RawJson::new(r#"{"type":"compaction"}"#).unwrap(),
                )),
            ],
        ),
        Message::new(Role::User, Vec::new()),
    ]
}

const FOREIGN_CONTENTS: &str = concat!(
    r#"[{"role":"user","parts":[{"text":"When?"},{"inlineData":{"mimeType":"image/gif","data":"R0lG"}},"#,
    r#"{"fileData":{"mimeType":"image/jpeg","fileUri":"https://tides.example/a.jpg"}}]},"#,
    r#"{"role":"model","parts":[{"text":"Looking."},{"functionCall":{"name":"get_tide","args":{"port":"Brest"}}},"#,
    r#"{"functionCall":{"name":"run","args":{"input":"raw text"}}},{"functionCall":{"name":"log","args":{"input":"{\"a\":"}}},"#,
    r#"{"text":"I cannot."}]},"#,
    r#"{"role":"user","parts":[{"functionResponse":{"name":"get_tide","response":{"output":"04:12"}}},"#,
    r#"{"functionResponse":{"name":"run","response":{"error":"boom"}}},"#,
    r#"{"functionResponse":{"name":"log","response":{"output":"see"},"parts":[{"inlineData":{"mimeType":"image/jpeg","data":"AA=="}}]}}]},"#,
    r#"{"role":"user","parts":[{"text":"late"}]}]"#,
);

#[test]
fn messages_from_elsewhere_are_said_and_losses_listed() {
    let (text, losses) = encode(&foreign());
    assert_eq!(text, FOREIGN_CONTENTS);
    assert_eq!(
        losses,
        [
            "messages[0].contents[0] system_text",
            "messages[1].contents[4] media",
            "messages[2].contents[0] reasoning",
            "messages[2].contents[1] citations",
            "messages[2].contents[2] hosted_tool",
            "messages[2].contents[3] hosted_tool",
            "messages[2].contents[5] hosted_tool",
            "messages[2].contents[6] arguments",
            "messages[2].contents[7] approval",
            "messages[2].contents[8] marking",
            "messages[4].contents[0] role",
            "messages[4].contents[0] marking",
            "messages[4].contents[1] role",
            "messages[4].contents[1] vendor_item",
            "messages[5] empty_message",
        ]
    );
}

#[test]
fn a_request_from_elsewhere_keeps_system_text_and_functions() {
    let body = RawJson::new(r#"{"model":"m","input":[],"instructions":"","store":true}"#).unwrap();
    let request = Request {
        system: vec![Content::text("You are a pilot.")],
        messages: vec![
            Message::new(Role::Developer, vec![Content::text("Be brief.")]),
            Message::user("hi"),
        ],
        tools: vec![
            ToolDef {
                family: Family::FUNCTION,
                name: "f".to_owned(),
                description: Some("Does f.".to_owned()),
                parameters: Some(RawJson::new(r#"{"type":"object"}"#).unwrap()),
                ..ToolDef::default()
            },
            ToolDef {
                family: Family::WEB_SEARCH,
                name: String::new(),
                description: None,
                parameters: None,
                ..ToolDef::default()
            },
        ],
        vendor: Some(Vendor::item(Wire::OpenAiResponses, body)),
    };
    let mut losses = Losses::default();
    let text = CODEC.encode_request(&request, &mut losses);
    assert_eq!(
        text,
        r#"{"systemInstruction":{"parts":[{"text":"You are a pilot."},{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"f","description":"Does f.","parametersJsonSchema":{"type":"object"}}]}]}"#
    );
    assert_eq!(
        lost(&losses),
        [
            "request.model request_key",
            "request.store request_key",
            "tools[1] tool_definition",
        ]
    );
}

#[test]
fn a_request_of_our_own_takes_what_is_added() {
    let body = r#"{"contents":{"parts":[{"text":"hi"}]},"system_instruction":"Be brief.","x":1}"#;
    let mut request = CODEC.decode_request(&json::parse(body).unwrap()).unwrap();
    request.messages.push(Message::user("more"));
    request
        .messages
        .push(Message::new(Role::System, vec![Content::text("Be kind.")]));
    let text = CODEC.encode_request(&request, &mut Losses::default());
    assert_eq!(
        text,
        r#"{"contents":[{"parts":[{"text":"hi"}]},{"role":"user","parts":[{"text":"more"}]}],"system_instruction":{"parts":[{"text":"Be brief."},{"text":"Be kind."}]},"x":1}"#
    );
}

#[test]
fn tools_on_offer_are_read() {
    let body = r#"{"tools":[{"function_declarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"type":{"type":"STRING","enum":["A"]},"l":{"type":"ARRAY","items":{"anyOf":[{"type":"NUMBER"}]}}}}}],"googleSearch":{}},{"url_context":{}},{"holodeck":{}}]}"#;
    let request = CODEC.decode_request(&json::parse(body).unwrap()).unwrap();
    let families: Vec<_> = request
        .tools
        .iter()
        .map(|tool| tool.family.as_str())
        .collect();
    assert_eq!(
        families,
        ["function", "web-search", "url-context", "holodeck"]
    );
    let schema = request.tools[0].parameters.as_ref().unwrap();
    assert_eq!(
        schema.get(),
        r#"{"type":"object","properties":{"type":{"type":"string","enum":["A"]},"l":{"type":"array","items":{"anyOf":[{"type":"number"}]}}}}"#
    );
}

#[test]
fn an_answer_of_ours_echoes_only_an_id_that_the_service_issued() {
    for (id_member, echoed) in [
        (r#""id":"g1","#, r#""id":"g1","#),
        ("", ""),
        (r#""id":"","#, ""),
    ] {
        let array = format!(
            r#"[{{"role":"model","parts":[{{"functionCall":{{{id_member}"name":"f"}}}}]}}]"#
        );
        let mut messages = decode(&array);
        let call = messages[0].contents[0].as_tool_call().unwrap();
        let answer = call.answer(Outcome::Ok, Output::Json(RawJson::new("[1]").unwrap()));
        messages.push(Message::new(Role::Tool, vec![answer.into()]));
        let (text, losses) = encode(&messages);
        assert_eq!(
            text,
            format!(
                r#"{},{{"role":"user","parts":[{{"functionResponse":{{{echoed}"name":"f","response":{{"output":[1]}}}}}}]}}]"#,
                &array[..array.len() - 1]
            )
        );
        assert!(losses.is_empty());
    }
}

#[test]
fn an_answer_that_joins_others_goes_into_their_content() {
    let array = r#"[{"role":"model","parts":[{"functionCall":{"id":"a","name":"f"}},{"functionCall":{"id":"b","name":"g"}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{}}}]}]"#;
    let mut messages = decode(array);
    let call = messages[0].contents[1].as_tool_call().unwrap();
    let answer = call.answer(Outcome::Cancelled, Output::Text("aborted".to_owned()));
    messages[1].contents.push(answer.into());
    messages.push(Message::user("next"));
    assert_eq!(
        encode(&messages).0,
        r#"[{"role":"model","parts":[{"functionCall":{"id":"a","name":"f"}},{"functionCall":{"id":"b","name":"g"}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{}}},{"functionResponse":{"id":"b","name":"g","response":{"error":"aborted"}}}]},{"role":"user","parts":[{"text":"next"}]}]"#
    );
}

#[test]
fn parts_whose_content_was_dropped_do_not_join_the_other_side() {
    let array = r#"[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"name":"f"}},{"text":"b"}]}]"#;
    let mut messages = decode(array);
    messages.remove(1);
    assert_eq!(
        encode(&messages).0,
        r#"[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"text":"b"}]}]"#
    );
}

#[test]
fn a_result_that_nobody_asked_for_says_so() {
    let result = ToolResult::standalone(id("x"), Family::FUNCTION, Output::None);
    let (text, losses) = encode(&[Message::new(Role::Tool, vec![result.into()])]);
    assert_eq!(
        text,
        r#"[{"role":"user","parts":[{"functionResponse":{"name":"x","response":{"output":""}}}]}]"#
    );
    assert_eq!(losses, ["messages[0].contents[0] standalone_result"]);
}

#[test]
fn a_shortened_answer_still_goes_back() {
    let mut messages = decode(
        r#"[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1}}}]}]"#,
    );
    if let Body::ToolCall(call) = &mut messages[0].contents[0].body {
        call.arguments = Arguments::Text(r#"{"b": 2}"#.to_owned());
    }
    if let Body::ToolResult(result) = &mut messages[1].contents[0].body {
        result.output = Output::Text("…".to_owned());
    }
    assert_eq!(
        encode(&messages).0,
        r#"[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"b":2}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"…"}}}]}]"#
    );
}

#[test]
fn usage_counts_thoughts_and_tools() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":90,"cachedContentTokenCount":64,"candidatesTokenCount":20,"thoughtsTokenCount":11,"toolUsePromptTokenCount":9,"totalTokenCount":130}}"#;
    let usage = response(body).usage.unwrap();
    let counts = (usage.input, usage.output, usage.total);
    assert_eq!(counts, (Some(99), Some(31), Some(130)));
    assert_eq!((usage.cache_read, usage.reasoning), (Some(64), Some(11)));
    let none = response(r#"{"candidates":[],"usageMetadata":{}}"#)
        .usage
        .unwrap();
    assert_eq!((none.input, none.output), (None, None));
}

#[test]
fn finish_reasons_become_stops() {
    let stop = |reason: &str, part: &str| {
        let body = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{part}]}},"finishReason":"{reason}"}}]}}"#
        );
        response(&body).stop
    };
    let text = r#"{"text":"a"}"#;
    assert_eq!(stop("STOP", text), Stop::Done);
    assert_eq!(
        stop("STOP", r#"{"functionCall":{"name":"f"}}"#),
        Stop::ToolCalls
    );
    assert_eq!(
        stop("STOP", r#"{"executableCode":{"code":"1"}}"#),
        Stop::Done
    );
    assert_eq!(stop("MAX_TOKENS", text), Stop::Length);
    assert_eq!(stop("SPII", text), Stop::ContentFilter);
    assert_eq!(stop("CONTINUATION", text), Stop::Paused);
    assert_eq!(
        stop("MALFORMED_FUNCTION_CALL", text),
        Stop::Other("MALFORMED_FUNCTION_CALL".into())
    );
    let blocked = response(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#);
    assert_eq!(
        (blocked.stop, blocked.messages.len()),
        (Stop::ContentFilter, 0)
    );
}

#[test]
fn errors_are_read_and_written() {
    let body = r#"[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}}]"#;
    let error = CODEC.decode_error(&json::parse(body).unwrap()).unwrap();
    assert_eq!(error.message, "slow down");
    assert_eq!(error.kind.as_deref(), Some("RESOURCE_EXHAUSTED"));
    assert_eq!(error.code.as_deref(), Some("429"));
    assert_eq!(error.retry_after_ms, Some(34_400));
    assert_eq!(CODEC.encode_error(&error), body);
    let foreign = VendorError {
        wire: Wire::Anthropic,
        message: "busy".to_owned(),
        kind: Some("overloaded_error".to_owned()),
        code: None,
        param: None,
        retry_after_ms: Some(1_500),
        body: None,
    };
    assert_eq!(
        CODEC.encode_error(&foreign),
        r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.500s"}]}}"#
    );
    assert!(
        CODEC
            .decode_error(&json::parse(r#"{"error":"x"}"#).unwrap())
            .is_none()
    );
}

#[test]
fn a_response_from_elsewhere_is_a_candidate() {
    let found = Response {
        id: Some("resp_1".to_owned()),
        model: Some("m".to_owned()),
        messages: vec![Message::new(Role::Assistant, vec![Content::text("Hello.")])],
        usage: Some(Usage {
            input: Some(3),
            output: Some(5),
            reasoning: Some(2),
            ..Usage::default()
        }),
        stop: Stop::Length,
        error: None,
        vendor: None,
        service: None,
    };
    let mut losses = Losses::default();
    let text = CODEC.encode_response(&found, &mut losses);
    assert_eq!(
        text,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello."}]},"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":3,"thoughtsTokenCount":2},"modelVersion":"m","responseId":"resp_1"}"#
    );
    let back = response(&text);
    assert_eq!(
        (back.stop, back.messages[0].text()),
        (Stop::Length, "Hello.".to_owned())
    );
    assert!(losses.is_empty());
}

#[test]
fn shapes_are_told_apart() {
    let shape = |text: &str| CODEC.document_kind(&json::parse(text).unwrap());
    assert_eq!(shape(r#"{"candidates":[]}"#), DocumentKind::Response);
    assert_eq!(shape(r#"{"promptFeedback":{}}"#), DocumentKind::Response);
    assert_eq!(
        shape(r#"[{"candidates":[]},{"candidates":[]}]"#),
        DocumentKind::Response
    );
    assert_eq!(shape(r#"{"contents":[]}"#), DocumentKind::Request);
    assert_eq!(shape(r#"{"parts":[]}"#), DocumentKind::Message);
    assert_eq!(shape(r#"{"text":"a"}"#), DocumentKind::Message);
    assert_eq!(shape(r#"{"error":{}}"#), DocumentKind::Error);
    assert_eq!(shape(r#"[{"error":{}}]"#), DocumentKind::Error);
    assert_eq!(shape("{}"), DocumentKind::Unknown);
    assert_eq!(shape("[]"), DocumentKind::Unknown);
}

fn frame(data: &str) -> Frame {
    Frame {
        data: data.to_owned(),
        ..Frame::default()
    }
}

#[test]
fn text_is_told_as_it_comes_and_the_end_at_the_end() {
    let mut decoder = super::stream::Decoder::default();
    let said = |text: &str, more: &str| {
        frame(&format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}{more}}}],"responseId":"r"}}"#
        ))
    };
    let at = Place::new(0, 0, 0);
    let events = decoder.push(&said("Hel", "")).unwrap();
    let [
        Event::Started { id, .. },
        Event::Opened {
            at: opened,
            content,
        },
        delta,
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!((id.as_deref(), *opened), (Some("r"), at));
    assert_eq!(content.as_text(), Some(""));
    let text = |text: &str| Event::Delta {
        at,
        text: text.to_owned(),
    };
    assert_eq!(delta, &text("Hel"));
    assert_eq!(decoder.push(&said("lo", "")).unwrap(), [text("lo")]);
    let last = said(".", r#","finishReason":"STOP""#);
    assert_eq!(decoder.push(&last).unwrap(), [text(".")]);
    let events = decoder.end().unwrap();
    let [
        Event::Content { at: whole, content },
        Event::Finished { stop, .. },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!((*whole, content.as_text()), (at, Some("Hello.")));
    assert_eq!(stop, &Stop::Done);
    assert_eq!(decoder.end().unwrap(), []);
}

#[test]
fn a_stream_that_never_says_why_it_ends_is_cut() {
    let frames = [
        frame(
            r#"{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"functionCall":{"name":"f","args":{}}}]}}]}"#,
        ),
        frame(r#"{"candidates":[{"content":{"parts":[{"text":"b"}]}}]}"#),
    ];
    let response = assemble(&CODEC, &frames).unwrap();
    assert_eq!(response.stop, Stop::Cut);
    assert_eq!(response.messages[0].status, Some(Status::Incomplete));
    assert_eq!(
        encode(&response.messages).0,
        r#"[{"role":"model","parts":[{"text":"a","thought":true},{"functionCall":{"name":"f","args":{}}},{"text":"b"}]}]"#
    );
}

#[test]
fn an_error_inside_a_stream_ends_it() {
    let error = r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#;
    let said = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#;
    let response = assemble(&CODEC, &[frame(said), frame(error), frame(said)]).unwrap();
    assert_eq!(response.stop, Stop::Failed);
    assert_eq!(response.error.unwrap().kind.as_deref(), Some("UNAVAILABLE"));
    assert_eq!(response.messages[0].status, Some(Status::Incomplete));
    let alone = assemble(&CODEC, &[frame(error)]).unwrap();
    assert_eq!(
        alone,
        super::decode::response(&json::parse(error).unwrap()).unwrap()
    );
    let frames = CODEC.encode_stream(&alone, &mut Losses::default());
    assert_eq!(assemble(&CODEC, &frames).unwrap(), alone);
}

#[test]
fn a_stream_is_written_part_by_part() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b"},{"text":"c","thought":true},{"functionCall":{"name":"f"}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1},"responseId":"r"}"#;
    let whole = response(body);
    let frames = CODEC.encode_stream(&whole, &mut Losses::default());
    let data: Vec<_> = frames.iter().map(|frame| frame.data.as_str()).collect();
    assert_eq!(
        data,
        [
            r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b"}],"role":"model"},"index":0}],"responseId":"r"}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"c","thought":true}],"role":"model"},"index":0}],"responseId":"r"}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1},"responseId":"r"}"#,
        ]
    );
    assert_eq!(assemble(&CODEC, &frames).unwrap(), whole);
}
