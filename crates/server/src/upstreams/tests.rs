use std::collections::BTreeMap;

use throughline_testkit::Scratch;

use super::{Route, Upstreams};
use crate::config::{Config, ConfigError, HistoryLocation, Kind, Sources};

fn load(file: &str, variables: &[(&str, &str)]) -> Result<Upstreams, ConfigError> {
    let folder = Scratch::new("upstreams");
    let path = folder.path().join("throughline.toml");
    std::fs::write(&path, file).unwrap();
    let environment: BTreeMap<String, String> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let sources = Sources {
        file: Some(path),
        environment,
        ..Sources::default()
    };
    Upstreams::of(&Config::load(&sources)?)
}

/// Where a name goes: upstream, and the vendor's name of the model.
fn goes(upstreams: &Upstreams, model: &str) -> (String, Option<String>) {
    let Route {
        upstream, model, ..
    } = upstreams.route(Some(model)).unwrap();
    (upstream.name.clone(), model)
}

fn to(upstream: &str, model: &str) -> (String, Option<String>) {
    (upstream.to_owned(), Some(model.to_owned()))
}

const TWO: &str = r#"
[[upstream]]
name = "first"
kind = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
models = ["shared-*", "a-very-*", "plain"]

[[upstream]]
name = "second"
kind = "anthropic"
base_url = "http://127.0.0.1:9"
models = ["shared-*", "a-*", "a-very-exact", "a/b"]

[[agent]]
id = "support"
model = "second/claude"

[[agent]]
id = "helper"
model = "plain"
"#;

#[test]
fn names_go_where_the_contract_says() {
    let upstreams = load(TWO, &[]).unwrap();
    // By upstream, whatever else the name looks like.
    assert_eq!(goes(&upstreams, "second/plain"), to("second", "plain"));
    assert_eq!(goes(&upstreams, "first/a/b"), to("first", "a/b"));
    // Exact before patterns, the longer pattern before the shorter, the first of equals.
    assert_eq!(
        goes(&upstreams, "a-very-exact"),
        to("second", "a-very-exact")
    );
    assert_eq!(
        goes(&upstreams, "a-very-other"),
        to("first", "a-very-other")
    );
    assert_eq!(goes(&upstreams, "a-little"), to("second", "a-little"));
    assert_eq!(goes(&upstreams, "shared-1"), to("first", "shared-1"));
    // A slash that follows no upstream is part of a name.
    assert_eq!(goes(&upstreams, "a/b"), to("second", "a/b"));
    // The built-in model has no name at a vendor.
    assert_eq!(goes(&upstreams, "demo"), ("demo".to_owned(), None));

    let agent = upstreams.route(Some("agent/support")).unwrap();
    assert_eq!(agent.agent.unwrap().id, "support");
    assert_eq!(
        (agent.upstream.name.as_str(), agent.model.as_deref()),
        ("second", Some("claude"))
    );
}

#[test]
fn unknown_names_are_404_with_what_may_have_been_meant() {
    let upstreams = load(TWO, &[]).unwrap();
    for (model, meant) in [
        ("plan", "\"plain\""),
        ("agent/suport", "\"agent/support\""),
        ("secnd/claude", "\"second/claude\""),
        ("agnt/support", "\"agent/support\""),
    ] {
        let error = upstreams.route(Some(model)).unwrap_err();
        assert_eq!(
            (error.status, error.code.as_deref()),
            (404, Some("model_not_found"))
        );
        assert_eq!(error.param.as_deref(), Some("model"));
        assert!(error.message.contains(meant), "{}", error.message);
    }
    let error = upstreams.route(Some("zzzzzz")).unwrap_err();
    assert!(error.message.contains("/v1/models"), "{}", error.message);
    // Nor is anything offered that would not be found either.
    let error = upstreams.route(Some("agent/zzzzzz")).unwrap_err();
    assert!(error.message.contains("/v1/models"), "{}", error.message);
    // Long names are not repeated whole.
    let error = upstreams.route(Some(&"z".repeat(100_000))).unwrap_err();
    assert!(error.message.len() < 1_000);
}

#[test]
fn no_model_is_400() {
    let upstreams = load("", &[]).unwrap();
    for model in [None, Some("")] {
        let error = upstreams.route(model).unwrap_err();
        assert_eq!(error.status, 400);
        assert_eq!(error.code.as_deref(), Some("missing_required_parameter"));
        assert_eq!(error.param.as_deref(), Some("model"));
    }
}

#[test]
fn a_single_upstream_takes_every_bare_name_but_the_built_in_one() {
    let single = r#"
        [[upstream]]
        name = "only"
        kind = "openai-chat"
        base_url = "http://127.0.0.1:9/v1"
    "#;
    let upstreams = load(single, &[]).unwrap();
    assert_eq!(goes(&upstreams, "anything"), to("only", "anything"));
    assert_eq!(goes(&upstreams, "org/model"), to("only", "org/model"));
    assert_eq!(goes(&upstreams, "demo").0, "demo");
}

