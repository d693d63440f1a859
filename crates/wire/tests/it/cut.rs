//! Calls that the output limit cut off, in every format: marked, whole and streamed alike, and written as they
//! came.

use crate::exact::response_survives;
use throughline_model::{Arguments, Content, Response, Status, Stop, Wire};
use throughline_wire::sse::Frame;
use throughline_wire::{assemble, codec};

/// Arguments that broke off.
const BROKEN: &str = r#"{"port": "Bre"#;
/// Arguments that are JSON, whether or not they are all that was meant.
const WHOLE: &str = r#"{"port":"Brest"}"#;

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Limit,
    Calls,
}

/// What the last item of a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// A call with these arguments as text, or as a value if they are JSON.
    Call(&'static str),
    /// A text behind the call.
    Text,
}

fn string(text: &str) -> String {
    let mut out = String::new();
    throughline_model::json::push_string(&mut out, text);
    out
}

/// A body with a text, a call that is whole, one more call, and perhaps a text behind it.
fn body(wire: &Wire, last: Last, end: End) -> String {
    let arguments = match last {
        Last::Call(arguments) => arguments,
        Last::Text => WHOLE,
    };
    let text = |item: &str| match last {
        Last::Text => format!(",{item}"),
        Last::Call(_) => String::new(),
    };
    let is_json = arguments == WHOLE;
    match wire {
        Wire::OpenAiResponses | Wire::Foundry => {
            let call = |id: &str, arguments: &str, status: &str| {
                format!(
                    r#"{{"type":"function_call","id":"fc_{id}","call_id":"call_{id}","name":"tide","arguments":{},"status":"{status}"}}"#,
                    string(arguments)
                )
            };
            let (status, details, item) = match end {
                End::Limit => (
                    "incomplete",
                    r#"{"reason":"max_output_tokens"}"#,
                    if last == Last::Text {
                        "completed"
                    } else {
                        "incomplete"
                    },
                ),
                End::Calls => ("completed", "null", "completed"),
            };
            let behind = text(
                r#"{"type":"message","id":"msg_2","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"and","annotations":[]}]}"#,
            );
            format!(
                r#"{{"id":"resp_1","object":"response","created_at":1,"status":"{status}","error":null,"incomplete_details":{details},"model":"m","output":[{},{}{behind}],"parallel_tool_calls":true,"tool_choice":"auto","tools":[]}}"#,
                call("1", WHOLE, "completed"),
                call("2", arguments, item)
            )
        }
        Wire::OpenAiChat => {
            let call = |id: &str, arguments: &str| {
                format!(
                    r#"{{"id":"call_{id}","type":"function","function":{{"name":"tide","arguments":{}}}}}"#,
                    string(arguments)
                )
            };
            let finish = match end {
                End::Limit => "length",
                End::Calls => "tool_calls",
            };
            format!(
                r#"{{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"Let me see.","tool_calls":[{},{}]}},"finish_reason":"{finish}"}}]}}"#,
                call("1", WHOLE),
                call("2", arguments)
            )
        }
        Wire::Anthropic => {
            let call = |id: &str, input: &str| {
                format!(r#"{{"type":"tool_use","id":"toolu_{id}","name":"tide","input":{input}}}"#)
            };
            let finish = match end {
                End::Limit => "max_tokens",
                End::Calls => "tool_use",
            };
            // What does not parse is kept as a string, as it is put together from a stream.
            let input = if is_json {
                arguments.to_owned()
            } else {
                string(arguments)
            };
            let behind = text(r#"{"type":"text","text":"and"}"#);
            format!(
                r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"Let me see."}},{},{}{behind}],"stop_reason":"{finish}","stop_sequence":null,"usage":{{"input_tokens":1,"output_tokens":2}}}}"#,
                call("1", WHOLE),
                call("2", &input)
            )
        }
        Wire::Gemini => {
            let call =
                |args: &str| format!(r#"{{"functionCall":{{"name":"tide","args":{args}}}}}"#);
            let finish = match end {
                End::Limit => "MAX_TOKENS",
                End::Calls => "STOP",
            };
            // Arguments are a value here: the vendor closes what its model left open.
            let args = if is_json {
                arguments
            } else {
                r#"{"port":"Bre"}"#
            };
            let behind = text(r#"{"text":"and"}"#);
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"text":"Let me see."}},{},{}{behind}],"role":"model"}},"finishReason":"{finish}","index":0}}],"modelVersion":"m","responseId":"r"}}"#,
                call(WHOLE),
                call(args)
            )
        }
        Wire::GeminiInteractions => {
            let call = |id: &str, arguments: &str| {
                format!(
                    r#"{{"type":"function_call","id":"f{id}","name":"tide","arguments":{arguments}}}"#
                )
            };
            let status = match end {
                End::Limit => "incomplete",
                End::Calls => "requires_action",
            };
            let arguments = if is_json {
                arguments.to_owned()
            } else {
                string(arguments)
            };
            let behind =
                text(r#"{"type":"model_output","content":[{"type":"text","text":"and"}]}"#);
            format!(
                r#"{{"id":"int_1","object":"interaction","model":"m","role":"model","status":"{status}","steps":[{},{}{behind}]}}"#,
                call("1", WHOLE),
                call("2", &arguments)
            )
        }
        Wire::Other(name) => panic!("no body of {name}"),
    }
}

