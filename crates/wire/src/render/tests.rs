use throughline_model::{
    Body, CallId, Content, Family, Media, MediaKind, MediaSource, Message, Output, Role, Text,
    ToolCall, ToolResult, Wire,
};

use super::{Options, Rendered, Target, render};

fn rendered(history: &[Message], wire: Wire) -> Rendered {
    render(history, &Target::newest(wire), &Options::default())
}

fn call(id: &str) -> Content {
    ToolCall::function(CallId::natural(id).unwrap(), "moor", "{}").into()
}

fn result(id: &str, output: Output) -> Content {
    ToolResult::answering(CallId::natural(id).unwrap(), Family::FUNCTION, output).into()
}

#[test]
fn a_message_of_several_sides_is_said_whole() {
    let done = Output::Text("done".into());
    let history = [
        Message::user("Moor."),
        Message::new(
            Role::Assistant,
            vec![call("c"), result("c", done), Content::text("Moored.")],
        ),
    ];
    let found = rendered(&history, Wire::OpenAiChat);
    assert_eq!(
        found.array(),
        concat!(
            r#"[{"role":"user","content":"Moor."},"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"moor","arguments":"{}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"c","content":"done"},"#,
            r#"{"role":"assistant","content":"Moored."}]"#
        )
    );
    assert!(found.repairs.is_empty() && found.losses.is_empty());
}

#[test]
fn what_a_result_loses_is_listed_where_the_result_stands() {
    let sound = || {
        Content::new(Body::Media(Media {
            kind: MediaKind::Audio,
            media_type: Some("audio/flac".into()),
            source: MediaSource::Data("ZkxhQw==".into()),
            name: None,
            transcript: None,
        }))
    };
    let parts = || Output::Parts(vec![Content::text("listen"), sound()]);
    let history = [
        Message::user("Listen."),
        Message::new(Role::Assistant, vec![call("a"), call("b")]),
        Message::new(Role::Tool, vec![result("b", parts())]),
        Message::new(Role::Tool, vec![result("a", Output::Text("done".into()))]),
    ];
    for wire in [Wire::Anthropic, Wire::OpenAiChat] {
        let found = rendered(&history, wire.clone());
        assert!(!found.losses.is_empty());
        for loss in found.losses {
            let at = "messages[2].contents[0]";
            assert!(loss.path.starts_with(at), "{wire}: {loss}");
        }
    }
}

#[test]
fn what_a_later_side_of_a_message_loses_is_listed_where_it_stands() {
    let refusal = Content::new(Body::Refusal(Text {
        text: "No further.".into(),
        citations: Vec::new(),
    }));
    let done = Output::Text("done".into());
    let history = [
        Message::user("Moor."),
        Message::new(Role::Assistant, vec![call("c"), result("c", done), refusal]),
    ];
    for wire in [Wire::Anthropic, Wire::Gemini] {
        let found = rendered(&history, wire.clone());
        let places: Vec<&str> = found.losses.iter().map(|loss| loss.path.as_str()).collect();
        assert_eq!(places, ["messages[1].contents[2]"], "{wire}");
    }
}