#[test]
fn without_a_configuration_the_usual_variables_count() {
    let usual = [
        ("OPENAI_API_KEY", "sk-1"),
        ("ANTHROPIC_API_KEY", "sk-2"),
        ("GEMINI_API_KEY", "k-3"),
    ];
    let upstreams = load("", &usual).unwrap();
    assert_eq!(goes(&upstreams, "gpt-5"), to("openai", "gpt-5"));
    assert_eq!(goes(&upstreams, "o9"), to("openai", "o9"));
    assert_eq!(goes(&upstreams, "claude-x"), to("anthropic", "claude-x"));
    assert_eq!(goes(&upstreams, "gemini-x"), to("gemini", "gemini-x"));
    assert!(upstreams.route(Some("qwen3")).is_err());
    let openai = upstreams.route(Some("gpt-5")).unwrap().upstream;
    assert_eq!(openai.kind, Kind::OpenAiResponses);

    // Elsewhere than at OpenAI it is Chat Completions, and the only one to ask for any name.
    let local = [("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")];
    let upstreams = load("", &local).unwrap();
    assert_eq!(goes(&upstreams, "qwen3"), to("openai", "qwen3"));
    let openai = upstreams.route(Some("qwen3")).unwrap().upstream;
    assert_eq!(openai.kind, Kind::OpenAiChat);

    let home = [
        ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
        ("OPENAI_API_KEY", "sk-1"),
    ];
    let openai = load("", &home).unwrap().route(Some("gpt-5")).unwrap();
    assert_eq!(openai.upstream.kind, Kind::OpenAiResponses);
    // A name that only looks like it.
    let trap = [
        ("OPENAI_BASE_URL", "https://api.openai.com.example.org/v1"),
        ("OPENAI_API_KEY", "sk-1"),
    ];
    let openai = load("", &trap).unwrap().route(Some("gpt-5")).unwrap();
    assert_eq!(openai.upstream.kind, Kind::OpenAiChat);
}

#[test]
fn a_configured_upstream_keeps_the_usual_ones_out() {
    let upstreams = load(TWO, &[("OPENAI_API_KEY", "sk-1")]).unwrap();
    assert!(upstreams.route(Some("gpt-5")).is_err());
}

#[test]
fn only_vendors_that_can_are_asked_to_keep_history() {
    for (kind, can) in [
        ("openai-responses", true),
        ("foundry", true),
        ("openai-chat", false),
        ("anthropic", false),
        ("gemini", false),
    ] {
        let file = format!(
            "[[upstream]]\nname = \"x\"\nkind = \"{kind}\"\nbase_url = \"http://127.0.0.1:9\"\n\
             api_key_env = \"KEY\"\nhistory = \"service\"\n"
        );
        match (load(&file, &[("KEY", "k")]), can) {
            (Ok(upstreams), true) => {
                let route = upstreams.route(Some("x/y")).unwrap();
                assert_eq!(route.upstream.history, HistoryLocation::Service);
            }
            (Err(error), false) => {
                assert_eq!(error.key(), Some("upstream.x.history"), "{error}");
                assert!(error.to_string().contains(kind), "{error}");
            }
            (found, _) => panic!("{kind}: {found:?}"),
        }
    }
}

#[test]
fn agents_without_a_model_that_exists_refuse_to_start() {
    let agent = |model: &str| format!("[[agent]]\nid = \"a\"\nmodel = \"{model}\"\n");
    let error = load(&agent("nobody"), &[]).unwrap_err();
    assert_eq!(error.key(), Some("agent.a.model"), "{error}");
    let error = load(&agent("agent/a"), &[]).unwrap_err();
    assert_eq!(error.key(), Some("agent.a.model"), "{error}");
    assert_eq!(error.line(), Some(1));
}

#[test]
fn models_are_listed_once_and_patterns_are_not() {
    let upstreams = load(TWO, &[]).unwrap();
    let models = upstreams.models();
    let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "agent/helper",
            "agent/support",
            "plain",
            "a-very-exact",
            "a/b",
            "demo"
        ]
    );
    assert_eq!(upstreams.model("shared-7").unwrap().owned_by, "first");
    assert_eq!(upstreams.model("agent/helper").unwrap().owned_by, "agent");
    assert_eq!(upstreams.model("zzz"), None);
}

#[test]
fn addresses_that_are_none_name_their_key() {
    let file = "[[upstream]]\nname = \"x\"\nkind = \"openai-chat\"\nbase_url = \"ftp://x\"\n";
    let error = load(file, &[]).unwrap_err();
    assert_eq!(error.key(), Some("upstream.x.base_url"), "{error}");
}
