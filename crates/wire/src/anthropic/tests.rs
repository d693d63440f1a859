use throughline_model::json::{self, RawJson};
use throughline_model::{
    ApprovalRequest, ApprovalResponse, Arguments, Body, CallId, Citation, Content, Event, Family,
    Fault, Form, Media, MediaKind, MediaSource, Message, Opaque, Outcome, Output, Place, Reasoning,
    Request, Response, Role, Runner, Scope, Status, Stop, Text, ToolCall, ToolDef, ToolResult,
    Usage, Vendor, VendorError, Wire,
};

use super::CODEC;
use crate::sse::Frame;
use crate::{DecodeError, DocumentKind, LossKind, Losses, Problem, assemble};

fn decode(array: &str) -> Result<Vec<Message>, DecodeError> {
    CODEC.decode_messages(json::parse(array).unwrap().as_array().unwrap())
}

/// What messages become, and what was lost: path and kind.
fn encoded(messages: &[Message]) -> (String, Vec<(String, LossKind)>) {
    let mut losses = Losses::default();
    let text = CODEC.encode_messages(messages, &mut losses);
    (text, listed(losses))
}

fn listed(losses: Losses) -> Vec<(String, LossKind)> {
    let losses = losses.into_vec().into_iter();
    losses.map(|loss| (loss.path, loss.kind)).collect()
}

fn lost(path: &str, kind: LossKind) -> (String, LossKind) {
    (path.to_owned(), kind)
}

fn assistant(contents: Vec<Content>) -> Message {
    Message::new(Role::Assistant, contents)
}

fn tool(contents: Vec<Content>) -> Message {
    Message::new(Role::Tool, contents)
}

fn system(text: &str) -> Message {
    Message::new(Role::System, vec![Content::text(text)])
}

fn natural(id: &str) -> CallId {
    CallId::natural(id).unwrap()
}

fn function(id: &str, arguments: Arguments) -> ToolCall {
    ToolCall {
        arguments,
        ..ToolCall::function(natural(id), "moor", "")
    }
}

fn media(kind: MediaKind, media_type: Option<&str>, source: MediaSource) -> Content {
    Content::new(Body::Media(Media {
        kind,
        media_type: media_type.map(Into::into),
        source,
        name: None,
        transcript: None,
    }))
}

/// A response without a vendor and without content.
fn silent() -> Response {
    Response {
        id: None,
        model: None,
        messages: Vec::new(),
        usage: None,
        stop: Stop::Done,
        error: None,
        vendor: None,
        service: None,
    }
}

fn raw(text: &str) -> RawJson {
    RawJson::new(text).unwrap()
}

#[test]
fn parallel_calls_and_their_results_are_two_messages() {
    let calls = [
        function("call_1", Arguments::Text("{\"n\": 1}".into())),
        function("call_2", Arguments::Text(String::new())),
        function("call_3", Arguments::Json(raw("{\"n\":3}"))),
        function("call_4", Arguments::None),
    ];
    let results = vec![
        calls[0].answer(Outcome::Ok, Output::Text("free".into())),
        calls[1].answer(Outcome::Error, Output::Json(raw("{\"why\":1}"))),
        calls[2].answer(Outcome::Rejected, Output::None),
        calls[3].answer(
            Outcome::Ok,
            Output::Parts(vec![
                Content::text("seen"),
                Content::text(""),
                media(
                    MediaKind::Image,
                    None,
                    MediaSource::Data("iVBORw0KGgoAAA=".into()),
                ),
            ]),
        ),
    ];
    let history = [
        Message::user("Moor all."),
        assistant(
            [Content::text("Mooring."), Content::text("")]
                .into_iter()
                .chain(calls.into_iter().map(Content::from))
                .collect(),
        ),
        tool(results.into_iter().map(Content::from).collect()),
        Message::user("Thanks."),
    ];
    let expected = concat!(
        r#"[{"role":"user","content":[{"type":"text","text":"Moor all."}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"Mooring."},"#,
        r#"{"type":"tool_use","id":"call_1","name":"moor","input":{"n":1}},"#,
        r#"{"type":"tool_use","id":"call_2","name":"moor","input":{}},"#,
        r#"{"type":"tool_use","id":"call_3","name":"moor","input":{"n":3}},"#,
        r#"{"type":"tool_use","id":"call_4","name":"moor","input":{}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"free"},"#,
        r#"{"type":"tool_result","tool_use_id":"call_2","content":"{\"why\":1}","is_error":true},"#,
        r#"{"type":"tool_result","tool_use_id":"call_3","is_error":true},"#,
        r#"{"type":"tool_result","tool_use_id":"call_4","content":[{"type":"text","text":"seen"},"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAA="}}]}]},"#,
        r#"{"role":"user","content":[{"type":"text","text":"Thanks."}]}]"#,
    );
    assert_eq!(encoded(&history), (expected.to_owned(), vec![]));
}

