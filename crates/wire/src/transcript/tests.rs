use throughline_model::{Outcome, Role, pairs};

use super::{Limits, TranscriptShape, read, write};
use crate::{Format, Losses, Problem};

fn responses() -> Format {
    "openai-responses".parse().unwrap()
}

#[test]
fn a_trajectory_is_read_with_its_rounds() {
    let file = br#"{"format":"throughline.trajectory/1","id":"t","messages":[
        {"seq":0,"role":"system","text":"Be brief."},
        {"seq":1,"role":"user","text":"go","kind":"meta"},
        {"seq":2,"role":"assistant","text":"","reasoning":"hm","tool_calls":[{"id":"a","name":"f","arguments":{"x":1}},{"id":"b","name":"g","arguments":{}}]},
        {"seq":3,"role":"tool","text":"1","tool_call_id":"a","tool_name":"f"},
        {"seq":4,"role":"tool","text":"no","tool_call_id":"b","tool_name":"g","is_error":true},
        {"seq":5,"role":"assistant","text":"done","usage":{"input":3,"output":4}}]}"#;
    let transcript = read(file, &Format::Neutral, Limits::default()).unwrap();
    let messages = &transcript.request.messages;
    let roles: Vec<_> = messages.iter().map(|message| &message.role).collect();
    assert_eq!(
        roles,
        [
            &Role::System,
            &Role::User,
            &Role::Assistant,
            &Role::Tool,
            &Role::Assistant
        ]
    );
    assert_eq!(pairs(messages).len(), 2);
    let failed = messages[3].contents[1].as_tool_result().unwrap();
    assert_eq!(failed.outcome, Outcome::Error);
    assert_eq!(
        messages[1].meta.as_ref().unwrap().get(),
        r#"{"kind":"meta"}"#
    );
    assert_eq!(messages[4].usage.as_ref().unwrap().output, Some(4));
}

#[test]
fn a_request_keeps_its_shape_and_keys_through_neutral() {
    let file = br#"{"model":"m","tools":[{"type":"web_search"}],"input":[{"role":"user","content":"hi"}],"instructions":"x"}"#;
    let transcript = read(file, &responses(), Limits::default()).unwrap();
    assert_eq!(transcript.shape, TranscriptShape::Request);
    let neutral = write(&transcript, &Format::Neutral, &mut Losses::default());
    let again = read(neutral.as_bytes(), &Format::Neutral, Limits::default()).unwrap();
    assert_eq!(again, transcript);
    let back = write(&again, &responses(), &mut Losses::default());
    assert_eq!(back.as_bytes(), file);
}

#[test]
fn a_capture_without_its_last_blank_line_is_read() {
    let file = "\u{FEFF}: comment\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"role\":\"assistant\",\"content\":\"hi\"}}";
    let transcript = read(file.as_bytes(), &responses(), Limits::default()).unwrap();
    assert_eq!(transcript.request.messages[0].text(), "hi");
}

#[test]
fn a_bad_frame_is_named() {
    let file = b"data: {}\n\ndata: {oops\n\n";
    let error = read(file, &responses(), Limits::default()).unwrap_err();
    assert_eq!(error.path, "event[1]");
}

#[test]
fn an_unknown_neutral_format_is_refused_by_name() {
    let error = read(
        br#"{"format":"other/1"}"#,
        &Format::Neutral,
        Limits::default(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("other/1"), "{error}");
    assert!(matches!(error.problem, Problem::Expected { .. }));
}
