//! `[compaction]` reaches the clients of upstreams.

use throughline::client::{ChatRequest, HistoryOwner, View};
use throughline::model::{
    CallId, Content, Message, Outcome, Output, Role, Settings, ToolCall, ToolChoice, Wire,
};
use throughline_server::Upstreams;
use throughline_testkit::upstream::{KEY, Reply, Script, Upstream};

use crate::http::support::config;

fn view() -> View {
    let call = ToolCall::function(CallId::natural("call_1").unwrap(), "tide", "{}");
    let result = call.answer(Outcome::Ok, Output::Text("04:12".into()));
    View::new([
        Message::user("When is high water?"),
        Message::new(Role::Assistant, vec![Content::from(call)]),
        Message::new(Role::Tool, vec![Content::from(result)]),
        Message::user("And low water?"),
    ])
}

/// The bodies of the requests that two questions made, and whether the last was answered.
async fn asked(compaction: &str) -> (Vec<String>, bool) {
    let script = Script::respond_with(|request| {
        match request.body.to_string().contains(r#""role":"tool""#) {
            true => Reply::raw(
                400,
                "application/json",
                r#"{"error":"invalid role: tool, must be one of [system user assistant]"}"#,
            ),
            false => Reply::text("10:30."),
        }
    });
    let vendor = Upstream::start(Wire::OpenAiChat, script).await;
    let file = format!(
        "[[upstream]]\nname = \"v\"\nkind = \"openai-chat\"\nbase_url = \"{}\"\n\
         api_key_env = \"VENDOR_KEY\"\n\n[compaction]\n{compaction}\n",
        vendor.base_url()
    );
    let upstreams = Upstreams::of(&config(&file, &[("VENDOR_KEY", KEY)])).unwrap();
    let route = upstreams.route(Some("v/m")).unwrap();
    let view = view();
    let request = ChatRequest {
        model: route.model.as_deref(),
        instructions: None,
        view: &view,
        tools: &[],
        choice: &ToolChoice::Auto,
        settings: &Settings::default(),
        history_owner: HistoryOwner::Caller,
        persist: None,
        losses: None,
    };
    let mut answered = false;
    for _ in 0..2 {
        answered = route.upstream.client.respond(&request).await.is_ok();
    }
    let bodies = vendor.requests().into_iter();
    (bodies.map(|one| one.body.to_string()).collect(), answered)
}

#[tokio::test]
async fn b177_the_strategy_of_the_configuration_is_that_of_every_upstream() {
    let (native, text) = (r#""role":"tool""#, "[Result of tide]");
    for (compaction, forms, good) in [
        ("", vec![native, text, text], true),
        ("strategy = \"auto\"", vec![native, text, text], true),
        ("strategy = \"native\"", vec![native, native], false),
        ("strategy = \"text\"", vec![text, text], true),
        (
            "experimental.native_tool_history = false",
            vec![text, text],
            true,
        ),
        (
            "experimental.native_tool_history = true",
            vec![native, text, text],
            true,
        ),
        (
            "strategy = \"text\"\ntext_before = \"({tool} said)\"\ntext_after = \"\"",
            vec!["(tide said)\\n04:12\"", "(tide said)\\n04:12\""],
            true,
        ),
    ] {
        let (bodies, answered) = asked(compaction).await;
        assert_eq!(answered, good, "{compaction}");
        assert_eq!(bodies.len(), forms.len(), "{compaction}: {bodies:#?}");
        for (body, form) in bodies.iter().zip(forms) {
            assert!(body.contains(form), "{compaction}: {body}");
        }
    }
}