#[test]
fn what_has_no_place_here_is_listed() {
    let hosted = ToolCall {
        runner: Runner::Vendor,
        family: Family::WEB_SEARCH,
        ..function("ws_1", Arguments::None)
    };
    let hosted_result = hosted.answer(Outcome::Ok, Output::None);
    let approval = CallId::natural("ap_1").unwrap();
    let cited = Text {
        text: "cited".into(),
        citations: vec![Citation::default()],
    };
    let history = [
        Message::user("hi"),
        assistant(vec![
            Content::new(Body::Reasoning(Reasoning {
                text: vec!["hm".into()],
                ..Reasoning::default()
            })),
            Content::new(Body::Refusal(Text {
                text: "No.".into(),
                citations: vec![],
            })),
            Content::new(Body::Error(Fault {
                message: "broke".into(),
                code: None,
            })),
            Content::new(Body::ApprovalRequest(ApprovalRequest {
                request: approval.clone(),
                name: "pay".into(),
                arguments: Arguments::None,
                server: None,
            })),
            hosted.into(),
            hosted_result.into(),
            Content::new(Body::Opaque(Opaque { tag: "x".into() })),
            Content::new(Body::Unknown(raw("{}"))),
            Content::new(Body::Text(cited)),
            media(
                MediaKind::Image,
                None,
                MediaSource::Uri("https://a.example/i.png".into()),
            ),
        ]),
        Message::new(
            Role::User,
            vec![Content::new(Body::ApprovalResponse(ApprovalResponse {
                request: approval,
                approved: true,
                reason: None,
            }))],
        ),
        Message::new(Role::Other("critic".into()), vec![Content::text("meh")]),
        Message::user(""),
    ];
    let (text, losses) = encoded(&history);
    assert_eq!(
        text,
        concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"hi"}]},"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"No."},"#,
            r#"{"type":"text","text":"broke"},{"type":"text","text":"cited"}]},"#,
            r#"{"role":"user","content":[{"type":"text","text":"meh"}]}]"#,
        )
    );
    let at = |place: usize| format!("messages[1].contents[{place}]");
    assert_eq!(
        losses,
        [
            (at(0), LossKind::Reasoning),
            (at(1), LossKind::Marking),
            (at(2), LossKind::Marking),
            (at(3), LossKind::Approval),
            (at(4), LossKind::HostedTool),
            (at(5), LossKind::HostedTool),
            (at(6), LossKind::VendorItem),
            (at(7), LossKind::VendorItem),
            (at(8), LossKind::Citations),
            (at(9), LossKind::Media),
            lost("messages[2].contents[0]", LossKind::Approval),
            lost("messages[3]", LossKind::Role),
            lost("messages[4]", LossKind::EmptyMessage),
        ]
    );
}

#[test]
fn arguments_become_an_object() {
    for (arguments, input, kinds) in [
        (
            Arguments::Text("{broken".into()),
            r#"{"input":"{broken"}"#,
            vec![LossKind::Arguments],
        ),
        (
            Arguments::Text("[1]".into()),
            r#"{"input":"[1]"}"#,
            vec![LossKind::Arguments],
        ),
        (
            Arguments::Json(raw("[1]")),
            r#"{"input":[1]}"#,
            vec![LossKind::Arguments],
        ),
        (
            Arguments::Free("ls".into()),
            r#"{"input":"ls"}"#,
            vec![LossKind::Arguments],
        ),
        (Arguments::Json(raw("null")), "{}", vec![]),
        (
            Arguments::Text(" { \"a\" : 1.0 } ".into()),
            r#"{"a":1.0}"#,
            vec![],
        ),
    ] {
        let (text, losses) = encoded(&[assistant(vec![function("c", arguments).into()])]);
        let expected = format!(
            r#"[{{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"moor","input":{input}}}]}}]"#
        );
        assert_eq!(text, expected);
        assert_eq!(
            losses.into_iter().map(|loss| loss.1).collect::<Vec<_>>(),
            kinds
        );
    }
}

#[test]
fn tools_of_other_kinds_become_functions() {
    let call = ToolCall {
        family: Family::SHELL,
        name: String::new(),
        ..function("c", Arguments::Json(raw("{\"commands\":[\"ls\"]}")))
    };
    let (text, losses) = encoded(&[assistant(vec![call.into()])]);
    assert_eq!(
        text,
        r#"[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"function-shell","input":{"commands":["ls"]}}]}]"#
    );
    assert_eq!(
        losses,
        [lost("messages[0].contents[0]", LossKind::HostedTool)]
    );
}

#[test]
fn ids_that_do_not_fit_are_mapped_alike_at_both_ends() {
    let odd = function("fc:1/é", Arguments::None);
    let minted = ToolCall {
        call: CallId::minted(Scope::Place(0), 0),
        ..function("x", Arguments::None)
    };
    let results = tool(vec![
        odd.answer(Outcome::Ok, Output::None).into(),
        minted.answer(Outcome::Ok, Output::None).into(),
    ]);
    let (text, losses) = encoded(&[
        assistant(vec![odd.into(), minted.clone().into()]),
        results.clone(),
    ]);
    assert_eq!(losses, []);
    let value = json::parse(&text).unwrap();
    let messages = value.as_array().unwrap();
    let ids = |message: usize, key: &str| -> Vec<String> {
        let blocks = messages[message].get("content").unwrap();
        let blocks = blocks.as_array().unwrap().iter();
        blocks
            .map(|block| block.get(key).unwrap().as_str().unwrap().into_owned())
            .collect()
    };
    let calls = ids(0, "id");
    assert_eq!(calls, ids(1, "tool_use_id"));
    assert!(
        calls[0]
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    );
    assert_eq!(calls[1], minted.call.value());
}

