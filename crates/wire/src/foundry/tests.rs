use throughline_model::json;
use throughline_model::{
    CallId, Content, Message, Origin, Outcome, Output, Pairing, Role, Runner, ToolCall,
};

use super::Foundry;
use super::decode::respelled;
use crate::openai_responses::OpenAiResponses;
use crate::{Codec, LossKind, Losses, Shape};

fn decode(array: &str) -> Vec<Message> {
    let value = json::parse(array).unwrap();
    Foundry.decode_messages(value.as_array().unwrap()).unwrap()
}

fn contents(array: &str) -> Vec<Content> {
    let messages = decode(array).into_iter();
    messages.flat_map(|message| message.contents).collect()
}

#[test]
fn a_tool_that_the_service_runs_is_a_call_and_a_result_of_one_turn() {
    let messages = decode(
        r#"[{"type":"openapi_call","id":"oap_1","call_id":"call_1","arguments":"{}","status":"completed","name":"getTide"},
            {"type":"openapi_call_output","id":"oapo_1","call_id":"call_1","output":{"high":"04:12"},"status":"failed","name":"getTide"}]"#,
    );
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].role, Role::Assistant);
    let call = messages[0].contents[0].as_tool_call().unwrap();
    let result = messages[0].contents[1].as_tool_result().unwrap();
    assert_eq!(
        (call.family.as_str(), call.name.as_str()),
        ("openapi", "getTide")
    );
    assert_eq!(
        (call.runner, result.runner),
        (Runner::Vendor, Runner::Vendor)
    );
    assert_eq!(result.call(), &call.call);
    assert_eq!(call.call.origin(), Origin::Natural);
    assert_eq!(result.outcome, Outcome::Error);
    assert!(matches!(&result.output, Output::Json(json) if json.get() == r#"{"high":"04:12"}"#));
}

#[test]
fn output_of_any_shape_is_a_value_and_not_parts() {
    for output in [r#"[{"type":"text"}]"#, "[]", r#"["12"]"#, "7"] {
        let item = format!(
            r#"[{{"type":"bing_grounding_call_output","id":"b","call_id":"c","status":"completed","output":{output}}}]"#
        );
        let found = contents(&item);
        let result = found[0].as_tool_result().unwrap();
        assert!(matches!(&result.output, Output::Json(json) if json.get() == output));
    }
}

#[test]
fn a_memory_search_has_the_id_it_came_with_or_a_minted_one() {
    let found = contents(
        r#"[{"type":"memory_search_call","id":"ms_1","status":"completed","results":[{"memory_item":{}}]},
            {"type":"memory_search_call","results":[]},{"type":"memory_search_call","results":null}]"#,
    );
    let ids: Vec<_> = found
        .iter()
        .map(
            |content| match (content.as_tool_call(), content.as_tool_result()) {
                (Some(call), _) => ("call", call.call.origin()),
                (_, Some(result)) => ("result", result.call().origin()),
                _ => panic!("{content:?}"),
            },
        )
        .collect();
    assert_eq!(
        ids,
        [
            ("call", Origin::Item),
            ("result", Origin::Item),
            ("call", Origin::Minted),
            ("result", Origin::Minted),
            ("call", Origin::Minted),
        ]
    );
}

#[test]
fn outputs_that_nobody_called_stand_alone() {
    let found = contents(
        r#"[{"type":"workflow_action","id":"wfa_1","kind":"SendActivity","action_id":"a","status":"cancelled"},
            {"type":"oauth_consent_request","id":"oacr_1","consent_link":"https://login.example/","server_label":"harbour-mcp"}]"#,
    );
    let seen: Vec<_> = found
        .iter()
        .filter_map(Content::as_tool_result)
        .map(|result| {
            assert_eq!(result.pairing(), Pairing::Standalone);
            assert_eq!(result.call().origin(), Origin::Item);
            (
                result.call().value(),
                result.name.as_deref(),
                result.outcome,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("wfa_1", Some("SendActivity"), Outcome::Cancelled),
            ("oacr_1", Some("harbour-mcp"), Outcome::Ok),
        ]
    );
}

#[test]
fn a_tag_is_known_with_and_without_the_word_preview() {
    let cases = [
        ("a2a_call", Some("a2a_preview_call")),
        ("a2a_call_output", Some("a2a_preview_call_output")),
        ("openapi_preview_call_output", Some("openapi_call_output")),
        ("web_search_preview_call", None),
        ("memory_search_preview_call", None),
        ("a2a_preview_preview_call", None),
        ("_preview", None),
        ("", None),
    ];
    for (tag, expected) in cases {
        assert_eq!(respelled(tag).map(|row| row.tag), expected, "{tag}");
    }
}

#[test]
fn items_made_here_have_their_type() {
    let call = ToolCall::function(CallId::natural(&"x".repeat(80)).unwrap(), "f", "{}");
    let result = call.answer(Outcome::Ok, Output::Text("ok".to_owned()));
    let short = crate::foreign::short_id(call.call.value(), 64).into_owned();
    let messages = [
        Message::user("hi"),
        Message::new(Role::Assistant, vec![call.into()]),
        Message::new(Role::Tool, vec![result.into()]),
    ];
    let mut losses = Losses::default();
    assert_eq!(
        Foundry.encode_messages(&messages, &mut losses),
        format!(
            r#"[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"hi"}}]}},{{"type":"function_call","call_id":"{short}","name":"f","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"{short}","output":"ok"}}]"#
        )
    );
    assert!(losses.is_empty() && short.len() <= 64);
}

#[test]
fn what_foundry_ran_goes_to_nobody_else() {
    let messages = decode(
        r#"[{"type":"a2a_preview_call","id":"a","call_id":"c","arguments":"{}","status":"completed","name":"n"},
            {"type":"a2a_preview_call_output","id":"b","call_id":"c","status":"completed","name":"n"},
            {"type":"structured_outputs","id":"s","output":1}]"#,
    );
    let mut losses = Losses::default();
    assert_eq!(
        OpenAiResponses.encode_messages(&messages, &mut losses),
        "[]"
    );
    let kinds: Vec<_> = losses.as_slice().iter().map(|loss| loss.kind).collect();
    let expected = [
        LossKind::HostedTool,
        LossKind::HostedTool,
        LossKind::VendorItem,
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn errors_and_shapes_are_those_of_openai() {
    let text = r#"{"error":{"message":"Invalid value: ''.","type":"invalid_request_error","param":"input[0]","code":"invalid_value"}}"#;
    let value = json::parse(text).unwrap();
    assert_eq!(Foundry.shape(&value), Shape::Error);
    let error = Foundry.decode_error(&value).unwrap();
    assert_eq!(error.wire, Foundry.wire());
    assert_eq!(Foundry.encode_error(&error), text);
}
