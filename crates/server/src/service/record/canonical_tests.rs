use throughline_model::json;
use throughline_model::{Message, Wire};
use throughline_wire::codec;

use super::canonical;

/// The messages of a list in a vendor's format.
fn messages(wire: &Wire, list: &str) -> Vec<Message> {
    let value = json::parse(list).unwrap();
    let codec = codec(wire).unwrap();
    codec.decode_messages(value.as_array().unwrap()).unwrap()
}

fn all(wire: &Wire, list: &str) -> Vec<Vec<u8>> {
    messages(wire, list).iter().map(canonical).collect()
}

#[test]
fn what_clients_do_not_send_back_faithfully_makes_no_difference() {
    let same = [
        (
            Wire::Anthropic,
            r#"[{"role":"user","content":"hello"}]"#,
            r#"[{"role":"user","content":[{"type":"text","text":"hel","cache_control":{"type":"ephemeral"}},{"type":"text","text":"lo\n"}]}]"#,
        ),
        (
            Wire::Anthropic,
            r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1,"b":[2.0,"x"]}}]}]"#,
            r#"[{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"f","input":{ "b": [2, "\u0078"], "a": 1.0 },"cache_control":null}]}]"#,
        ),
        (
            Wire::Anthropic,
            r#"[{"role":"user","content":[{"type":"text","text":"<system-reminder>Today is Monday.</system-reminder>"},{"type":"text","text":"go on"}]}]"#,
            r#"[{"role":"user","content":[{"type":"text","text":"go on\n<system-reminder>Today is Tuesday.</system-reminder>\n"}]}]"#,
        ),
        (
            Wire::OpenAiChat,
            r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]}]"#,
            r#"[{"role":"assistant","content":"","tool_calls":[{"id":"d","type":"function","function":{"name":"f","arguments":"{ }"}}]}]"#,
        ),
        (
            Wire::OpenAiChat,
            r#"[{"role":"system","content":"x"}]"#,
            r#"[{"role":"developer","content":[{"type":"text","text":"x"}]}]"#,
        ),
    ];
    for (wire, one, other) in same {
        assert_eq!(all(&wire, one), all(&wire, other), "{one}\n{other}");
    }
}

#[test]
fn what_was_said_makes_a_difference() {
    let different = [
        (
            Wire::OpenAiChat,
            r#"[{"role":"user","content":"a b"}]"#,
            r#"[{"role":"user","content":"a  b"}]"#,
        ),
        (
            Wire::OpenAiChat,
            r#"[{"role":"user","content":"x"}]"#,
            r#"[{"role":"assistant","content":"x"}]"#,
        ),
        (
            Wire::OpenAiChat,
            r#"[{"role":"user","content":"x","name":"ada"}]"#,
            r#"[{"role":"user","content":"x","name":"eve"}]"#,
        ),
        (
            Wire::OpenAiChat,
            r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"id\":1}"}}]}]"#,
            r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"id\":2}"}}]}]"#,
        ),
        (
            Wire::OpenAiChat,
            r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"12345678901234567890"}}]}]"#,
            r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"12345678901234567891"}}]}]"#,
        ),
        (
            Wire::Anthropic,
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"no","is_error":true}]}]"#,
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"no"}]}]"#,
        ),
        (
            Wire::Anthropic,
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"},{"type":"text","text":"b"}]}]"#,
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ab"}]}]"#,
        ),
        (
            Wire::Anthropic,
            r#"[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]"#,
            r#"[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAB"}}]}]"#,
        ),
        (
            Wire::Anthropic,
            r#"[{"role":"user","content":"a <system-reminder> that does not end"}]"#,
            r#"[{"role":"user","content":"a"}]"#,
        ),
    ];
    for (wire, one, other) in different {
        assert_ne!(all(&wire, one), all(&wire, other), "{one}\n{other}");
    }
}

#[test]
fn a_conversation_is_the_same_in_either_format() {
    let chat = r#"[
        {"role":"user","content":"look"},
        {"role":"assistant","content":"I look.","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]},
        {"role":"tool","tool_call_id":"c","content":"seen"},
        {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}
    ]"#;
    let anthropic = r#"[
        {"role":"user","content":"look"},
        {"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c","name":"f","input":{"a":1}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"seen"}]}]},
        {"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}
    ]"#;
    assert_eq!(
        all(&Wire::OpenAiChat, chat),
        all(&Wire::Anthropic, anthropic)
    );
}
