use throughline_model::json;
use throughline_model::{
    Arguments, Body, CallId, Content, Family, Media, MediaKind, MediaSource, Message, Origin,
    Outcome, Output, Pairing, Response, Role, Runner, Scope, Stop, ToolCall, ToolResult, Usage,
    VendorError, Wire,
};

use super::CODEC;
use super::types::renamed_type;
use crate::openai_responses;
use crate::{DocumentKind, LossKind, Losses};

fn decode(array: &str) -> Vec<Message> {
    let value = json::parse(array).unwrap();
    CODEC.decode_messages(value.as_array().unwrap()).unwrap()
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
        assert_eq!(renamed_type(tag).map(|row| row.tag), expected, "{tag}");
    }
}

#[test]
fn items_made_here_have_their_type() {
    let call = ToolCall::function(CallId::natural(&"x".repeat(80)).unwrap(), "f", "{}");
    let result = call.answer(Outcome::Ok, Output::Text("ok".to_owned()));
    let short = crate::foreign::fit_id(call.call.value(), 64).into_owned();
    let messages = [
        Message::user("hi"),
        Message::new(Role::Assistant, vec![call.into()]),
        Message::new(Role::Tool, vec![result.into()]),
    ];
    let mut losses = Losses::default();
    assert_eq!(
        CODEC.encode_messages(&messages, &mut losses),
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
        openai_responses::CODEC.encode_messages(&messages, &mut losses),
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
    assert_eq!(CODEC.document_kind(&value), DocumentKind::Error);
    let error = CODEC.decode_error(&value).unwrap();
    assert_eq!(error.wire, CODEC.wire());
    assert_eq!(CODEC.encode_error(&error), text);
}

/// An answer from elsewhere: a text and two calls.
fn foreign_response() -> Response {
    let custom = ToolCall {
        family: Family::CUSTOM,
        arguments: Arguments::Free("select 1".into()),
        ..ToolCall::function(CallId::natural("call_2").unwrap(), "sql", "")
    };
    let contents = vec![
        Content::text("so"),
        ToolCall::function(CallId::natural("call_1").unwrap(), "f", "{}").into(),
        custom.into(),
    ];
    Response {
        id: Some("msg_1".to_owned()),
        model: None,
        messages: vec![Message::new(Role::Assistant, contents)],
        usage: Some(Usage {
            input: Some(1),
            output: Some(2),
            ..Usage::default()
        }),
        stop: Stop::ToolCalls,
        error: None,
        vendor: None,
        service: None,
    }
}

#[test]
fn a_response_made_here_has_what_foundry_wants() {
    let mut losses = Losses::default();
    let made = foreign_response();
    let body = CODEC.encode_response(&made, &mut losses);
    assert!(losses.is_empty());
    let id = |prefix: &str, number: usize| {
        let id = CallId::minted(Scope::Response("msg_1"), (1 << 33) + number);
        id.value().replacen("tc", prefix, 1)
    };
    assert_eq!(
        body,
        format!(
            concat!(
                r#"{{"id":"msg_1","object":"response","created_at":0,"status":"completed","error":null,"incomplete_details":null,"instructions":null,"agent_reference":null,"model":"unknown","output":["#,
                r#"{{"id":"{}","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"so","annotations":[]}}]}},"#,
                r#"{{"id":"{}","status":"completed","type":"function_call","call_id":"call_1","name":"f","arguments":"{{}}"}},"#,
                r#"{{"id":"{}","status":"completed","type":"custom_tool_call","call_id":"call_2","name":"sql","input":"select 1"}}"#,
                r#"],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":{{"input_tokens":1,"input_tokens_details":{{"cached_tokens":0,"cache_write_tokens":0}},"output_tokens":2,"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":3}}}}"#
            ),
            id("msg", 0),
            id("fc", 1),
            id("ctc", 2)
        )
    );
    let frames = CODEC.encode_stream(&made, &mut losses);
    let whole = CODEC.decode_response(&json::parse(&body).unwrap()).unwrap();
    assert_eq!(crate::assemble(&CODEC, &frames).unwrap(), whole);
    // Usage comes with the end, and arguments that are done have the name of their function.
    assert!(!frames[0].data.contains("usage"));
    let done = |frame: &&crate::sse::Frame| {
        frame.event.as_deref() == Some("response.function_call_arguments.done")
    };
    let done = frames.iter().find(done).unwrap();
    assert!(done.data.contains(r#""name":"f","arguments":"{}""#));
}

#[test]
fn words_of_a_model_from_elsewhere_are_parts_here() {
    let refusal = Content::new(Body::Refusal(throughline_model::Text {
        text: "no".into(),
        citations: vec![],
    }));
    let messages = [
        Message::new(Role::Assistant, vec![Content::text("so"), refusal]),
        Message::new(Role::named("critic"), vec![Content::text("a")]),
        Message::new(Role::named("chorus"), vec![Content::text("b")]),
    ];
    let mut losses = Losses::default();
    assert_eq!(
        CODEC.encode_messages(&messages, &mut losses),
        concat!(
            r#"[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so","annotations":[]},{"type":"refusal","refusal":"no"}]},"#,
            r#"{"type":"message","role":"critic","content":[{"type":"input_text","text":"a"}]},"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"b"}]}]"#
        )
    );
    let kinds: Vec<_> = losses.as_slice().iter().map(|loss| loss.kind).collect();
    assert_eq!(kinds, [LossKind::Role]);
}

#[test]
fn there_is_no_sound_here_and_no_call_id_of_local_shells() {
    let sound = Content::new(Body::Media(Media {
        kind: MediaKind::Audio,
        media_type: Some("audio/wav".to_owned()),
        source: MediaSource::Data("UklG".to_owned()),
        name: None,
        transcript: None,
    }));
    let call = CallId::natural("c").unwrap();
    let output = Output::Text("ok".to_owned());
    let result = ToolResult::answering(call, Family::LOCAL_SHELL, output);
    let messages = [
        Message::new(Role::User, vec![Content::text("hear"), sound]),
        Message::new(Role::Tool, vec![result.into()]),
    ];
    let mut losses = Losses::default();
    assert_eq!(
        CODEC.encode_messages(&messages, &mut losses),
        concat!(
            r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"hear"}]},"#,
            r#"{"type":"local_shell_call_output","id":"c","output":"ok"}]"#
        )
    );
    let kinds: Vec<_> = losses.as_slice().iter().map(|loss| loss.kind).collect();
    assert_eq!(kinds, [LossKind::Media]);
}

#[test]
fn a_code_that_only_openai_has_becomes_a_server_error() {
    let mut made = foreign_response();
    made.error = Some(VendorError {
        wire: Wire::OpenAiResponses,
        message: "down".to_owned(),
        kind: None,
        code: Some("misalignment_policy_violation".to_owned()),
        param: None,
        retry_after_ms: None,
        body: None,
    });
    let mut losses = Losses::default();
    let body = CODEC.encode_response(&made, &mut losses);
    assert!(body.contains(r#""error":{"code":"server_error","message":"down"}"#));
    assert_eq!(losses.as_slice()[0].path, "error.code");
}