#[test]
fn a_result_that_nobody_asked_for_is_said_as_text() {
    let handle = CallId::minted(Scope::Place(0), 0);
    let output = Output::Text("ping".into());
    let result = ToolResult::standalone(handle, Family::FUNCTION, output);
    let (text, losses) = encoded(&[tool(vec![result.into()])]);
    assert_eq!(
        text,
        r#"[{"role":"user","content":[{"type":"text","text":"ping"}]}]"#
    );
    assert_eq!(
        losses,
        [lost(
            "messages[0].contents[0].output",
            LossKind::StandaloneResult
        )]
    );
}

#[test]
fn a_result_inside_a_result_is_said_and_a_call_is_not() {
    let inner = ToolResult::answering(natural("b"), Family::FUNCTION, Output::Text("in".into()));
    let parts = vec![
        Content::text("out"),
        Content::from(inner),
        Content::from(function("c", Arguments::None)),
    ];
    let result = ToolResult::answering(natural("a"), Family::FUNCTION, Output::Parts(parts));
    let (text, losses) = encoded(&[tool(vec![result.into()])]);
    assert_eq!(
        text,
        r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"out"},{"type":"text","text":"in"}]}]}]"#
    );
    let at = |rest: &str| format!("messages[0].contents[0].output{rest}");
    assert_eq!(
        losses,
        [
            lost(&at("[1].output"), LossKind::StandaloneResult),
            lost(&at("[2]"), LossKind::HostedTool),
        ]
    );
}

#[test]
fn a_response_holds_only_what_a_model_says() {
    let image = MediaSource::Uri("https://files.example/chart.png".into());
    let result = |id: &str, output| ToolResult::answering(natural(id), Family::FUNCTION, output);
    let parts = Output::Parts(vec![Content::text("drifting")]);
    let standalone =
        ToolResult::standalone(natural("s"), Family::FUNCTION, Output::Text("ping".into()));
    let response = Response {
        messages: vec![assistant(vec![
            Content::text("Moored."),
            media(MediaKind::Image, None, image),
            result("a", Output::Text("done".into())).into(),
            result("b", parts).into(),
            standalone.into(),
            function("c", Arguments::None).into(),
        ])],
        stop: Stop::ToolCalls,
        ..silent()
    };
    let mut losses = Losses::default();
    let body = CODEC.encode_response(&response, &mut losses);
    assert_eq!(
        body,
        r#"{"id":"msg_0","type":"message","role":"assistant","model":"unknown","content":[{"type":"text","text":"Moored."},{"type":"tool_use","id":"c","name":"moor","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}"#
    );
    let dropped = [
        lost("messages[0].contents[1]", LossKind::Media),
        lost("messages[0].contents[2]", LossKind::StandaloneResult),
        lost("messages[0].contents[3]", LossKind::StandaloneResult),
        lost("messages[0].contents[4]", LossKind::StandaloneResult),
    ];
    assert_eq!(listed(losses), dropped);
    let mut losses = Losses::default();
    let frames = CODEC.encode_stream(&response, &mut losses);
    assert_eq!(listed(losses), dropped);
    let starts = frames.iter().filter_map(|frame| {
        let kind = frame.event.as_deref()?;
        (kind == "content_block_start").then_some(frame.data.as_str())
    });
    assert_eq!(
        starts.collect::<Vec<_>>(),
        [
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"moor","input":{}}}"#,
        ]
    );
}

#[test]
fn a_code_of_another_vendor_does_not_reach_the_stream() {
    let response = Response {
        stop: Stop::Failed,
        error: Some(VendorError {
            wire: Wire::OpenAiResponses,
            message: "the model fell over".into(),
            kind: None,
            code: Some("server_error".into()),
            param: None,
            retry_after_ms: None,
            body: None,
        }),
        ..silent()
    };
    let mut losses = Losses::default();
    let frames = CODEC.encode_stream(&response, &mut losses);
    assert_eq!(
        frames.last().unwrap().data,
        r#"{"type":"error","error":{"type":"api_error","message":"the model fell over"},"request_id":null}"#
    );
    assert_eq!(listed(losses), [lost("error.code", LossKind::VendorFields)]);
}

