//! Flags win over variables, variables over the file, the file over defaults.

use throughline::tool::Effect;
use throughline_server::{Credential, Flags, Kind, McpTransport};

use super::{from_environment, load, load_with};

const FILE: &str = "[server]\nlisten = \"127.0.0.1:1\"\n";

fn flags(listen: &str) -> Flags {
    Flags {
        listen: Some(listen.to_owned()),
        store: None,
    }
}

#[test]
fn the_nearer_place_wins() {
    let port = |config: throughline_server::Config| config.server.listen.port();
    assert_eq!(port(load("").unwrap()), 8377);
    assert_eq!(port(load(FILE).unwrap()), 1);
    let short = ("THROUGHLINE_LISTEN", "127.0.0.1:2");
    assert_eq!(port(from_environment(FILE, &[short]).unwrap()), 2);
    let long = ("THROUGHLINE_SERVER_LISTEN", "127.0.0.1:3");
    assert_eq!(port(from_environment(FILE, &[short, long]).unwrap()), 3);
    assert_eq!(
        port(load_with(FILE, &[short, long], flags("localhost:4")).unwrap()),
        4
    );
    // An empty variable is none.
    let empty = ("THROUGHLINE_SERVER_LISTEN", "");
    assert_eq!(port(from_environment(FILE, &[empty]).unwrap()), 1);
}

#[test]
fn a_store_has_short_names_too() {
    let store = |variables: &[(&str, &str)], flag: Option<&str>| {
        let flags = Flags {
            listen: None,
            store: flag.map(str::to_owned),
        };
        load_with("", variables, flags).unwrap().server.store
    };
    assert_eq!(store(&[], None), "sqlite://throughline.db");
    assert_eq!(store(&[("THROUGHLINE_STORE", "memory:")], None), "memory:");
    let both = [("THROUGHLINE_STORE", "memory:")];
    assert_eq!(store(&both, Some("sqlite://x.db")), "sqlite://x.db");
}

#[test]
fn an_upstream_can_be_made_by_environment_alone() {
    let config = from_environment(
        "",
        &[
            ("THROUGHLINE_UPSTREAM_MY_VENDOR_KIND", "anthropic"),
            ("THROUGHLINE_UPSTREAM_MY_VENDOR_API_KEY_ENV", "MY_KEY"),
            ("THROUGHLINE_UPSTREAM_MY_VENDOR_MODELS", "claude-*, own"),
            ("MY_KEY", "sk-1"),
        ],
    )
    .unwrap();
    let upstream = &config.upstreams[0];
    assert_eq!(
        (upstream.name.as_str(), upstream.kind),
        ("my-vendor", Kind::Anthropic)
    );
    assert_eq!(upstream.credential, Credential::Key("sk-1".into()));
    assert_eq!(upstream.models[..2], ["claude-*", "own"]);
}

#[test]
fn a_variable_changes_the_upstream_that_the_file_has() {
    let file = "[[upstream]]\nname = \"My-Vendor\"\nkind = \"openai-chat\"\n\
                base_url = \"http://127.0.0.1:9\"\n";
    let elsewhere = (
        "THROUGHLINE_UPSTREAM_MY_VENDOR_BASE_URL",
        "http://127.0.0.1:8",
    );
    let config = from_environment(file, &[elsewhere]).unwrap();
    assert_eq!(config.upstreams.len(), 2);
    assert_eq!(config.upstreams[0].name, "My-Vendor");
    assert_eq!(config.upstreams[0].base_url.as_deref(), Some(elsewhere.1));
}

#[test]
fn lists_tables_and_commands_can_be_said_in_a_variable() {
    let one = |key: &str, value: &str| {
        let variable = format!("THROUGHLINE_MCP_ORDERS_{key}");
        let url = ("THROUGHLINE_MCP_ORDERS_URL", "http://127.0.0.1:9");
        let set = (variable.as_str(), value);
        let all = if key == "COMMAND" {
            vec![set]
        } else {
            vec![url, set]
        };
        from_environment("", &all).unwrap().mcp["orders"].clone()
    };
    let effects = vec![
        ("get".to_owned(), Effect::ReadOnly),
        ("put".to_owned(), Effect::Keyed),
    ];
    assert_eq!(
        one("EFFECTS", "get=read_only, put = keyed").effects,
        effects
    );
    let toml = "{ get = \"read_only\", put = \"keyed\" }";
    assert_eq!(one("EFFECTS", toml).effects, effects);
    assert_eq!(one("APPROVAL", "a,b").approval, ["a", "b"]);
    assert_eq!(one("APPROVAL", "[\"a, b\"]").approval, ["a, b"]);
    let command = |words: &[&str]| {
        McpTransport::Command(words.iter().map(|word| (*word).to_owned()).collect())
    };
    assert_eq!(
        one("COMMAND", "serve --all").transport,
        command(&["serve", "--all"])
    );
    let toml = "[\"serve\", \"two words\"]";
    assert_eq!(
        one("COMMAND", toml).transport,
        command(&["serve", "two words"])
    );
}

#[test]
fn keys_of_vendors_are_never_shown() {
    let config = from_environment(
        "",
        &[
            ("OPENAI_API_KEY", "sk-canary"),
            ("ANTHROPIC_API_KEY", "sk-canary"),
        ],
    )
    .unwrap();
    assert_eq!(config.upstreams.len(), 3);
    assert!(!format!("{config:?}").contains("canary"));
}