/// How far each call got.
fn statuses(response: &Response) -> Vec<Option<Status>> {
    let contents = response.messages.iter().flat_map(|one| &one.contents);
    let calls = contents.filter_map(Content::as_tool_call);
    calls.map(|call| call.status.clone()).collect()
}

/// How the calls of a body are marked, whole and streamed; the body comes back as it was.
fn marked(wire: &Wire, body: &str) -> Vec<bool> {
    let codec = codec(wire).unwrap();
    let response = response_survives(codec, body).unwrap_or_else(|why| panic!("{wire}: {why}"));
    let is_cut = |status: &Option<Status>| *status == Some(Status::Incomplete);
    statuses(&response).iter().map(is_cut).collect()
}

/// Every format, every kind of end: the one call that was being written is marked.
fn only_the_last_call_is_marked(wire: &Wire) {
    for arguments in [BROKEN, WHOLE] {
        let cut = body(wire, Last::Call(arguments), End::Limit);
        assert_eq!(marked(wire, &cut), [false, true], "{wire}: {arguments}");
    }
    let whole = body(wire, Last::Call(WHOLE), End::Calls);
    assert_eq!(marked(wire, &whole), [false, false], "{wire}");
    // What was being written is the text behind the calls.
    if *wire != Wire::OpenAiChat {
        let cut = body(wire, Last::Text, End::Limit);
        assert_eq!(marked(wire, &cut), [false, false], "{wire}");
    }
}

#[test]
fn b247_responses_marks_the_call_that_the_output_limit_cut_off() {
    only_the_last_call_is_marked(&Wire::OpenAiResponses);
    status_goes_before_the_place(&Wire::OpenAiResponses);
}

#[test]
fn b247_foundry_marks_the_call_that_the_output_limit_cut_off() {
    only_the_last_call_is_marked(&Wire::Foundry);
    status_goes_before_the_place(&Wire::Foundry);
}

