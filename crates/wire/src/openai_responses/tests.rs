use throughline_model::json::{self, RawJson};
use throughline_model::{
    ApprovalRequest, Arguments, Body, CallId, Citation, Content, Event, Family, Fold, IdField,
    Media, MediaKind, MediaSource, Message, Origin, Outcome, Output, Reasoning, Request, Response,
    Role, Runner, Scope, Status, Stop, Text, ToolCall, ToolDef, ToolResult, Usage, VendorError,
    Wire, pairs,
};

use super::CODEC;
use crate::sse::Frame;
use crate::{LossKind, Losses};

fn decode(array: &str) -> Vec<Message> {
    let value = json::parse(array).unwrap();
    CODEC.decode_messages(value.as_array().unwrap()).unwrap()
}

fn encode(messages: &[Message]) -> (String, Vec<(String, LossKind)>) {
    let mut losses = Losses::default();
    let text = CODEC.encode_messages(messages, &mut losses);
    let losses = losses.into_vec();
    let losses = losses.into_iter().map(|loss| (loss.path, loss.kind));
    (text, losses.collect())
}

fn natural(id: &str) -> CallId {
    CallId::natural(id).unwrap()
}

#[test]
fn a_response_is_one_message_and_results_of_a_round_are_one() {
    let array = r#"[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call","call_id":"b","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"b","output":"2"},{"type":"function_call_output","call_id":"a","output":"1"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done","annotations":[]}]},{"role":"user","content":[]}]"#;
    let messages = decode(array);
    let shape: Vec<_> = messages
        .iter()
        .map(|message| (message.role.as_str(), message.contents.len()))
        .collect();
    assert_eq!(
        shape,
        [
            ("user", 1),
            ("assistant", 3),
            ("tool", 2),
            ("assistant", 1),
            ("user", 1)
        ]
    );
    assert_eq!(pairs(&messages).len(), 2);
    assert_eq!(encode(&messages), (array.to_owned(), vec![]));
}

#[test]
fn long_texts_are_kept_once() {
    let long = "x".repeat(10_000);
    let array = format!(
        r#"[{{"role":"user","content":"{long}"}},{{"type":"function_call_output","call_id":"a","output":"{long}"}},{{"type":"image_generation_call","id":"ig_1","result":"{long}","status":"completed"}}]"#
    );
    let messages = decode(&array);
    let stored: usize = messages.iter().map(|message| message.to_json().len()).sum();
    assert!(
        stored < array.len() + 1_000,
        "{stored} bytes for {}",
        array.len()
    );
    assert_eq!(encode(&messages).0, array);
}

#[test]
fn an_item_that_is_call_and_output_is_both_and_one_again() {
    let array = r#"[{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"n","arguments":"{}","output":"[4]","error":null,"status":"completed"},{"type":"mcp_call","id":"mcp_2","server_label":"s","name":"n","arguments":"{}","output":null,"error":{"type":"http_error","message":"503"}},{"type":"code_interpreter_call","id":"ci_1","container_id":"c","code":"1","outputs":null,"status":"completed"}]"#;
    let messages = decode(array);
    let contents = &messages[0].contents;
    assert_eq!(contents.len(), 5);
    let call = contents[0].as_tool_call().unwrap();
    assert_eq!(
        (call.call.origin(), call.runner),
        (Origin::Item, Runner::Vendor)
    );
    let result = contents[1].as_tool_result().unwrap();
    assert_eq!(
        *result,
        call.answer(Outcome::Ok, Output::Text("[4]".into()))
    );
    let failed = contents[3].as_tool_result().unwrap();
    assert_eq!(failed.outcome, Outcome::Error);
    assert_eq!(failed.output, Output::Text("503".into()));
    assert!(
        contents[4].as_tool_call().is_some(),
        "no output yet, so no result"
    );
    assert_eq!(encode(&messages), (array.to_owned(), vec![]));
}

#[test]
fn a_server_search_without_ids_pairs_by_order() {
    let array = r#"[{"type":"tool_search_call","id":"t1","call_id":null,"execution":"server","arguments":{},"status":"completed"},{"type":"tool_search_call","id":"t2","call_id":null,"execution":"server","arguments":{},"status":"completed"},{"type":"tool_search_output","id":"o1","call_id":null,"execution":"server","tools":[],"status":"completed"},{"type":"tool_search_output","id":"o2","call_id":null,"execution":"server","tools":[],"status":"completed"}]"#;
    let messages = decode(array);
    let found = pairs(&messages);
    assert_eq!(found.len(), 2);
    let first = messages[0].contents[0].as_tool_call().unwrap();
    assert_eq!(first.call, CallId::minted(Scope::Place(0), 0));
    assert_eq!(messages[0].contents[0].id_fields().call, IdField::Null);
    assert_eq!(encode(&messages).0, array);
}

