use throughline_model::json::{self, RawJson};
use throughline_model::{
    ApprovalRequest, Arguments, Body, CallId, Citation, Content, Event, Family, Fault, Form, Media,
    MediaKind, MediaSource, Message, Opaque, Origin, Outcome, Output, Pairing, Reasoning, Request,
    Response, Role, Runner, Status, Stop, Text, ToolCall, ToolDef, ToolResult, Usage, Vendor,
    VendorError, Wire, pairs,
};

use super::CODEC;
use crate::sse::Frame;
use crate::{DocumentKind, LossKind, Losses, Problem, assemble};

fn decode(array: &str) -> Vec<Message> {
    let value = json::parse(array).unwrap();
    CODEC.decode_messages(value.as_array().unwrap()).unwrap()
}

fn encode(messages: &[Message]) -> (String, Vec<(String, LossKind)>) {
    let mut losses = Losses::default();
    let text = CODEC.encode_messages(messages, &mut losses);
    (text, noted(losses))
}

fn noted(losses: Losses) -> Vec<(String, LossKind)> {
    let list = losses.into_vec().into_iter();
    list.map(|loss| (loss.path, loss.kind)).collect()
}

fn lost(path: &str, kind: LossKind) -> (String, LossKind) {
    (path.to_owned(), kind)
}

fn natural(id: &str) -> CallId {
    CallId::natural(id).unwrap()
}

fn media(kind: MediaKind, source: MediaSource, media_type: Option<&str>) -> Content {
    Content::new(Body::Media(Media {
        kind,
        media_type: media_type.map(Into::into),
        source,
        name: None,
        transcript: None,
    }))
}

fn refusal(text: &str) -> Content {
    Content::new(Body::Refusal(Text {
        text: text.to_owned(),
        citations: Vec::new(),
    }))
}

fn reasoning() -> Content {
    Content::new(Body::Reasoning(Reasoning {
        summary: vec!["thought".to_owned()],
        ..Reasoning::default()
    }))
}

fn frame(data: &str) -> Frame {
    Frame {
        data: data.to_owned(),
        ..Frame::default()
    }
}

