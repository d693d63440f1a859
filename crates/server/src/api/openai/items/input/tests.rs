use throughline_model::json::{RawJson, parse};
use throughline_model::{Body, CallId, Content, Message, Reasoning, Role, ToolCall, Vendor, Wire};
use throughline_wire::Losses;
use throughline_wire::openai_responses::CODEC;

use super::{InputItems, InputPart};
use crate::ApiError;
use crate::api::openai::items::envelope;

fn read(items: &str) -> Result<InputItems, ApiError> {
    let body = format!("{{\"input\":{items}}}");
    InputItems::of(&parse(&body).unwrap())
}

/// The messages of an input that is nothing else.
fn messages(items: &str) -> Vec<Message> {
    let input = read(items).unwrap();
    let [InputPart::Messages(messages)] = input.parts() else {
        panic!("{:?}", input.parts());
    };
    messages.clone()
}

fn roles(items: &str) -> Vec<Role> {
    messages(items)
        .into_iter()
        .map(|message| message.role)
        .collect()
}

#[test]
fn easy_forms_are_messages() {
    assert_eq!(messages(r#""hi""#), [Message::user("hi")]);
    assert_eq!(
        roles(
            r#"[{"role":"system","content":"a"},{"role":"user","content":[{"type":"input_text","text":"b"}]},
                  {"role":"assistant","content":"c"},{"type":"message","role":"developer","content":"d"}]"#
        ),
        [Role::System, Role::User, Role::Assistant, Role::Developer]
    );
}

#[test]
fn calls_and_their_outputs_are_rounds() {
    let items = r#"[{"role":"user","content":"a"},
        {"type":"reasoning","id":"rs_1","summary":[]},
        {"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"},
        {"type":"custom_tool_call","call_id":"c2","name":"g","input":"free"},
        {"type":"function_call_output","call_id":"c1","output":"1"},
        {"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"2"}]},
        {"type":"brand_new","x":1.50}]"#;
    assert_eq!(
        roles(items),
        [Role::User, Role::Assistant, Role::Tool, Role::Assistant]
    );
}

#[test]
fn what_is_sent_can_be_written_again_exactly() {
    let items = r#"[{"role":"user","content":"a"},{"type":"brand_new","x":1.50,"y":{"b":1,"a":2}},{"id":"fc_1","type":"function_call","call_id":"c1","name":"f","arguments":"{ }","namespace":"n"},{"type":"function_call_output","call_id":"c1","output":"\ud83d\ude00"}]"#;
    let mut losses = Losses::default();
    let again = CODEC.encode_messages(&messages(items), &mut losses);
    assert_eq!(again, items);
}

#[test]
fn references_and_answers_stand_apart_and_in_order() {
    let input = read(
        r#"[{"role":"user","content":"a"},{"type":"item_reference","id":"msg_1"},{"id":"fc_1"},
            {"id":"rs_1","type":null},
            {"type":"mcp_approval_response","approval_request_id":"appr_1","approve":false,"reason":"no"},
            {"role":"user","content":"b"}]"#,
    )
    .unwrap();
    let reference = |id: &str, index| InputPart::Reference {
        id: id.to_owned(),
        index,
    };
    let [
        InputPart::Messages(first),
        one,
        two,
        three,
        InputPart::Approval {
            request,
            approve: false,
            reason: Some(reason),
        },
        InputPart::Messages(last),
    ] = input.parts()
    else {
        panic!("{:?}", input.parts());
    };
    assert_eq!(
        [one, two, three],
        [
            &reference("msg_1", 1),
            &reference("fc_1", 2),
            &reference("rs_1", 3)
        ]
    );
    assert_eq!((request.as_str(), reason.as_str()), ("appr_1", "no"));
    assert_eq!(
        (first[0].text().as_str(), last[0].text().as_str()),
        ("a", "b")
    );
}