/// Where items have a status, it says which was cut; where it is missing, the place does.
fn status_goes_before_the_place(wire: &Wire) {
    let cut = body(wire, Last::Call(BROKEN), End::Limit);
    let done = cut.replace(r#""status":"incomplete"}]"#, r#""status":"completed"}]"#);
    assert_ne!(done, cut);
    assert_eq!(marked(wire, &done), [false, false], "{wire}");
    let silent = cut.replace(r#","status":"incomplete"}]"#, "}]");
    assert_ne!(silent, cut);
    assert_eq!(marked(wire, &silent), [false, true], "{wire}");
    let first = cut
        .replace(r#""status":"completed"}"#, r#""status":"incomplete"}"#)
        .replace(r#""status":"incomplete"}]"#, r#""status":"completed"}]"#);
    assert_eq!(marked(wire, &first), [true, false], "{wire}");
}

#[test]
fn b247_chat_marks_the_call_that_the_output_limit_cut_off() {
    let wire = Wire::OpenAiChat;
    only_the_last_call_is_marked(&wire);
    // Each alternative ends for a reason of its own.
    let choice = |index: usize, finish: &str| {
        format!(
            r#"{{"index":{index},"message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{index}","type":"function","function":{{"name":"tide","arguments":"{{}}"}}}}]}},"finish_reason":"{finish}"}}"#
        )
    };
    for (first, second) in [("length", "tool_calls"), ("tool_calls", "length")] {
        let body = format!(
            r#"{{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{},{}]}}"#,
            choice(0, first),
            choice(1, second)
        );
        assert_eq!(
            marked(&wire, &body),
            [first == "length", second == "length"]
        );
    }
}

#[test]
fn b247_anthropic_marks_the_call_that_the_output_limit_cut_off() {
    only_the_last_call_is_marked(&Wire::Anthropic);
    // As the vendor streams it: the input breaks off, and the reason follows.
    let stream = |input: &[&str], reason: &str| {
        let mut frames = vec![
            r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}"#.to_owned(),
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"tide","input":{}}}"#.to_owned(),
        ];
        frames.extend(input.iter().map(|part| {
            format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":{}}}}}"#,
                string(part)
            )
        }));
        frames.extend([
            r#"{"type":"content_block_stop","index":0}"#.to_owned(),
            format!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":9}}}}"#
            ),
            r#"{"type":"message_stop"}"#.to_owned(),
        ]);
        read(&Wire::Anthropic, &frames)
    };
    for (input, reason, cut) in [
        (&[r#"{"port": "#, r#""Bre"#][..], "max_tokens", true),
        (&[WHOLE][..], "max_tokens", true),
        (&[][..], "max_tokens", true),
        (&[WHOLE][..], "tool_use", false),
    ] {
        let response = stream(input, reason);
        let status = cut.then_some(Status::Incomplete);
        assert_eq!(statuses(&response), [status], "{input:?} {reason}");
        let call = response.messages[0].contents[0].as_tool_call().unwrap();
        match &call.arguments {
            Arguments::Text(text) => assert_eq!(*text, input.concat()),
            Arguments::Json(json) if input.is_empty() => assert_eq!(json.get(), "{}"),
            Arguments::Json(json) => assert_eq!(json.get(), WHOLE),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn b247_gemini_marks_the_call_that_the_output_limit_cut_off() {
    let wire = Wire::Gemini;
    only_the_last_call_is_marked(&wire);
    // A signature may follow the call in a part without text.
    let cut = body(&wire, Last::Call(WHOLE), End::Limit);
    let signed = cut.replace(
        r#"}}],"role""#,
        r#"}},{"text":"","thoughtSignature":"c2VhbA=="}],"role""#,
    );
    assert_ne!(signed, cut);
    assert_eq!(marked(&wire, &signed), [false, true]);
    // Arguments in fragments, of which the last never came.
    let begun = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"tide","willContinue":true}}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r"}"#;
    let more = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.port","stringValue":"Bre","willContinue":true}],"willContinue":true}}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r"}"#;
    let end = |reason: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":""}}],"role":"model"}},"finishReason":"{reason}","index":0}}],"modelVersion":"m","responseId":"r"}}"#
        )
    };
    let response = read(&wire, &[begun.into(), more.into(), end("MAX_TOKENS")]);
    assert_eq!(response.stop, Stop::Length);
    assert_eq!(statuses(&response), [Some(Status::Incomplete)]);
    let response = read(&wire, &[begun.into(), more.into(), end("STOP")]);
    assert_eq!(statuses(&response), [None]);
}

#[test]
fn b247_gemini_interactions_marks_the_call_that_the_output_limit_cut_off() {
    only_the_last_call_is_marked(&Wire::GeminiInteractions);
}

/// Read a stream.
fn read(wire: &Wire, frames: &[String]) -> Response {
    let frame = |data: &String| Frame {
        data: data.clone(),
        ..Frame::default()
    };
    let frames: Vec<Frame> = frames.iter().map(frame).collect();
    assemble(codec(wire).unwrap(), &frames).unwrap()
}