#[test]
fn unpaired_surrogates_from_elsewhere_are_replaced() {
    let calls = [
        Arguments::Json(raw(r#"{"a\ud800":["\udc00","\ud83d\ude00"],"n":1e999}"#)),
        Arguments::Text(r#"{"a":"\ud800"}"#.into()),
    ];
    for (arguments, input) in calls.into_iter().zip([
        "{\"a\u{fffd}\":[\"\u{fffd}\",\"\\ud83d\\ude00\"],\"n\":1e999}",
        "{\"a\":\"\u{fffd}\"}",
    ]) {
        let (text, losses) = encoded(&[assistant(vec![function("c", arguments).into()])]);
        assert_eq!(
            text,
            format!(
                r#"[{{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"moor","input":{input}}}]}}]"#
            )
        );
        assert_eq!(
            losses,
            [lost("messages[0].contents[0]", LossKind::LoneSurrogate)]
        );
    }
    let request = Request {
        tools: vec![
            ToolDef {
                family: Family::WEB_SEARCH,
                name: "web".into(),
                description: None,
                parameters: None,
                ..ToolDef::default()
            },
            ToolDef {
                family: Family::FUNCTION,
                name: "moor".into(),
                description: None,
                parameters: Some(raw(r#"{"description":"\ud800"}"#)),
                ..ToolDef::default()
            },
        ],
        ..Request::default()
    };
    let mut losses = Losses::default();
    let body = CODEC.encode_request(&request, &mut losses);
    assert_eq!(
        body,
        "{\"max_tokens\":4096,\"messages\":[],\"tools\":[{\"name\":\"moor\",\"input_schema\":{\"type\":\"object\",\"description\":\"\u{fffd}\"}}]}"
    );
    assert_eq!(
        listed(losses),
        [
            lost("tools[0]", LossKind::ToolDefinition),
            lost("tools[1]", LossKind::LoneSurrogate),
        ]
    );
    // What came from this format stays as it was.
    let own = r#"[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"moor","input":{"a":"\ud800"}}]}]"#;
    assert_eq!(encoded(&decode(own).unwrap()), (own.to_owned(), Vec::new()));
}

#[test]
fn media_find_their_source() {
    use MediaKind::{Audio, File, Image};
    use MediaSource::{Data, Uri};
    let none: Option<&str> = None;
    for (content, source) in [
        (
            media(Image, none, Uri("data:image/gif;base64,R0lGOD".into())),
            Some(
                r#"{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0lGOD"}}"#,
            ),
        ),
        (
            media(Image, none, Uri("https://a.example/i.png".into())),
            Some(r#"{"type":"image","source":{"type":"url","url":"https://a.example/i.png"}}"#),
        ),
        (
            media(Image, Some("image/webp"), Data("UklGR".into())),
            Some(
                r#"{"type":"image","source":{"type":"base64","media_type":"image/webp","data":"UklGR"}}"#,
            ),
        ),
        (
            media(File, none, Data("JVBERi0x".into())),
            Some(
                r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"}}"#,
            ),
        ),
        (
            media(File, Some("text/csv"), Data("YSxiCg==".into())),
            Some(
                r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a,b\n"}}"#,
            ),
        ),
        (
            media(File, none, MediaSource::File("file_1".into())),
            Some(r#"{"type":"document","source":{"type":"file","file_id":"file_1"}}"#),
        ),
        (
            media(File, Some("application/zip"), Data("UEs".into())),
            None,
        ),
        (media(Image, none, Data("????".into())), None),
        (media(Image, none, Uri("gs://bucket/i.png".into())), None),
        (
            media(Image, none, Uri("data:image/svg+xml,<svg/>".into())),
            None,
        ),
        (media(Audio, Some("audio/wav"), Data("UklG".into())), None),
        (
            media(Image, none, MediaSource::File("file-1".into()))
                .with_vendor(Vendor::part(Wire::OpenAiResponses, raw("{}"))),
            None,
        ),
    ] {
        let (text, losses) = encoded(&[Message::new(Role::User, vec![content])]);
        match source {
            Some(block) => {
                assert_eq!(text, format!(r#"[{{"role":"user","content":[{block}]}}]"#));
                assert_eq!(losses, []);
            }
            None => {
                assert_eq!(text, "[]");
                assert_eq!(losses, [lost("messages[0].contents[0]", LossKind::Media)]);
            }
        }
    }
}

#[test]
fn a_sound_is_said_by_its_words() {
    let mut sound = media(MediaKind::Audio, None, MediaSource::Data("UklG".into()));
    if let Body::Media(media) = &mut sound.body {
        media.transcript = Some("ahoy".into());
    }
    let (text, losses) = encoded(&[Message::new(Role::User, vec![sound])]);
    assert_eq!(
        text,
        r#"[{"role":"user","content":[{"type":"text","text":"ahoy"}]}]"#
    );
    assert_eq!(losses, [lost("messages[0].contents[0]", LossKind::Media)]);
}

#[test]
fn system_text_stands_after_a_user_message_or_is_lost() {
    let history = [
        system("first"),
        Message::user("hi"),
        system("after the user"),
        Message::new(Role::Developer, vec![Content::text("and more")]),
        assistant(vec![Content::text("hello")]),
        system("after the model"),
        Message::new(
            Role::System,
            vec![
                Content::new(Body::Opaque(Opaque { tag: "x".into() })),
                media(MediaKind::Image, None, MediaSource::Data("/9j/".into())),
            ],
        ),
    ];
    let (text, losses) = encoded(&history);
    assert_eq!(
        text,
        concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"hi"}]},"#,
            r#"{"role":"system","content":[{"type":"text","text":"after the user"},{"type":"text","text":"and more"}]},"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"hello"}]}]"#,
        )
    );
    assert_eq!(
        losses,
        [
            lost("messages[0].contents[0]", LossKind::SystemText),
            lost("messages[5].contents[0]", LossKind::SystemText),
            lost("messages[6].contents[0]", LossKind::VendorItem),
            lost("messages[6].contents[1]", LossKind::SystemText),
        ]
    );
}

#[test]
fn a_request_from_elsewhere_gets_what_the_api_demands() {
    let request = Request {
        system: vec![Content::text("Be brief.")],
        messages: vec![system("Be kind."), Message::user("hi")],
        tools: vec![
            ToolDef {
                family: Family::FUNCTION,
                name: "moor".into(),
                description: Some("Moors.".into()),
                parameters: Some(raw(r#"{"properties":{}}"#)),
                ..ToolDef::default()
            },
            ToolDef {
                family: Family::FUNCTION,
                name: "cast_off".into(),
                description: None,
                parameters: None,
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
        vendor: Some(Vendor::item(
            Wire::OpenAiResponses,
            raw(r#"{"model":"gpt","input":[]}"#),
        )),
    };
    let mut losses = Losses::default();
    let text = CODEC.encode_request(&request, &mut losses);
    assert_eq!(
        text,
        concat!(
            r#"{"max_tokens":4096,"system":"Be brief.\n\nBe kind.","#,
            r#""messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"#,
            r#""tools":[{"name":"moor","description":"Moors.","input_schema":{"type":"object","properties":{}}},"#,
            r#"{"name":"cast_off","input_schema":{"type":"object"}}]}"#,
        )
    );
    assert_eq!(
        listed(losses),
        [
            lost("request.model", LossKind::RequestKey),
            lost("tools[2]", LossKind::ToolDefinition),
        ]
    );
}

#[test]
fn a_request_of_this_format_can_be_changed() {
    let body = r#"{"model":"m","system":"odd \/ text","messages":[{"role":"user","content":"hi"}],"top_k":1}"#;
    let mut request = CODEC.decode_request(&json::parse(body).unwrap()).unwrap();
    assert_eq!(request.system[0].as_text(), Some("odd / text"));
    request.system.push(Content::text("Be kind."));
    request
        .messages
        .push(assistant(vec![Content::text("hello")]));
    assert_eq!(
        CODEC.encode_request(&request, &mut Losses::default()),
        concat!(
            r#"{"model":"m","system":[{"type":"text","text":"odd / text"},{"type":"text","text":"Be kind."}],"#,
            r#""messages":[{"role":"user","content":"hi"},"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"hello"}]}],"top_k":1}"#,
        )
    );
    request.system.clear();
    request.messages.clear();
    assert_eq!(
        CODEC.encode_request(&request, &mut Losses::default()),
        r#"{"model":"m","system":"","messages":[],"top_k":1}"#
    );
}

#[test]
fn tools_on_offer_are_read() {
    let body = r#"{"messages":[],"tools":[{"name":"a","description":"A.","input_schema":{"type":"object"}},{"type":"custom","name":"b","input_schema":{}},{"type":"web_search_20260209","name":"web_search"}]}"#;
    let request = CODEC.decode_request(&json::parse(body).unwrap()).unwrap();
    let found: Vec<_> = request
        .tools
        .iter()
        .map(|tool| (tool.family.as_str(), tool.name.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("function", "a"),
            ("function", "b"),
            ("web_search_20260209", "web_search")
        ]
    );
    assert_eq!(request.tools[0].description.as_deref(), Some("A."));
    assert_eq!(
        request.tools[0].parameters,
        Some(raw(r#"{"type":"object"}"#))
    );
}

#[test]
fn a_user_message_with_results_and_text_is_one_again() {
    let array = r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"t"},{"type":"text","text":"b"}],"x":1}]"#;
    let messages = decode(array).unwrap();
    let roles: Vec<_> = messages.iter().map(|message| &message.role).collect();
    assert_eq!(roles, [&Role::User, &Role::Tool, &Role::User]);
    let envelopes: Vec<_> = messages
        .iter()
        .map(|message| {
            message.contents[0]
                .vendor
                .as_ref()
                .unwrap()
                .envelope
                .clone()
        })
        .collect();
    let envelope = raw(r#"{"role":"user","content":[],"x":1}"#);
    assert_eq!(envelopes, [Some(envelope), None, None]);
    assert_eq!(encoded(&messages), (array.to_owned(), vec![]));
}

#[test]
fn contents_that_lost_their_envelope_find_another() {
    let mut messages = decode(
        r#"[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"},{"type":"text","text":"c"}]}]"#,
    )
    .unwrap();
    messages[1].contents.remove(0);
    messages[1].contents.push(Content::text("d"));
    messages.remove(2);
    assert_eq!(
        encoded(&messages),
        (
            concat!(
                r#"[{"role":"user","content":"hi"},"#,
                r#"{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"text","text":"d"}]},"#,
                r#"{"role":"user","content":[{"type":"text","text":"c"}]}]"#,
            )
            .to_owned(),
            vec![]
        )
    );
}

#[test]
fn a_message_can_be_added_to() {
    let mut messages = decode(
        r#"[{"role":"user","content":[{"type":"text","text":"a"}],"x":1},{"role":"user","content":"bare"}]"#,
    )
    .unwrap();
    messages[0].contents.push(Content::text("b"));
    messages[1].contents.push(Content::text("c"));
    assert_eq!(
        encoded(&messages).0,
        concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"x":1},"#,
            r#"{"role":"user","content":"bare"},{"role":"user","content":[{"type":"text","text":"c"}]}]"#,
        )
    );
}

#[test]
fn changed_arguments_are_written() {
    let array = r#"[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"a":1},"x":2}]}]"#;
    let mut messages = decode(array).unwrap();
    let Body::ToolCall(call) = &mut messages[0].contents[0].body else {
        panic!("{messages:?}");
    };
    call.arguments = Arguments::Text(r#"{"a":3}"#.into());
    assert_eq!(encoded(&messages).0, array.replace("\"a\":1", "\"a\":3"));
}

#[test]
fn neutral_contents_say_what_the_blocks_say() {
    let messages = decode(concat!(
        r#"[{"role":"assistant","content":["#,
        r#"{"type":"thinking","thinking":"hm","signature":"E"},{"type":"thinking","thinking":"","signature":"E"},"#,
        r#"{"type":"thinking","thinking":"x","signature":""},{"type":"redacted_thinking","data":"E"},"#,
        r#"{"type":"text","text":"t","citations":[{"type":"page_location","document_title":"D","file_id":"f"}]},"#,
        r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}},"#,
        r#"{"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error","error_code":"unavailable"}},"#,
        r#"{"type":"tool_use","id":"t","name":"shot","toolset_name":"computer","input":"{"}]},"#,
        r#"{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hi"},"title":"T"}]}]"#,
    ))
    .unwrap();
    let bodies: Vec<_> = messages
        .iter()
        .flat_map(|message| &message.contents)
        .map(|content| content.body.clone())
        .collect();
    let thought = |text: &[&str], sealed| {
        Body::Reasoning(Reasoning {
            summary: vec![],
            text: text.iter().map(|text| (*text).to_owned()).collect(),
            sealed,
        })
    };
    let search = ToolCall {
        call: natural("s"),
        family: Family::named("server-tool"),
        name: "web_search".into(),
        arguments: Arguments::Json(raw(r#"{"q":1}"#)),
        status: None,
        runner: Runner::Vendor,
    };
    let error = r#"{"type":"web_search_tool_result_error","error_code":"unavailable"}"#;
    let mut found =
        ToolResult::answering(natural("s"), Family::WEB_SEARCH, Output::Json(raw(error)));
    found.outcome = Outcome::Error;
    found.runner = Runner::Vendor;
    let citation = Citation {
        title: Some("D".into()),
        file: Some("f".into()),
        ..Citation::default()
    };
    assert_eq!(
        bodies,
        [
            thought(&["hm"], true),
            thought(&[], true),
            thought(&["x"], false),
            thought(&[], true),
            Body::Text(Text {
                text: "t".into(),
                citations: vec![citation],
            }),
            Body::ToolCall(search),
            Body::ToolResult(found),
            Body::ToolCall(ToolCall {
                call: natural("t"),
                family: Family::COMPUTER,
                name: "shot".into(),
                arguments: Arguments::Text("{".into()),
                status: Some(Status::Incomplete),
                runner: Runner::Client,
            }),
            Body::Media(Media {
                kind: MediaKind::File,
                media_type: Some("text/plain".into()),
                source: MediaSource::Data("aGk=".into()),
                name: Some("T".into()),
                transcript: None,
            }),
        ]
    );
}

#[test]
fn long_texts_are_not_kept_twice() {
    let messages = decode(
        r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"long"}]},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"role":"user","content":"bare"}]"#,
    )
    .unwrap();
    let form = |message: usize| messages[message].contents[0].vendor.as_ref().unwrap();
    assert_eq!(
        form(0).form,
        Form::Part(raw(
            r#"{"type":"tool_result","tool_use_id":"t","content":[]}"#
        ))
    );
    assert_eq!(
        form(1).form,
        Form::Part(raw(
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}"#
        ))
    );
    assert_eq!(form(2).form, Form::Bare);
    assert_eq!(
        form(2).envelope,
        Some(raw(r#"{"role":"user","content":""}"#))
    );
}

#[test]
fn a_known_block_with_a_bad_body_is_an_error_with_its_place() {
    for (block, path) in [
        (r#"{"type":"text"}"#, ".text"),
        (r#"{"type":"text","text":null}"#, ".text"),
        (r#"{"type":"thinking","signature":"E"}"#, ".thinking"),
        (r#"{"type":"redacted_thinking"}"#, ".data"),
        (r#"{"type":"tool_use","id":"t","name":"n"}"#, ".input"),
        (r#"{"type":"tool_use","id":"t","input":{}}"#, ".name"),
        (r#"{"type":"tool_use","id":7,"name":"n","input":{}}"#, ".id"),
        (r#"{"type":"tool_result","tool_use_id":[]}"#, ".tool_use_id"),
        (
            r#"{"type":"tool_result","tool_use_id":"t","content":{}}"#,
            ".content",
        ),
        (
            r#"{"type":"tool_result","tool_use_id":"t","content":[{"type":"text"}]}"#,
            ".content[0].text",
        ),
        (r#"{"type":"image"}"#, ".source"),
        (r#"{"type":"image","source":{"type":"url"}}"#, ".source.url"),
        (r#"{"no":"type"}"#, ".type"),
        (r#""text""#, ""),
    ] {
        let error = decode(&format!(r#"[{{"role":"user","content":[{block}]}}]"#)).unwrap_err();
        assert_eq!(error.path, format!("[0].content[0]{path}"), "{block}");
    }
    for (item, path) in [
        ("7", "[0]"),
        (r#"{"role":1,"content":""}"#, "[0].role"),
        (r#"{"content":""}"#, "[0].role"),
        (r#"{"role":"user","content":7}"#, "[0].content"),
    ] {
        assert_eq!(decode(&format!("[{item}]")).unwrap_err().path, path);
    }
}

#[test]
fn a_lone_block_is_told_what_it_lacks() {
    let error = decode(r#"[{"type":"tool_use","id":"t","name":"n","input":{}}]"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"[0]: the block tool_use is only a part of a message; wrap it as {"role":…,"content":[…]}"#
    );
    let error = decode(r#"[{"type":"error","error":{"type":"api_error","message":"down"}}]"#);
    let message = "down".to_owned();
    assert_eq!(error.unwrap_err().problem, Problem::ErrorBody { message });
}

#[test]
fn shapes_are_told_apart() {
    for (text, shape) in [
        (r#"{"messages":[],"model":"m"}"#, DocumentKind::Request),
        (
            r#"{"id":"m","type":"message","role":"assistant","content":[]}"#,
            DocumentKind::Response,
        ),
        (
            r#"{"type":"message","role":"assistant","content":[],"stop_reason":null}"#,
            DocumentKind::Response,
        ),
        (r#"{"role":"user","content":"hi"}"#, DocumentKind::Message),
        (
            r#"{"type":"message","role":"user","content":"hi"}"#,
            DocumentKind::Message,
        ),
        (r#"{"type":"text","text":"hi"}"#, DocumentKind::Message),
        (
            r#"{"type":"error","error":{"type":"api_error","message":""}}"#,
            DocumentKind::Error,
        ),
        (r#"{"input":[]}"#, DocumentKind::Unknown),
        ("[]", DocumentKind::Unknown),
    ] {
        assert_eq!(
            CODEC.document_kind(&json::parse(text).unwrap()),
            shape,
            "{text}"
        );
    }
}

fn response(body: &str) -> Response {
    CODEC.decode_response(&json::parse(body).unwrap()).unwrap()
}

#[test]
fn stop_reasons_are_read() {
    for (word, stop) in [
        ("\"end_turn\"", Stop::Done),
        ("\"stop_sequence\"", Stop::Done),
        ("\"tool_use\"", Stop::ToolCalls),
        ("\"max_tokens\"", Stop::Length),
        ("\"model_context_window_exceeded\"", Stop::Length),
        ("\"refusal\"", Stop::Refusal),
        ("\"pause_turn\"", Stop::Paused),
        ("\"compaction\"", Stop::Other("compaction".into())),
        ("null", Stop::InProgress),
    ] {
        let body = format!(r#"{{"content":[],"stop_reason":{word}}}"#);
        assert_eq!(response(&body).stop, stop);
    }
}

#[test]
fn cached_tokens_count_as_input() {
    let usage = r#"{"input_tokens":1,"cache_read_input_tokens":20,"cache_creation_input_tokens":300,"output_tokens":4,"output_tokens_details":{"thinking_tokens":3}}"#;
    let found = response(&format!(r#"{{"content":"hi","usage":{usage}}}"#));
    let expected = Usage {
        input: Some(321),
        output: Some(4),
        total: None,
        cache_read: Some(20),
        cache_write: Some(300),
        reasoning: Some(3),
        vendor: Some(raw(usage)),
        ..Usage::default()
    };
    assert_eq!(found.usage, Some(expected.clone()));
    assert_eq!(found.messages[0].usage, Some(expected.clone()));
    // And back, for a response from elsewhere.
    let foreign = Response {
        id: Some("resp_1".into()),
        model: Some("gpt".into()),
        messages: vec![assistant(vec![
            function("c", Arguments::Text("{}".into())).into(),
        ])],
        usage: Some(expected),
        stop: Stop::ToolCalls,
        error: None,
        vendor: None,
        service: None,
    };
    let mut losses = Losses::default();
    assert_eq!(
        CODEC.encode_response(&foreign, &mut losses),
        concat!(
            r#"{"id":"resp_1","type":"message","role":"assistant","model":"gpt","#,
            r#""content":[{"type":"tool_use","id":"c","name":"moor","input":{}}],"#,
            r#""stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"#,
            r#""cache_creation_input_tokens":300,"cache_read_input_tokens":20,"output_tokens":4,"#,
            r#""output_tokens_details":{"thinking_tokens":3}}}"#,
        )
    );
    assert!(losses.is_empty());
}

#[test]
fn errors_go_there_and_back() {
    let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"no","details":{"error_code":"thread_not_found"}},"request_id":"req_1"}"#;
    let error = CODEC.decode_error(&json::parse(body).unwrap()).unwrap();
    assert_eq!(
        error,
        VendorError {
            wire: Wire::Anthropic,
            message: "no".into(),
            kind: Some("invalid_request_error".into()),
            code: Some("thread_not_found".into()),
            param: None,
            retry_after_ms: None,
            body: Some(raw(body)),
        }
    );
    assert_eq!(CODEC.encode_error(&error), body);
    let foreign = VendorError {
        wire: Wire::Gemini,
        kind: Some("RESOURCE_EXHAUSTED".into()),
        code: Some("429".into()),
        body: None,
        ..error
    };
    assert_eq!(
        CODEC.encode_error(&foreign),
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"no"},"request_id":null}"#
    );
    // A code of this vendor stays one, also where the body was not kept.
    let own = VendorError {
        wire: Wire::Anthropic,
        kind: Some("invalid_request_error".into()),
        code: Some("thread_not_found".into()),
        ..foreign.clone()
    };
    assert_eq!(CODEC.encode_error(&own), body.replace("\"req_1\"", "null"));
    // Some vendors say in the code what this one says in the type.
    let coded = VendorError {
        kind: None,
        code: Some("rate_limit_exceeded".into()),
        ..foreign
    };
    assert_eq!(
        CODEC.encode_error(&coded),
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"no"},"request_id":null}"#
    );
    let other = json::parse(r#"{"error":{"message":"no"}}"#).unwrap();
    assert_eq!(CODEC.decode_error(&other), None);
    let failed = CODEC.decode_response(&json::parse(body).unwrap());
    let message = "no".to_owned();
    assert_eq!(failed.unwrap_err().problem, Problem::ErrorBody { message });
}

fn frames(events: &[&str]) -> Vec<Frame> {
    let frame = |data: &&str| Frame {
        data: (*data).to_owned(),
        ..Frame::default()
    };
    events.iter().map(frame).collect()
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}"#;

#[test]
fn fragments_are_passed_on_as_they_come() {
    let mut decoder = CODEC.stream();
    let mut seen = Vec::new();
    for frame in frames(&[
        START,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"new_delta"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ]) {
        seen.extend(decoder.push(&frame).unwrap());
    }
    seen.extend(decoder.end().unwrap());
    let at = Place::new(0, 0, 0);
    let call = |arguments, status, input: &str| {
        let id_fields = decode(
            r#"[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}]"#,
        )
        .unwrap()[0]
            .contents[0]
            .id_fields();
        let block = format!(r#"{{"type":"tool_use","id":"t","name":"n","input":{input}}}"#);
        let vendor = Vendor::part(Wire::Anthropic, raw(&block)).with_id_fields(id_fields);
        Content::from(ToolCall {
            status,
            name: "n".into(),
            ..function("t", arguments)
        })
        .with_vendor(vendor)
    };
    let body = raw(
        r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#,
    );
    assert_eq!(
        seen,
        [
            Event::Started {
                id: Some("msg_1".into()),
                model: Some("m".into()),
            },
            Event::Opened {
                at,
                content: call(
                    Arguments::Text(String::new()),
                    Some(Status::Incomplete),
                    "\"\""
                ),
            },
            Event::Delta {
                at,
                text: "{}".into(),
            },
            Event::Other {
                wire: Wire::Anthropic,
                event: raw(
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"new_delta"}}"#
                ),
            },
            Event::Content {
                at,
                content: call(Arguments::Json(raw("{}")), None, "null"),
            },
            Event::Finished {
                stop: Stop::ToolCalls,
                usage: Some(Usage {
                    input: Some(1),
                    output: Some(2),
                    vendor: Some(raw(r#"{"input_tokens":1,"output_tokens":2}"#)),
                    ..Usage::default()
                }),
                error: None,
                vendor: Some(Box::new(Vendor::item(Wire::Anthropic, body))),
                service: None,
            },
        ]
    );
}

#[test]
fn an_error_inside_a_stream_fails_the_response() {
    let error =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"r"}"#;
    let events = frames(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hel"}}"#,
        error,
        r#"{"type":"message_stop"}"#,
    ]);
    let response = assemble(&CODEC, &events).unwrap();
    assert_eq!(response.stop, Stop::Failed);
    assert_eq!(
        response.error,
        CODEC.decode_error(&json::parse(error).unwrap())
    );
    assert_eq!(response.messages[0].text(), "Hel");
    assert_eq!(response.messages[0].status, Some(Status::Incomplete));
    let mut losses = Losses::default();
    let again = CODEC.encode_stream(&response, &mut losses);
    assert_eq!(assemble(&CODEC, &again).unwrap(), response);
    assert_eq!(again.last().unwrap().data, error);
    assert!(losses.is_empty());
    // As a body there is no place for it.
    CODEC.encode_response(&response, &mut losses);
    assert_eq!(listed(losses), [lost("error", LossKind::Marking)]);
}

#[test]
fn a_cut_response_is_written_as_a_cut_stream() {
    let events = frames(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"E"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}"#,
    ]);
    for cut in 1..=events.len() {
        let response = assemble(&CODEC, &events[..cut]).unwrap();
        let again = CODEC.encode_stream(&response, &mut Losses::default());
        let again = assemble(&CODEC, &again).unwrap();
        assert_eq!(again.stop, Stop::Cut);
        assert_eq!(again.messages, response.messages, "cut at {cut}");
    }
    let response = assemble(&CODEC, &events).unwrap();
    // The signed thought is whole, and the call says that it is not.
    assert_eq!(
        encoded(&response.messages).0,
        r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"E"},{"type":"tool_use","id":"t","name":"n","input":"{\"a"}]}]"#
    );
}

#[test]
fn frames_follow_the_grammar() {
    let body = r#"{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"Hi","citations":[{"type":"page_location"}]},{"type":"tool_use","id":"t","name":"n","input":{"a":"\"b"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"output_tokens":2}}"#;
    let frames = CODEC.encode_stream(&response(body), &mut Losses::default());
    let data: Vec<_> = frames.iter().map(|frame| frame.data.as_str()).collect();
    assert_eq!(
        data,
        [
            r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"output_tokens":2}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":[]}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"page_location"}}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\"\\\"b\"}"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":2}}"#,
            r#"{"type":"message_stop"}"#,
        ]
    );
    assert_eq!(frames[0].event.as_deref(), Some("message_start"));
}

#[test]
fn a_stream_out_of_its_grammar_is_an_error() {
    let text =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    for events in [
        &[r#"{"type":"message_stop"}"#][..],
        &[r#"{"type":"message_start"}"#],
        &[START, r#"{"type":"content_block_stop","index":0}"#],
        &[START, text, text],
        &[
            START,
            text,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}"#,
        ],
        &[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#,
        ],
        &[START, "not json"],
    ] {
        assemble(&CODEC, &frames(events)).unwrap_err();
    }
}