#[test]
fn an_item_that_comes_twice_is_kept_once() {
    let input = read(
        r#"[{"id":"m1","role":"user","content":"a"},{"content":"a","role":"user","id":"m1"},
            {"role":"user","content":"a"}]"#,
    )
    .unwrap();
    assert_eq!(input.items().len(), 2);
    let error = read(
        r#"[{"id":"m1","role":"user","content":"a"},{"id":"m1","role":"user","content":"b"}]"#,
    )
    .unwrap_err();
    assert_eq!(
        error.message,
        "Duplicate item found with id m1. Remove duplicate items from your input and try again."
    );
    assert_eq!((error.status, error.param.as_deref()), (400, Some("input")));
}

#[test]
fn some_items_mean_what_they_say_without_the_others() {
    let input = read(
        r#"[{"id":"m1","role":"user","content":"a"},{"role":"user","content":"b"},{"id":"x"}]"#,
    )
    .unwrap();
    let items = input.items().iter();
    let wanted: Vec<_> = items
        .filter(|item| item.id.as_deref() != Some("m1"))
        .collect();
    let some = super::parts(&wanted).unwrap();
    let [InputPart::Messages(messages), InputPart::Reference { .. }] = some.as_slice() else {
        panic!("{some:?}");
    };
    assert_eq!(messages[0].text(), "b");
}

#[test]
fn reasoning_that_a_client_carried_is_the_vendors_again() {
    let block = r#"{"type":"thinking","thinking":"","signature":"c2ln"}"#;
    let thinking = Content::new(Body::Reasoning(Reasoning {
        summary: Vec::new(),
        text: vec!["hm".to_owned()],
        sealed: true,
    }))
    .with_vendor(Vendor::part(Wire::Anthropic, RawJson::new(block).unwrap()));
    let sealed = envelope::seal(&thinking, "claude");
    let said = messages(&format!(
        r#"[{{"type":"reasoning","id":"rs_7","summary":[],"encrypted_content":"{sealed}"}},
            {{"type":"function_call","call_id":"c","name":"f","arguments":"{{}}"}}]"#
    ));
    let [Message { contents, .. }] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert_eq!(
        (&contents[0].body, &contents[0].vendor),
        (&thinking.body, &thinking.vendor)
    );
    assert_eq!(envelope::item_id_of(&contents[0]).as_deref(), Some("rs_7"));
    assert!(contents[1].as_tool_call().is_some());
}

#[test]
fn the_sealed_reasoning_of_others_is_left_as_it_is() {
    let items = r#"[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA"}]"#;
    let mut losses = Losses::default();
    let again = CODEC.encode_messages(&messages(items), &mut losses);
    assert_eq!(again, items);
    let damaged = items.replace("gAAAA", "eyJ0aHJvdWdobGluZSI6AAAA");
    let error = read(&damaged).unwrap_err();
    assert_eq!(error.code.as_deref(), Some("invalid_encrypted_content"));
}

#[test]
fn a_signature_that_a_client_carried_is_on_its_call_again() {
    let part = r#"{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}"#;
    let call = ToolCall::function(CallId::natural("c").unwrap(), "f", "{}");
    let signed =
        Content::from(call).with_vendor(Vendor::part(Wire::Gemini, RawJson::new(part).unwrap()));
    assert!(envelope::is_signed(&signed));
    let sealed = envelope::seal(&signed, "gemini");
    let carrier = format!(
        r#"{{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"{sealed}"}}"#
    );
    let said = messages(&format!(
        r#"[{{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":"{{}}"}},{carrier}]"#
    ));
    let [Message { contents, .. }] = said.as_slice() else {
        panic!("{said:?}");
    };
    let [found] = contents.as_slice() else {
        panic!("{contents:?}");
    };
    assert_eq!((&found.body, &found.vendor), (&signed.body, &signed.vendor));
    assert_eq!(envelope::item_id_of(found).as_deref(), Some("fc_1"));
    // Alone it means nothing.
    assert_eq!(read(&format!("[{carrier}]")).unwrap().parts(), []);
}