#[test]
fn an_empty_call_id_comes_back_empty_with_a_minted_value_on_our_side() {
    let array = r#"[{"type":"function_call","call_id":"","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"","output":"x"}]"#;
    let messages = decode(array);
    assert_eq!(pairs(&messages).len(), 1);
    let call = messages[0].contents[0].as_tool_call().unwrap();
    assert_eq!(call.call.origin(), Origin::Minted);
    assert_eq!(encode(&messages).0, array);
}

#[test]
fn what_came_from_elsewhere_is_said_with_its_losses() {
    let call = ToolCall::function(natural("call_1"), "f", "{\"a\":1}");
    let custom = ToolCall {
        family: Family::CUSTOM,
        arguments: Arguments::Free("select 1".into()),
        ..ToolCall::function(natural("call_2"), "sql", "")
    };
    let hosted = ToolCall {
        family: Family::WEB_SEARCH,
        runner: Runner::Vendor,
        ..ToolCall::function(natural("srv_1"), "web_search", "{}")
    };
    let image = Content::new(Body::Media(Media {
        kind: MediaKind::Image,
        media_type: Some("image/png".into()),
        source: MediaSource::Data("iVBOR".into()),
        name: None,
        transcript: None,
    }));
    let messages = [
        Message::new(Role::Developer, vec![Content::text("Be brief.")]),
        Message::new(Role::User, vec![Content::text("look"), image.clone()]),
        Message::new(
            Role::Assistant,
            vec![
                Content::new(Body::Reasoning(Reasoning::default())),
                Content::text("so"),
                Content::new(Body::Refusal(Text {
                    text: "no".into(),
                    citations: vec![],
                })),
                call.clone().into(),
                custom.clone().into(),
                hosted.into(),
                Content::new(Body::ApprovalRequest(ApprovalRequest {
                    request: natural("r"),
                    name: "f".into(),
                    arguments: Arguments::None,
                    server: None,
                })),
            ],
        ),
        Message::new(
            Role::Tool,
            vec![
                call.answer(
                    Outcome::Error,
                    Output::Json(RawJson::new("{\"x\":1}").unwrap()),
                )
                .into(),
                custom
                    .answer(
                        Outcome::Ok,
                        Output::Parts(vec![Content::text("2 rows"), image]),
                    )
                    .into(),
                ToolResult::standalone(natural("n"), Family::FUNCTION, Output::None).into(),
            ],
        ),
    ];
    let (text, losses) = encode(&messages);
    assert_eq!(
        text,
        concat!(
            r#"[{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]},"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,iVBOR","detail":"auto"}]},"#,
            r#"{"type":"message","role":"assistant","content":"so"},"#,
            r#"{"type":"message","role":"assistant","content":"no"},"#,
            r#"{"type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":1}"},"#,
            r#"{"type":"custom_tool_call","call_id":"call_2","name":"sql","input":"select 1"},"#,
            r#"{"type":"function_call_output","call_id":"call_1","output":"{\"x\":1}"},"#,
            r#"{"type":"custom_tool_call_output","call_id":"call_2","output":[{"type":"input_text","text":"2 rows"},{"type":"input_image","image_url":"data:image/png;base64,iVBOR","detail":"auto"}]},"#,
            r#"{"type":"function_call_output","call_id":null,"output":""}]"#
        )
    );
    let expected = [
        ("messages[2].contents[0]", LossKind::Reasoning),
        ("messages[2].contents[2]", LossKind::Marking),
        ("messages[2].contents[5]", LossKind::HostedTool),
        ("messages[2].contents[6]", LossKind::Approval),
        ("messages[3].contents[0]", LossKind::Outcome),
    ];
    assert_eq!(losses, expected.map(|(path, kind)| (path.to_owned(), kind)));
}