#[test]
fn a_conversation_from_elsewhere_is_said_in_messages() {
    let tide = ToolCall::function(natural("call_1"), "get_tide", r#"{"port":"Brest"}"#);
    let berth = ToolCall {
        arguments: Arguments::Json(RawJson::new("{\"n\": 4}").unwrap()),
        ..ToolCall::function(natural("call_2"), "book", "")
    };
    let sql = ToolCall {
        family: Family::CUSTOM,
        arguments: Arguments::Free("select 1".to_owned()),
        ..ToolCall::function(natural("call_3"), "run_sql", "")
    };
    let shell = ToolCall {
        family: Family::SHELL,
        ..ToolCall::function(natural("call_4"), "", "[]")
    };
    let results = vec![
        Content::from(tide.answer(Outcome::Ok, Output::Text("04:12".to_owned()))),
        Content::from(berth.answer(Outcome::Error, Output::Text("full".to_owned()))),
        Content::from(sql.answer(Outcome::Ok, Output::Json(RawJson::new("[1, 2]").unwrap()))),
        Content::from(shell.answer(Outcome::Rejected, Output::None)),
    ];
    let image = MediaSource::Uri("https://harbour.example/a.png".to_owned());
    let mut asked = Message::user("Look");
    asked.author = Some("ada".to_owned());
    asked
        .contents
        .push(media(MediaKind::Image, image, Some("image/png")));
    let messages = [
        Message::new(Role::System, vec![Content::text("Be brief.")]),
        asked,
        Message::new(
            Role::Assistant,
            vec![
                reasoning(),
                Content::text("One moment."),
                tide.into(),
                berth.into(),
                sql.into(),
                shell.into(),
            ],
        ),
        Message::new(Role::Tool, results),
        Message::new(Role::Assistant, vec![refusal("No.")]),
    ];
    let (text, losses) = encode(&messages);
    let expected = [
        r#"{"role":"system","content":"Be brief."}"#,
        r#"{"role":"user","name":"ada","content":[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"https://harbour.example/a.png"}}]}"#,
        r#"{"role":"assistant","content":"One moment.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_tide","arguments":"{\"port\":\"Brest\"}"}},{"id":"call_2","type":"function","function":{"name":"book","arguments":"{\"n\":4}"}},{"id":"call_3","type":"custom","custom":{"name":"run_sql","input":"select 1"}},{"id":"call_4","type":"function","function":{"name":"function-shell","arguments":"[]"}}]}"#,
        r#"{"role":"tool","tool_call_id":"call_1","content":"04:12"}"#,
        r#"{"role":"tool","tool_call_id":"call_2","content":"full"}"#,
        r#"{"role":"tool","tool_call_id":"call_3","content":"[1,2]"}"#,
        r#"{"role":"tool","tool_call_id":"call_4","content":""}"#,
        r#"{"role":"assistant","content":null,"refusal":"No."}"#,
    ];
    assert_eq!(text, format!("[{}]", expected.join(",")));
    assert_eq!(
        losses,
        [
            lost("messages[2].contents[0]", LossKind::Reasoning),
            lost("messages[2].contents[5]", LossKind::HostedTool),
            lost("messages[3].contents[1]", LossKind::Outcome),
            lost("messages[3].contents[3]", LossKind::Outcome),
        ]
    );
    // What was written is read as the same calls and results.
    let read = decode(&text);
    assert_eq!(pairs(&read).len(), 4);
}

#[test]
fn what_cannot_be_said_is_listed() {
    let hosted = ToolCall {
        family: Family::WEB_SEARCH,
        runner: Runner::Vendor,
        ..ToolCall::function(CallId::item("ws_1").unwrap(), "", "{}")
    };
    let found = hosted.answer(Outcome::Ok, Output::Text("x".to_owned()));
    let approval = Content::new(Body::ApprovalRequest(ApprovalRequest {
        request: natural("mcpr_1"),
        name: "f".to_owned(),
        arguments: Arguments::None,
        server: None,
    }));
    let opaque = Content::new(Body::Opaque(Opaque {
        tag: "compaction".to_owned(),
    }));
    let fault = Content::new(Body::Error(Fault {
        message: "broken".to_owned(),
        code: None,
    }));
    let stray = ToolResult::standalone(natural("x"), Family::FUNCTION, Output::None);
    let picture = || media(MediaKind::Image, MediaSource::Data("AAAA".to_owned()), None);
    let parts = Output::Parts(vec![Content::text("see"), picture(), Content::text("it")]);
    let shown = ToolCall::function(natural("call_1"), "f", "{}").answer(Outcome::Ok, parts);
    let mut cited = Text {
        text: "04:12".to_owned(),
        ..Text::default()
    };
    cited.citations.push(Citation::default());
    let mut named = Message::new(Role::Other("critic".into()), vec![Content::text("hm")]);
    named.author = Some("two words".to_owned());
    let messages = [
        Message::new(
            Role::Assistant,
            vec![
                hosted.into(),
                found.into(),
                approval,
                opaque,
                fault,
                picture(),
            ],
        ),
        Message::new(Role::Tool, vec![stray.into(), shown.into()]),
        Message::new(Role::Assistant, vec![Content::new(Body::Text(cited))]),
        Message::new(Role::User, vec![refusal("no")]),
        named,
        Message::new(Role::User, Vec::new()),
        Message::new(Role::Assistant, vec![reasoning()]),
    ];
    let (text, losses) = encode(&messages);
    let expected = [
        r#"{"role":"assistant","content":"broken"}"#,
        r#"{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"see"},{"type":"text","text":"it"}]}"#,
        r#"{"role":"assistant","content":"04:12"}"#,
        r#"{"role":"user","content":"no"}"#,
        r#"{"role":"user","content":"hm"}"#,
    ];
    assert_eq!(text, format!("[{}]", expected.join(",")));
    assert_eq!(
        losses,
        [
            lost("messages[0].contents[0]", LossKind::HostedTool),
            lost("messages[0].contents[1]", LossKind::HostedTool),
            lost("messages[0].contents[2]", LossKind::Approval),
            lost("messages[0].contents[3]", LossKind::VendorItem),
            lost("messages[0].contents[4]", LossKind::Marking),
            lost("messages[0].contents[5]", LossKind::Media),
            lost("messages[1].contents[0]", LossKind::StandaloneResult),
            lost("messages[1].contents[1].output[1]", LossKind::Media),
            lost("messages[2].contents[0]", LossKind::Citations),
            lost("messages[3].contents[0]", LossKind::Marking),
            lost("messages[4]", LossKind::Role),
            lost("messages[4]", LossKind::VendorFields),
            lost("messages[5]", LossKind::EmptyMessage),
            lost("messages[6].contents[0]", LossKind::Reasoning),
        ]
    );
}

#[test]
fn media_of_users_is_sent_where_there_is_a_form_for_it() {
    let data = || MediaSource::Data("AAAA".to_owned());
    let uri = |uri: &str| MediaSource::Uri(uri.to_owned());
    let file = || MediaSource::File("file_1".to_owned());
    let sent = [
        (
            media(MediaKind::Image, data(), Some("image/jpeg")),
            r#"{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,AAAA"}}"#,
        ),
        (
            media(MediaKind::Audio, data(), Some("audio/mpeg")),
            r#"{"type":"input_audio","input_audio":{"data":"AAAA","format":"mp3"}}"#,
        ),
        (
            media(MediaKind::Audio, uri("data:audio/wav;base64,BBBB"), None),
            r#"{"type":"input_audio","input_audio":{"data":"BBBB","format":"wav"}}"#,
        ),
        (
            media(MediaKind::File, data(), Some("application/pdf")),
            r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA","filename":"file"}}"#,
        ),
        (
            media(MediaKind::File, file(), None),
            r#"{"type":"file","file":{"file_id":"file_1"}}"#,
        ),
    ];
    for (content, part) in sent {
        let (text, losses) = encode(&[Message::new(Role::User, vec![content])]);
        assert_eq!(text, format!(r#"[{{"role":"user","content":[{part}]}}]"#));
        assert_eq!(losses, []);
    }
    let of_gemini = Vendor::form(Wire::Gemini, Form::Within);
    let refused = [
        media(MediaKind::Image, file(), None),
        media(MediaKind::Audio, uri("https://harbour.example/a.wav"), None),
        media(MediaKind::Audio, data(), Some("audio/flac")),
        media(MediaKind::Video, data(), None),
        media(MediaKind::File, uri("https://harbour.example/a.pdf"), None),
        media(MediaKind::File, file(), None).with_vendor(of_gemini),
    ];
    for content in refused {
        let (text, losses) = encode(&[Message::new(Role::User, vec![content])]);
        assert_eq!(text, "[]");
        assert_eq!(losses, [lost("messages[0].contents[0]", LossKind::Media)]);
    }
}

#[test]
fn a_long_id_from_elsewhere_is_short_at_both_ends() {
    let long = "toolu_".repeat(10);
    let call = ToolCall::function(natural(&long), "f", "{}");
    let result = call.answer(Outcome::Ok, Output::None);
    let history = [
        Message::new(Role::Assistant, vec![call.into()]),
        Message::new(Role::Tool, vec![result.into()]),
    ];
    let (text, _) = encode(&history);
    assert!(!text.contains(&long));
    let read = decode(&text);
    assert_eq!(pairs(&read).len(), 1);
    let id = &read[0].contents[0].as_tool_call().unwrap().call;
    assert!(id.value().len() <= 40, "{id}");
    let edge = "x".repeat(40);
    let call = ToolCall::function(natural(&edge), "f", "{}");
    let (text, _) = encode(&[Message::new(Role::Assistant, vec![call.into()])]);
    assert!(text.contains(&edge));
}

/// The answer that an application gives to the first call of a message.
fn answered(mut messages: Vec<Message>) -> String {
    let call = messages[0].contents[0].as_tool_call().unwrap();
    let result = call.answer(Outcome::Ok, Output::Text("ok".to_owned()));
    messages.push(Message::new(Role::Tool, vec![result.into()]));
    encode(&messages).0
}

#[test]
fn an_answer_names_its_call_as_the_call_names_itself() {
    let call = |id: &str| {
        let inner = r#""type":"function","function":{"name":"f","arguments":"{}"}"#;
        format!(r#"{{"role":"assistant","content":null,"tool_calls":[{{{id}{inner}}}]}}"#)
    };
    let long = "a".repeat(46);
    let cases = [
        (
            format!(r#""id":"{long}","#),
            format!(r#","tool_call_id":"{long}""#),
        ),
        (String::new(), String::new()),
        (
            r#""id":null,"#.to_owned(),
            r#","tool_call_id":null"#.to_owned(),
        ),
        (r#""id":"","#.to_owned(), r#","tool_call_id":"""#.to_owned()),
    ];
    for (id, slot) in cases {
        let call = call(&id);
        let text = answered(decode(&format!("[{call}]")));
        assert_eq!(
            text,
            format!(r#"[{call},{{"role":"tool"{slot},"content":"ok"}}]"#)
        );
        assert_eq!(pairs(&decode(&text)).len(), 1);
    }
    let old =
        r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#;
    let text = answered(decode(&format!("[{old}]")));
    let answer = r#"{"role":"function","name":"f","content":"ok"}"#;
    assert_eq!(text, format!("[{old},{answer}]"));
    assert_eq!(pairs(&decode(&text)).len(), 1);
}

#[test]
fn messages_are_read_in_our_words() {
    let messages = decode(
        r#"[
        {"role":"developer","name":"ops","content":"Be brief."},
        {"role":"assistant","content":"","reasoning_content":"Hm.","annotations":[],"tool_calls":[
            {"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},
            {"id":"b","type":"custom","custom":{"name":"g","input":"x"}},
            {"id":"c","type":"retrieval","retrieval":{"name":"h","q":1}}]},
        {"role":"tool","tool_call_id":"b","content":"1"},
        {"role":"tool","tool_call_id":"zzz","content":[{"type":"text","text":"2"}]},
        {"role":"assistant","content":"04:12","annotations":[{"type":"url_citation","url_citation":
            {"start_index":0,"end_index":5,"title":"Tides","url":"https://t.example/"}}]}]"#,
    );
    let roles: Vec<_> = messages
        .iter()
        .map(|message| message.role.as_str())
        .collect();
    assert_eq!(roles, ["developer", "assistant", "tool", "assistant"]);
    assert_eq!(messages[0].author.as_deref(), Some("ops"));
    let [thought, rest @ ..] = messages[1].contents.as_slice() else {
        panic!("{messages:?}");
    };
    let Body::Reasoning(thought) = &thought.body else {
        panic!("{thought:?}");
    };
    assert_eq!(thought.text, ["Hm."]);
    assert_eq!(rest.len(), 3, "an empty string beside calls says nothing");
    let calls: Vec<_> = rest
        .iter()
        .filter_map(Content::as_tool_call)
        .map(|call| (call.family.as_str(), call.name.as_str(), &call.arguments))
        .collect();
    let raw = RawJson::new(r#"{"name":"h","q":1}"#).unwrap();
    assert_eq!(
        calls,
        [
            ("function", "f", &Arguments::Text("{}".to_owned())),
            ("custom", "g", &Arguments::Free("x".to_owned())),
            ("retrieval", "h", &Arguments::Json(raw)),
        ]
    );
    let results: Vec<_> = messages[2]
        .contents
        .iter()
        .filter_map(Content::as_tool_result)
        .map(|found| {
            (
                found.call().value(),
                found.family.as_str(),
                found.name.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        results,
        [("b", "custom", Some("g")), ("zzz", "function", None)]
    );
    let Body::Text(text) = &messages[3].contents[0].body else {
        panic!("{messages:?}");
    };
    assert_eq!(text.citations[0].url.as_deref(), Some("https://t.example/"));
    assert_eq!(text.citations[0].end, Some(5));
}

#[test]
fn a_piece_of_a_message_is_told_how_to_become_one() {
    let call = r#"{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}"#;
    let value = json::parse(call).unwrap();
    assert_eq!(CODEC.document_kind(&value), DocumentKind::Message);
    let error = CODEC.decode_messages(&[value]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "[0]: a tool call (function) is only a part of a message; wrap it as \
         {\"role\":\"assistant\",\"content\":null,\"tool_calls\":[…]}"
    );
    let part = json::parse(r#"{"type":"text","text":"x"}"#).unwrap();
    let error = CODEC.decode_messages(&[part]).unwrap_err();
    assert!(matches!(error.problem, Problem::Fragment { .. }), "{error}");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let in_call = |call: &str| format!(r#"[{{"role":"assistant","tool_calls":[{call}]}}]"#);
    let cases = [
        ("[7]".to_owned(), "[0]: expected a message, found a number"),
        (
            "[{}]".to_owned(),
            "[0].role: expected a string, found nothing",
        ),
        (
            r#"[{"role":"user","content":7}]"#.to_owned(),
            "[0].content: expected a string or an array of parts, found a number",
        ),
        (
            r#"[{"role":"user","content":[{"type":"text"}]}]"#.to_owned(),
            "[0].content[0].text: expected a string, found nothing",
        ),
        (
            r#"[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]"#.to_owned(),
            "[0].content[0].image_url: expected an object with data, found an object",
        ),
        (
            r#"[{"role":"assistant","refusal":1}]"#.to_owned(),
            "[0].refusal: expected a string, found a number",
        ),
        (
            r#"[{"role":"assistant","tool_calls":{}}]"#.to_owned(),
            "[0].tool_calls: expected an array of calls, found an object",
        ),
        (
            in_call(r#"{"id":"a","type":"function"}"#),
            "[0].tool_calls[0].function: expected name and arguments, found nothing",
        ),
        (
            in_call(r#"{"id":"a","type":"function","function":{"arguments":"{}"}}"#),
            "[0].tool_calls[0].function.name: expected a string, found nothing",
        ),
        (
            in_call(r#"{"id":"a","type":"function","function":{"name":"f","arguments":{}}}"#),
            "[0].tool_calls[0].function.arguments: expected a string, found an object",
        ),
        (
            in_call(r#"{"id":7,"type":"function","function":{"name":"f","arguments":""}}"#),
            "[0].tool_calls[0].id: expected a string or null, found a number",
        ),
        (
            r#"[{"role":"assistant","function_call":{"name":"f"}}]"#.to_owned(),
            "[0].function_call.arguments: expected a string, found nothing",
        ),
        (
            r#"[{"role":"tool","tool_call_id":{},"content":""}]"#.to_owned(),
            "[0].tool_call_id: expected a string or null, found an object",
        ),
    ];
    for (array, expected) in cases {
        let value = json::parse(&array).unwrap();
        let error = CODEC
            .decode_messages(value.as_array().unwrap())
            .unwrap_err();
        assert_eq!(error.to_string(), expected, "{array}");
    }
    let body = json::parse(r#"{"choices":[{"index":0}]}"#).unwrap();
    let error = CODEC.decode_response(&body).unwrap_err();
    assert_eq!(
        error.to_string(),
        "choices[0].message: expected a message, found nothing"
    );
    let body = json::parse(r#"{"error":{"message":"slow down"}}"#).unwrap();
    let error = CODEC.decode_response(&body).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this is an error body, not messages: slow down"
    );
}

#[test]
fn objects_are_told_apart_by_their_keys() {
    let cases = [
        (r#"{"choices":[]}"#, DocumentKind::Response),
        (r#"{"choices":[],"error":{}}"#, DocumentKind::Response),
        (r#"{"messages":[]}"#, DocumentKind::Request),
        (r#"{"role":"user"}"#, DocumentKind::Message),
        (r#"{"error":{"message":""}}"#, DocumentKind::Error),
        (r#"{"error":null}"#, DocumentKind::Unknown),
        (r#"{"id":"x"}"#, DocumentKind::Unknown),
        ("7", DocumentKind::Unknown),
    ];
    for (text, shape) in cases {
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
fn the_end_of_an_answer_is_read_in_our_words() {
    let text = r#""message":{"role":"assistant","content":"x"}"#;
    let call = r#""message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]}"#;
    let cases = [
        ("\"stop\"", text, Stop::Done),
        ("\"stop\"", call, Stop::ToolCalls),
        ("\"tool_calls\"", call, Stop::ToolCalls),
        ("\"function_call\"", text, Stop::ToolCalls),
        ("\"length\"", call, Stop::Length),
        ("\"content_filter\"", text, Stop::ContentFilter),
        ("\"eos\"", text, Stop::Other("eos".into())),
        ("null", text, Stop::Done),
        ("\"\"", call, Stop::ToolCalls),
    ];
    for (word, message, stop) in cases {
        let body = format!(r#"{{"choices":[{{{message},"finish_reason":{word}}}]}}"#);
        assert_eq!(response(&body).stop, stop, "{body}");
    }
    let failed = response(r#"{"choices":[],"error":{"message":"x","code":502}}"#);
    assert_eq!(failed.stop, Stop::Failed);
    assert_eq!(failed.error.unwrap().code.as_deref(), Some("502"));
}

#[test]
fn calls_of_two_alternatives_never_share_a_minted_id() {
    let call = r#"{"type":"function","function":{"name":"f","arguments":"{}"}}"#;
    let choice = |index: usize| {
        format!(
            r#"{{"index":{index},"message":{{"role":"assistant","tool_calls":[{call},{call}]}}}}"#
        )
    };
    let found = response(&format!(
        r#"{{"id":"x","choices":[{},{}]}}"#,
        choice(0),
        choice(1)
    ));
    let ids: std::collections::HashSet<_> = found
        .messages
        .iter()
        .flat_map(|message| &message.contents)
        .filter_map(Content::as_tool_call)
        .map(|call| call.call.clone())
        .collect();
    assert_eq!(ids.len(), 4);
}

#[test]
fn usage_includes_what_was_cached_and_what_was_thought() {
    let found = response(
        r#"{"choices":[{"message":{"role":"assistant","content":"x"}}],"usage":{"prompt_tokens":90,"completion_tokens":29,"total_tokens":119,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":12}}}"#,
    );
    let usage = found.usage.clone().unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.total),
        (Some(90), Some(29), Some(119))
    );
    assert_eq!(
        (usage.cache_read, usage.cache_write, usage.reasoning),
        (Some(64), None, Some(12))
    );
    assert_eq!(found.messages[0].usage, found.usage);
}

/// An answer from elsewhere: text with a citation, a refusal, two calls.
fn foreign_response() -> Response {
    let mut second = Text {
        text: "04:12".to_owned(),
        ..Text::default()
    };
    second.citations.push(Citation {
        url: Some("https://t.example/".to_owned()),
        start: Some(0),
        end: Some(5),
        ..Citation::default()
    });
    let contents = vec![
        reasoning(),
        Content::text("Höchststand: "),
        Content::new(Body::Text(second)),
        ToolCall::function(natural("call_1"), "f", r#"{"a":1}"#).into(),
        ToolCall::function(natural("call_2"), "g", "").into(),
    ];
    Response {
        id: Some("msg_1".to_owned()),
        model: Some("claude".to_owned()),
        messages: vec![Message::new(Role::Assistant, contents)],
        usage: Some(Usage {
            input: Some(10),
            output: Some(5),
            cache_read: Some(4),
            ..Usage::default()
        }),
        stop: Stop::ToolCalls,
        error: None,
        vendor: None,
        service: None,
    }
}

#[test]
fn a_response_from_elsewhere_is_a_chat_completion() {
    let mut losses = Losses::default();
    let body = CODEC.encode_response(&foreign_response(), &mut losses);
    assert_eq!(
        body,
        r#"{"id":"msg_1","object":"chat.completion","created":0,"model":"claude","choices":[{"index":0,"message":{"role":"assistant","content":"Höchststand: 04:12","refusal":null,"annotations":[{"type":"url_citation","url_citation":{"start_index":13,"end_index":18,"title":"https://t.example/","url":"https://t.example/"}}],"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"call_2","type":"function","function":{"name":"g","arguments":""}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4}}}"#
    );
    assert_eq!(
        noted(losses),
        [lost("messages[0].contents[0]", LossKind::Reasoning)]
    );
}

#[test]
fn a_response_is_streamed_role_first_and_usage_last() {
    let mut losses = Losses::default();
    let frames = CODEC.encode_stream(&foreign_response(), &mut losses);
    assert_eq!(
        noted(losses),
        [
            lost("messages[0].contents[0]", LossKind::Reasoning),
            lost("messages[0].contents[2]", LossKind::Citations),
        ]
    );
    let head = r#""id":"msg_1","object":"chat.completion.chunk","created":0,"model":"claude""#;
    let delta = |delta: &str| {
        format!(r#"{{{head},"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
    };
    let expected = [
        format!(
            r#"{{{head},"choices":[{{"index":0,"delta":{{"role":"assistant","content":"","refusal":null}},"logprobs":null,"finish_reason":null}}],"usage":null}}"#
        ),
        delta(r#"{"content":"Höchststand: 04:12"}"#),
        delta(
            r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}"#,
        ),
        delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}"#),
        delta(
            r#"{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"g","arguments":""}}]}"#,
        ),
        format!(
            r#"{{{head},"choices":[{{"index":0,"delta":{{}},"finish_reason":"tool_calls"}}]}}"#
        ),
        format!(
            r#"{{{head},"choices":[],"usage":{{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{{"cached_tokens":4}}}}}}"#
        ),
        "[DONE]".to_owned(),
    ];
    let data: Vec<_> = frames.iter().map(|frame| frame.data.clone()).collect();
    assert_eq!(data, expected);
    let mut uncited = foreign_response();
    if let Body::Text(text) = &mut uncited.messages[0].contents[2].body {
        text.citations.clear();
    }
    let body = CODEC.encode_response(&uncited, &mut Losses::default());
    assert_eq!(assemble(&CODEC, &frames).unwrap(), response(&body));
}

#[test]
fn citations_of_our_own_are_streamed_as_they_came() {
    let body = CODEC.encode_response(&foreign_response(), &mut Losses::default());
    let own = response(&body);
    let frames = CODEC.encode_stream(&own, &mut Losses::default());
    assert_eq!(assemble(&CODEC, &frames).unwrap(), own);
}

#[test]
fn a_failed_response_ends_its_stream_with_the_error() {
    let mut failed = foreign_response();
    failed.stop = Stop::Failed;
    failed.error = Some(VendorError {
        wire: Wire::Anthropic,
        message: "overloaded".to_owned(),
        kind: Some("overloaded_error".to_owned()),
        code: None,
        param: None,
        retry_after_ms: None,
        body: None,
    });
    let mut losses = Losses::default();
    let body = CODEC.encode_response(&failed, &mut losses);
    assert!(!body.contains("error"), "{body}");
    assert!(noted(losses).contains(&lost("error", LossKind::VendorItem)));
    let mut losses = Losses::default();
    let frames = CODEC.encode_stream(&failed, &mut losses);
    assert!(!noted(losses).contains(&lost("error", LossKind::VendorItem)));
    let read = assemble(&CODEC, &frames).unwrap();
    assert_eq!(read.stop, Stop::Failed);
    assert_eq!(read.error.unwrap().message, "overloaded");
    assert_eq!(read.messages[0].status, Some(Status::Incomplete));
    assert_eq!(read.messages[0].text(), "Höchststand: 04:12");
}

#[test]
fn a_request_from_elsewhere_keeps_system_text_messages_and_functions() {
    let request = Request {
        system: vec![Content::text("Be brief."), Content::text("Be kind.")],
        messages: vec![Message::user("hi")],
        tools: vec![
            ToolDef {
                family: Family::FUNCTION,
                name: "f".to_owned(),
                description: Some("F.".to_owned()),
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
        vendor: Some(Vendor::item(
            Wire::Anthropic,
            RawJson::new(r#"{"model":"claude","system":"","messages":[],"tools":[]}"#).unwrap(),
        )),
    };
    let mut losses = Losses::default();
    let body = CODEC.encode_request(&request, &mut losses);
    assert_eq!(
        body,
        r#"{"messages":[{"role":"system","content":"Be brief.\n\nBe kind."},{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","description":"F.","parameters":{"type":"object"}}}]}"#
    );
    assert_eq!(
        noted(losses),
        [
            lost("request.model", LossKind::RequestKey),
            lost("tools[1]", LossKind::ToolDefinition),
        ]
    );
}

#[test]
fn tools_of_a_request_are_read_in_both_forms() {
    let body = json::parse(
        r#"{"messages":[],"tools":[{"type":"function","function":{"name":"f","description":"F.","parameters":{"a":1}}},{"type":"custom","custom":{"name":"g"}}],"functions":[{"name":"h"}]}"#,
    )
    .unwrap();
    let request = CODEC.decode_request(&body).unwrap();
    let found: Vec<_> = request
        .tools
        .iter()
        .map(|tool| {
            (
                tool.family.as_str(),
                tool.name.as_str(),
                tool.parameters.is_some(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("function", "f", true),
            ("custom", "g", false),
            ("function", "h", false)
        ]
    );
}

#[test]
fn an_error_comes_back_as_it_was() {
    let text = r#"{"error":{"message":"slow","type":"requests","param":null,"code":"rate_limit_exceeded","x":1},"y":2}"#;
    let error = CODEC.decode_error(&json::parse(text).unwrap()).unwrap();
    assert_eq!(error.kind.as_deref(), Some("requests"));
    assert_eq!(error.code.as_deref(), Some("rate_limit_exceeded"));
    assert_eq!(CODEC.encode_error(&error), text);
    let foreign = VendorError {
        wire: Wire::Gemini,
        body: None,
        code: None,
        ..error
    };
    assert_eq!(
        CODEC.encode_error(&foreign),
        r#"{"error":{"message":"slow","type":"requests","param":null,"code":null}}"#
    );
    assert_eq!(CODEC.decode_error(&json::parse("{}").unwrap()), None);
}

#[test]
fn an_error_in_a_stream_ends_it() {
    let frames = [
        frame(r#"{"id":"x","choices":[{"index":0,"delta":{"content":"He"}}]}"#),
        frame(r#"{"type":"ping"}"#),
        frame(r#"{"error":{"message":"gone","code":502}}"#),
        frame("[DONE]"),
    ];
    let response = assemble(&CODEC, &frames).unwrap();
    assert_eq!(response.stop, Stop::Failed);
    assert_eq!(response.messages[0].text(), "He");
    assert_eq!(response.messages[0].status, Some(Status::Incomplete));
    assert_eq!(response.error.unwrap().message, "gone");
    let mut decoder = CODEC.stream();
    let other = decoder.push(&frames[1]).unwrap();
    assert!(matches!(other.as_slice(), [Event::Other { .. }]));
}

#[test]
fn a_stream_without_an_end_is_cut() {
    let frames = [
        frame(
            r#"{"id":"x","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"He"}}]}"#,
        ),
        frame(
            r#"{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a"}}]}}]}"#,
        ),
    ];
    let response = assemble(&CODEC, &frames).unwrap();
    assert_eq!(response.stop, Stop::Cut);
    assert_eq!(response.id.as_deref(), Some("x"));
    let message = &response.messages[0];
    assert_eq!(message.status, Some(Status::Incomplete));
    let call = message.contents[1].as_tool_call().unwrap();
    assert_eq!(call.arguments, Arguments::Text("{\"a".to_owned()));
    assert_eq!(call.call.origin(), Origin::Minted);
    assert_eq!(assemble(&CODEC, &[]).unwrap().stop, Stop::Cut);
    assert_eq!(
        assemble(&CODEC, &[frame("[DONE]")]).unwrap().stop,
        Stop::Cut
    );
}

#[test]
fn what_its_message_left_behind_is_still_said() {
    let mut messages = decode(
        r#"[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"refusal":"no","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"x":1}]}]"#,
    );
    messages[0].contents.remove(0);
    let (text, losses) = encode(&messages);
    assert_eq!(
        text,
        r#"[{"role":"assistant","content":"b","refusal":"no","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"x":1}]}]"#
    );
    assert_eq!(losses, []);
}

#[test]
fn results_that_nobody_asked_for_say_so() {
    let messages = decode(r#"[{"role":"tool","content":"x"},{"role":"function","content":"y"}]"#);
    for content in &messages[0].contents {
        let result = content.as_tool_result().unwrap();
        assert_eq!(result.pairing(), Pairing::Standalone);
        assert_eq!(result.call().origin(), Origin::Minted);
    }
    assert_eq!(messages.len(), 1);
}

#[test]
fn calls_from_messages_of_others_stand_in_messages_of_the_model() {
    let call = |id: &str| Content::from(ToolCall::function(natural(id), "f", "{}"));
    let user = Message::new(
        Role::User,
        vec![
            Content::text("a"),
            call("c1"),
            call("c2"),
            Content::text("b"),
        ],
    );
    let system = Message::new(Role::System, vec![call("c3")]);
    let (text, losses) = encode(&[user, system]);
    let written = |id: &str| {
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#)
    };
    assert_eq!(
        text,
        format!(
            r#"[{{"role":"user","content":"a"}},{{"role":"assistant","content":null,"tool_calls":[{},{}]}},{{"role":"user","content":"b"}},{{"role":"assistant","content":null,"tool_calls":[{}]}}]"#,
            written("c1"),
            written("c2"),
            written("c3")
        )
    );
    assert_eq!(
        losses,
        [
            lost("messages[0].contents[1]", LossKind::Role),
            lost("messages[0].contents[2]", LossKind::Role),
            lost("messages[1].contents[0]", LossKind::Role),
        ]
    );
}

#[test]
fn an_answer_is_always_the_models_and_holds_no_results() {
    let call = ToolCall::function(natural("c"), "f", "{}");
    let result = call.answer(Outcome::Ok, Output::Text("1".into()));
    let mut odd = foreign_response();
    odd.usage = None;
    odd.messages = vec![Message::new(
        Role::Tool,
        vec![result.into(), Content::text("so")],
    )];
    let mut losses = Losses::default();
    let body = CODEC.encode_response(&odd, &mut losses);
    assert!(
        body.contains(r#""message":{"role":"assistant","content":"so","refusal":null}"#),
        "{body}"
    );
    assert_eq!(
        noted(losses),
        [lost("messages[0].contents[0]", LossKind::StandaloneResult)]
    );
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
    assert_eq!(noted(losses), [lost("tools[0]", LossKind::LoneSurrogate)]);
}