#[test]
fn a_request_from_elsewhere_maps_system_text_messages_and_functions() {
    let request = Request {
        system: vec![Content::text("Be brief.")],
        messages: vec![Message::user("hi")],
        tools: vec![ToolDef {
            family: Family::FUNCTION,
            name: "f".into(),
            description: Some("does f".into()),
            parameters: Some(RawJson::new("{\"type\":\"object\"}").unwrap()),
            ..ToolDef::default()
        }],
        vendor: None,
    };
    let text = CODEC.encode_request(&request, &mut Losses::default());
    assert_eq!(
        text,
        concat!(
            r#"{"instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"#,
            r#""tools":[{"type":"function","name":"f","description":"does f","parameters":{"type":"object"},"strict":false}]}"#
        )
    );
}

#[test]
fn more_messages_can_join_a_request_whose_input_was_a_string() {
    let body = json::parse(r#"{"model":"m","input":"hi","seed":7}"#).unwrap();
    let mut request = CODEC.decode_request(&body).unwrap();
    request.messages.push(Message::user("again"));
    let text = CODEC.encode_request(&request, &mut Losses::default());
    assert_eq!(
        text,
        r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"again"}]}],"seed":7}"#
    );
}

fn frame(data: &str) -> Frame {
    Frame {
        event: None,
        data: data.to_owned(),
        id: None,
        retry: None,
    }
}

#[test]
fn items_done_out_of_order_mint_the_same_ids_as_the_whole_body() {
    let item = |id: &str| {
        format!(
            r#"{{"type":"tool_search_call","id":"{id}","call_id":null,"execution":"server","arguments":{{}},"status":"completed"}}"#
        )
    };
    let body = format!(
        r#"{{"id":"resp_9","object":"response","status":"completed","output":[{},{}]}}"#,
        item("a"),
        item("b")
    );
    let frames = [
        frame(r#"{"type":"response.created","response":{"id":"resp_9"}}"#),
        frame(&format!(
            r#"{{"type":"response.output_item.done","output_index":1,"item":{}}}"#,
            item("b")
        )),
        frame(&format!(
            r#"{{"type":"response.output_item.done","output_index":0,"item":{}}}"#,
            item("a")
        )),
        frame(&format!(
            r#"{{"type":"response.completed","response":{body}}}"#
        )),
    ];
    let streamed = crate::assemble(&CODEC, &frames).unwrap();
    let whole = CODEC.decode_response(&json::parse(&body).unwrap()).unwrap();
    assert_eq!(streamed, whole);
    let call = whole.messages[0].contents[1].as_tool_call().unwrap();
    assert_eq!(call.call, CallId::minted(Scope::Response("resp_9"), 1));
}

#[test]
fn a_terminal_response_without_output_keeps_the_items_that_were_done() {
    let frames = [
        frame(
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}"#,
        ),
        frame(
            r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}"#,
        ),
    ];
    let response = crate::assemble(&CODEC, &frames).unwrap();
    assert_eq!(response.messages[0].contents.len(), 1);
    assert_eq!(response.stop, Stop::ToolCalls);
}

#[test]
fn a_cut_stream_leaves_what_came_marked_as_incomplete() {
    let mut decoder = CODEC.stream();
    let mut fold = Fold::new();
    for data in [
        r#"{"type":"response.created","response":{"id":"r","model":"m"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}"#,
        r#"{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hel"}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"lo"}"#,
        r#"{"type":"response.something.new","output_index":0}"#,
    ] {
        for event in decoder.push(&frame(data)).unwrap() {
            fold.push(event);
        }
    }
    for event in decoder.end().unwrap() {
        fold.push(event);
    }
    let response = fold.finish();
    assert_eq!(response.stop, Stop::Cut);
    assert_eq!(response.messages[0].text(), "Hello");
    assert_eq!(response.messages[0].status, Some(Status::Incomplete));
}

#[test]
fn an_error_event_ends_the_stream() {
    let mut decoder = CODEC.stream();
    let events = decoder
        .push(&frame(
            r#"{"type":"error","code":"server_error","message":"down","param":null}"#,
        ))
        .unwrap();
    let [
        Event::Finished {
            stop: Stop::Failed,
            error: Some(error),
            ..
        },
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert_eq!(
        (error.message.as_str(), error.code.as_deref()),
        ("down", Some("server_error"))
    );
}

#[test]
fn error_bodies_go_both_ways() {
    let text = r#"{"error":{"message":"No tool output found for function call call_1.","type":"invalid_request_error","param":"input","code":null}}"#;
    let error = CODEC.decode_error(&json::parse(text).unwrap()).unwrap();
    assert_eq!(error.kind.as_deref(), Some("invalid_request_error"));
    assert_eq!(error.param.as_deref(), Some("input"));
    assert_eq!(CODEC.encode_error(&error), text);
}

#[test]
fn stop_reasons_and_usage_are_read() {
    let body = r#"{"id":"r","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":15}}"#;
    let response = CODEC.decode_response(&json::parse(body).unwrap()).unwrap();
    assert_eq!(response.stop, Stop::Length);
    let usage = response.usage.unwrap();
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output,
            usage.reasoning,
            usage.total
        ),
        (Some(10), Some(4), Some(2), Some(5), Some(3), Some(15))
    );
}

fn media(kind: MediaKind, source: MediaSource, media_type: &str) -> Content {
    Content::new(Body::Media(Media {
        kind,
        media_type: Some(media_type.to_owned()),
        source,
        name: None,
        transcript: None,
    }))
}

fn lost(path: &str, kind: LossKind) -> (String, LossKind) {
    (path.to_owned(), kind)
}

#[test]
fn texts_of_a_model_from_elsewhere_are_messages_that_need_no_id() {
    let cited = Text {
        text: "04:12".to_owned(),
        citations: vec![Citation {
            url: Some("https://t.example/".to_owned()),
            ..Citation::default()
        }],
    };
    let fault = throughline_model::Fault {
        message: "cut off".to_owned(),
        code: None,
    };
    let picture = media(MediaKind::Image, MediaSource::Data("i".into()), "image/png");
    let contents = vec![
        Content::text("High water:"),
        Content::new(Body::Text(cited)),
        Content::new(Body::Error(fault)),
        picture,
    ];
    let (text, losses) = encode(&[Message::new(Role::Assistant, contents)]);
    assert_eq!(
        text,
        concat!(
            r#"[{"type":"message","role":"assistant","content":"High water:"},"#,
            r#"{"type":"message","role":"assistant","content":"04:12"},"#,
            r#"{"type":"message","role":"assistant","content":"cut off"}]"#
        )
    );
    assert_eq!(
        losses,
        [
            lost("messages[0].contents[1]", LossKind::Citations),
            lost("messages[0].contents[2]", LossKind::Marking),
            lost("messages[0].contents[3]", LossKind::Media),
        ]
    );
    let heard = decode(&text);
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].contents.len(), 3);
}

#[test]
fn a_role_that_is_unknown_here_becomes_user() {
    let message = Message::new(
        Role::named("critic"),
        vec![Content::text("a"), Content::text("b")],
    );
    let (text, losses) = encode(&[message]);
    assert_eq!(
        text,
        r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}]"#
    );
    assert_eq!(losses, [lost("messages[0].contents[0]", LossKind::Role)]);
}

#[test]
fn sound_goes_into_messages_and_not_into_outputs() {
    let data = || MediaSource::Data("UklG".to_owned());
    let wav = media(MediaKind::Audio, data(), "audio/x-wav");
    let mp3 = MediaSource::Uri("data:audio/mpeg;base64,SUQz".to_owned());
    let mp3 = media(MediaKind::Audio, mp3, "audio/mpeg");
    let ogg = media(MediaKind::Audio, data(), "audio/ogg");
    let call = ToolCall::function(natural("c"), "f", "{}");
    let output = Output::Parts(vec![Content::text("x"), wav.clone()]);
    let messages = [
        Message::new(Role::User, vec![wav, mp3, ogg]),
        Message::new(Role::Tool, vec![call.answer(Outcome::Ok, output).into()]),
    ];
    let (text, losses) = encode(&messages);
    assert_eq!(
        text,
        concat!(
            r#"[{"type":"message","role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}},{"type":"input_audio","input_audio":{"data":"SUQz","format":"mp3"}}]},"#,
            r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"x"}]}]"#
        )
    );
    assert_eq!(
        losses,
        [
            lost("messages[0].contents[2]", LossKind::Media),
            lost("messages[1].contents[0].output[1]", LossKind::Media),
        ]
    );
}

/// A result of the application for a call of one of the vendor's own kinds.
fn made_result(family: Family, outcome: Outcome, output: Output) -> Message {
    let mut result = ToolResult::answering(natural("call_1"), family, output);
    result.outcome = outcome;
    Message::new(Role::Tool, vec![result.into()])
}

#[test]
fn a_result_made_elsewhere_is_of_the_family_of_its_call() {
    let text = |text: &str| Output::Text(text.to_owned());
    let json = |text: &str| Output::Json(RawJson::new(text).unwrap());
    let picture = media(MediaKind::Image, MediaSource::Data("i".into()), "image/png");
    let cases = [
        (
            made_result(Family::SHELL, Outcome::Ok, text("ok")),
            r#"{"type":"shell_call_output","call_id":"call_1","output":[{"stdout":"ok","stderr":"","outcome":{"type":"exit","exit_code":0}}]}"#,
            None,
        ),
        (
            made_result(
                Family::SHELL,
                Outcome::Error,
                Output::Parts(vec![
                    Content::text("a"),
                    picture.clone(),
                    Content::text("b"),
                ]),
            ),
            r#"{"type":"shell_call_output","call_id":"call_1","output":[{"stdout":"a\nb","stderr":"","outcome":{"type":"exit","exit_code":1}}]}"#,
            Some(LossKind::Media),
        ),
        (
            made_result(Family::APPLY_PATCH, Outcome::Ok, Output::None),
            r#"{"type":"apply_patch_call_output","call_id":"call_1","status":"completed","output":""}"#,
            None,
        ),
        (
            made_result(Family::APPLY_PATCH, Outcome::Rejected, text("no")),
            r#"{"type":"apply_patch_call_output","call_id":"call_1","status":"failed","output":"no"}"#,
            None,
        ),
        (
            made_result(Family::LOCAL_SHELL, Outcome::Ok, json(r#"{"stdout":""}"#)),
            r#"{"type":"local_shell_call_output","id":"call_1","call_id":"call_1","output":"{\"stdout\":\"\"}"}"#,
            None,
        ),
        (
            made_result(Family::TOOL_SEARCH, Outcome::Ok, json(r#"[{"type":"x"}]"#)),
            r#"{"type":"tool_search_output","call_id":"call_1","execution":"client","tools":[{"type":"x"}],"status":"completed"}"#,
            None,
        ),
        (
            made_result(Family::TOOL_SEARCH, Outcome::Ok, text("none")),
            r#"{"type":"tool_search_output","call_id":"call_1","execution":"client","tools":[],"status":"completed"}"#,
            Some(LossKind::VendorFields),
        ),
        (
            made_result(Family::COMPUTER, Outcome::Ok, Output::Parts(vec![picture])),
            r#"{"type":"computer_call_output","call_id":"call_1","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,i"}}"#,
            None,
        ),
        (
            made_result(Family::COMPUTER, Outcome::Ok, text("clicked")),
            r#"{"type":"function_call_output","call_id":"call_1","output":"clicked"}"#,
            Some(LossKind::HostedTool),
        ),
    ];
    for (message, item, loss) in cases {
        let (text, losses) = encode(&[message]);
        assert_eq!(text, format!("[{item}]"));
        let kinds: Vec<_> = losses.into_iter().map(|(_, kind)| kind).collect();
        assert_eq!(kinds, Vec::from_iter(loss), "{item}");
        assert_eq!(encode(&decode(&text)), (text, vec![]));
    }
}

#[test]
fn a_native_search_without_an_id_is_answered_without_one() {
    let array = r#"[{"type":"tool_search_call","id":"t1","call_id":null,"execution":"client","arguments":{},"status":"completed"}]"#;
    let mut messages = decode(array);
    let call = messages[0].contents[0].as_tool_call().unwrap();
    let result = call.answer(Outcome::Ok, Output::None);
    messages.push(Message::new(Role::Tool, vec![result.into()]));
    let (text, losses) = encode(&messages);
    assert!(text.ends_with(
        r#",{"type":"tool_search_output","call_id":null,"execution":"client","tools":[],"status":"completed"}]"#
    ));
    assert_eq!(losses, []);
    assert_eq!(pairs(&decode(&text)).len(), 1);
}

#[test]
fn the_result_of_a_call_that_became_a_function_is_that_of_a_function() {
    let call = ToolCall {
        family: Family::SHELL,
        ..ToolCall::function(natural("call_1"), "bash", "{}")
    };
    let result = call.answer(Outcome::Ok, Output::Text("ok".into()));
    let messages = [
        Message::new(Role::Assistant, vec![call.into()]),
        Message::new(Role::Tool, vec![result.into()]),
    ];
    let (text, losses) = encode(&messages);
    assert_eq!(
        text,
        concat!(
            r#"[{"type":"function_call","call_id":"call_1","name":"bash","arguments":"{}"},"#,
            r#"{"type":"function_call_output","call_id":"call_1","output":"ok"}]"#
        )
    );
    assert_eq!(
        losses,
        [lost("messages[0].contents[0]", LossKind::HostedTool)]
    );
}

#[test]
fn a_custom_call_stays_one_whatever_its_arguments() {
    let custom = |arguments| ToolCall {
        family: Family::CUSTOM,
        arguments,
        ..ToolCall::function(natural("c"), "sql", "")
    };
    for (arguments, input) in [
        (Arguments::None, r#""""#),
        (Arguments::Text("{}".into()), r#""{}""#),
        (Arguments::Json(RawJson::new("[1]").unwrap()), r#""[1]""#),
    ] {
        let (text, _) = encode(&[Message::new(
            Role::Assistant,
            vec![custom(arguments).into()],
        )]);
        assert_eq!(
            text,
            format!(
                r#"[{{"type":"custom_tool_call","call_id":"c","name":"sql","input":{input}}}]"#
            )
        );
    }
}

/// An answer from elsewhere.
fn foreign_response(contents: Vec<Content>, stop: Stop) -> Response {
    Response {
        id: Some("msg_1".to_owned()),
        model: Some("claude".to_owned()),
        messages: vec![Message::new(Role::Assistant, contents)],
        usage: None,
        stop,
        error: None,
        vendor: None,
        service: None,
    }
}

/// The id of an item that is made for the response `msg_1`.
fn made_id(prefix: &str, number: usize) -> String {
    let id = CallId::minted(Scope::Response("msg_1"), (1 << 33) + number);
    id.value().replacen("tc", prefix, 1)
}

#[test]
fn items_of_a_response_from_elsewhere_have_ids_and_a_status() {
    let call = ToolCall::function(natural("call_1"), "f", "{}");
    let custom = ToolCall {
        family: Family::CUSTOM,
        arguments: Arguments::Free("select 1".into()),
        ..ToolCall::function(natural("call_2"), "sql", "")
    };
    let refusal = Content::new(Body::Refusal(Text {
        text: "no".into(),
        citations: vec![],
    }));
    let result = call.answer(Outcome::Ok, Output::Text("1".into()));
    let contents = vec![
        Content::text("so"),
        refusal,
        call.into(),
        result.into(),
        custom.into(),
        Content::text("then"),
    ];
    let mut made = foreign_response(contents, Stop::ToolCalls);
    let mut losses = Losses::default();
    let body = CODEC.encode_response(&made, &mut losses);
    let ids: Vec<_> = [("msg", 0), ("fc", 1), ("ctc", 2), ("msg", 3)]
        .map(|(prefix, number)| made_id(prefix, number))
        .into();
    assert_eq!(
        body,
        format!(
            concat!(
                r#"{{"id":"msg_1","object":"response","created_at":0,"status":"completed","error":null,"incomplete_details":null,"model":"claude","output":["#,
                r#"{{"id":"{}","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"so","annotations":[]}},{{"type":"refusal","refusal":"no"}}]}},"#,
                r#"{{"id":"{}","status":"completed","type":"function_call","call_id":"call_1","name":"f","arguments":"{{}}"}},"#,
                r#"{{"id":"{}","type":"custom_tool_call","call_id":"call_2","name":"sql","input":"select 1"}},"#,
                r#"{{"id":"{}","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"then","annotations":[]}}]}}"#,
                r#"],"parallel_tool_calls":true,"tool_choice":"auto","tools":[]}}"#
            ),
            ids[0], ids[1], ids[2], ids[3]
        )
    );
    let kinds: Vec<_> = losses.as_slice().iter().map(|loss| loss.kind).collect();
    assert_eq!(kinds, [LossKind::StandaloneResult]);
    assert_eq!(body, CODEC.encode_response(&made, &mut Losses::default()));
    made.stop = Stop::Length;
    let body = CODEC.encode_response(&made, &mut Losses::default());
    assert_eq!(body.matches(r#""status":"incomplete""#).count(), 4);
    assert_eq!(body.matches(r#""status":"completed""#).count(), 0);
}

#[test]
fn a_response_from_elsewhere_is_streamed_with_its_item_ids() {
    let made = foreign_response(vec![Content::text("so")], Stop::Done);
    let frames = CODEC.encode_stream(&made, &mut Losses::default());
    let id = made_id("msg", 0);
    let data: Vec<_> = frames.iter().map(|frame| frame.data.as_str()).collect();
    let at = format!(r#""item_id":"{id}","output_index":0,"content_index":0"#);
    let expected = [
        format!(
            r#"{{"type":"response.output_item.added","output_index":0,"item":{{"id":"{id}","type":"message","status":"in_progress","role":"assistant","content":[]}},"sequence_number":2}}"#
        ),
        format!(
            r#"{{"type":"response.content_part.added",{at},"part":{{"type":"output_text","text":"","annotations":[]}},"sequence_number":3}}"#
        ),
        format!(
            r#"{{"type":"response.output_text.delta",{at},"delta":"so","logprobs":[],"sequence_number":4}}"#
        ),
        format!(
            r#"{{"type":"response.output_text.done",{at},"text":"so","logprobs":[],"sequence_number":5}}"#
        ),
        format!(
            r#"{{"type":"response.content_part.done",{at},"part":{{"type":"output_text","text":"so","annotations":[]}},"sequence_number":6}}"#
        ),
        format!(
            r#"{{"type":"response.output_item.done","output_index":0,"item":{{"id":"{id}","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"so","annotations":[]}}]}},"sequence_number":7}}"#
        ),
    ];
    assert_eq!(data[2..8], expected);
}

#[test]
fn every_stop_ends_a_stream_with_an_event_that_exists() {
    for (stop, last) in [
        (Stop::Done, "response.completed"),
        (Stop::Length, "response.incomplete"),
        (Stop::Cancelled, "response.incomplete"),
        (Stop::InProgress, "response.incomplete"),
        (Stop::Failed, "response.failed"),
    ] {
        let made = foreign_response(vec![Content::text("so")], stop.clone());
        let frames = CODEC.encode_stream(&made, &mut Losses::default());
        let event = frames.last().and_then(|frame| frame.event.as_deref());
        assert_eq!(event, Some(last), "{stop:?}");
        let body = CODEC.encode_response(&made, &mut Losses::default());
        let whole = CODEC.decode_response(&json::parse(&body).unwrap()).unwrap();
        let streamed = crate::assemble(&CODEC, &frames).unwrap();
        assert_eq!(streamed, whole);
        assert_eq!(streamed.stop, stop);
    }
}

#[test]
fn an_error_code_that_is_unknown_here_becomes_a_server_error() {
    for (code, written, losses) in [
        (Some("rate_limit_exceeded"), "rate_limit_exceeded", 0),
        (
            Some("misalignment_policy_violation"),
            "misalignment_policy_violation",
            0,
        ),
        (Some("overloaded"), "server_error", 1),
        (None, "server_error", 0),
    ] {
        let mut made = foreign_response(vec![], Stop::Failed);
        made.error = Some(VendorError {
            wire: Wire::Anthropic,
            message: "down".to_owned(),
            kind: None,
            code: code.map(Into::into),
            param: None,
            retry_after_ms: None,
            body: None,
        });
        let mut noted = Losses::default();
        let body = CODEC.encode_response(&made, &mut noted);
        let error = format!(r#""error":{{"code":"{written}","message":"down"}}"#);
        assert!(body.contains(&error), "{body}");
        assert_eq!(noted.as_slice().len(), losses);
    }
}

#[test]
fn schemas_from_elsewhere_have_no_unpaired_surrogates() {
    let request = Request {
        tools: vec![ToolDef {
            family: Family::FUNCTION,
            name: "f".into(),
            description: None,
            parameters: Some(RawJson::new(r#"{"title":"\ud800"}"#).unwrap()),
            ..ToolDef::default()
        }],
        ..Request::default()
    };
    let mut losses = Losses::default();
    let text = CODEC.encode_request(&request, &mut losses);
    assert!(text.contains("{\"title\":\"\u{fffd}\"}"), "{text}");
    assert_eq!(losses.as_slice()[0].kind, LossKind::LoneSurrogate);
}

#[test]
fn totals_too_large_for_a_number_do_not_panic() {
    let mut made = foreign_response(vec![], Stop::Done);
    made.usage = Some(Usage {
        input: Some(u64::MAX),
        output: Some(1),
        ..Usage::default()
    });
    let body = CODEC.encode_response(&made, &mut Losses::default());
    assert!(body.contains(r#""total_tokens":18446744073709551615"#));
}
