//! A walk over all keys: each refuses by its name, or changes something, by file and by environment.

use throughline_server::{Config, ConfigError, KEYS, Key, Section};

use super::{bare, from_environment, load};

/// What a table needs beside the key that is looked at, and tables that it names.
fn base(section: Section) -> (&'static [(&'static str, &'static str)], &'static str) {
    match section {
        Section::Upstream => (
            &[
                ("name", "\"x\""),
                ("kind", "\"openai-responses\""),
                ("base_url", "\"http://127.0.0.1:9/v1\""),
            ],
            "",
        ),
        Section::Agent => (
            &[("id", "\"x\""), ("model", "\"demo\"")],
            "[mcp.sample]\nurl = \"http://127.0.0.1:9/mcp\"\n",
        ),
        Section::Mcp => (&[("url", "\"http://127.0.0.1:9/mcp\"")], ""),
        _ => (&[], ""),
    }
}

/// A file in which a key has a value; without a value it is as it would be otherwise.
fn file(key: &Key, value: Option<&str>) -> String {
    let (others, tables) = base(key.section);
    let head = match key.section {
        Section::Upstream | Section::Agent => format!("[[{}]]", key.section.name()),
        Section::Mcp => "[mcp.x]".to_owned(),
        section => format!("[{}]", section.name()),
    };
    let mut text = format!("{head}\n");
    for (name, other) in others {
        // An MCP server has an address or a program.
        let replaced = *name == key.name || (key.name == "command" && *name == "url");
        if value.is_none() || !replaced {
            text.push_str(&format!("{name} = {other}\n"));
        }
    }
    if let Some(value) = value {
        let name = if key.name == "*" {
            "anything"
        } else {
            key.name
        };
        text.push_str(&format!("{name} = {value}\n"));
    }
    format!("{text}{tables}")
}

/// The text for a variable that means a value of TOML.
fn said(value: &str) -> &str {
    value.trim_matches('"')
}

const KEY: (&str, &str) = ("SAMPLE_KEY", "k");

fn with_key(file: &str) -> Result<Config, ConfigError> {
    from_environment(file, &[KEY])
}

#[test]
fn every_key_refuses_by_its_name_or_changes_something() {
    let mut refusing = 0;
    for key in KEYS {
        assert!(
            !key.sample.is_empty() && !key.seen.is_empty(),
            "{}",
            key.path()
        );
        let found = with_key(&file(key, Some(key.sample)));
        match found {
            Err(ConfigError::NotBuilt {
                key: named,
                feature,
                origin,
            }) => {
                assert_eq!(key.seen, "refuses to start", "{named}");
                let name = if key.name == "*" {
                    "anything"
                } else {
                    key.name
                };
                assert!(named.contains(name), "{named}");
                let text = ConfigError::NotBuilt {
                    key: named,
                    feature,
                    origin,
                }
                .to_string();
                assert!(text.contains(":2:"), "{text}");
                assert!(text.contains(feature), "{text}");
                refusing += 1;
            }
            Err(other) => panic!("{}: {other}", key.path()),
            Ok(changed) => {
                assert_ne!(key.seen, "refuses to start", "{}", key.path());
                let plain = bare(with_key(&file(key, None)).unwrap());
                assert_ne!(bare(changed), plain, "{} changes nothing", key.path());
            }
        }
    }
    println!("{} keys, of which {refusing} refuse", KEYS.len());
}

#[test]
fn every_key_can_be_set_by_environment() {
    for key in KEYS.iter().filter(|key| key.name != "*") {
        if matches!(
            (key.section, key.name),
            (Section::Upstream, "name") | (Section::Agent, "id")
        ) {
            continue;
        }
        let variable = key.variable().replace("_NAME_", "_X_");
        let without = match key.name {
            // The file must not have the address that stands against it.
            "command" => "[mcp.x]\napproval = []\n".to_owned(),
            _ => file(key, None),
        };
        let set = from_environment(&without, &[KEY, (&variable, said(key.sample))]);
        let written = with_key(&file(key, Some(key.sample)));
        match (set, written) {
            (Ok(set), Ok(written)) => assert_eq!(bare(set), bare(written), "{variable}"),
            (Err(set), Err(_)) => {
                assert!(set.to_string().starts_with(&variable), "{set}");
            }
            (set, written) => panic!("{variable}: {set:?}, but by file {written:?}"),
        }
    }
}

#[test]
fn defaults_are_what_the_table_says() {
    // Reading the default of every key that has one changes nothing.
    let plain = load("").unwrap();
    for key in KEYS {
        if key.section.is_named() || key.default.is_empty() {
            continue;
        }
        let set = from_environment("", &[(&key.variable(), key.default)]).unwrap();
        assert_eq!(set, plain, "{}", key.path());
    }
    let from_design = load(DESIGN).unwrap();
    assert_eq!(from_design.history, plain.history);
    assert_eq!(from_design.server, plain.server);
}

/// What the contract shows, as far as it is built.
const DESIGN: &str = r#"
[server]
listen = "127.0.0.1:8377"
store = "sqlite://throughline.db"
auth = "open"

[[upstream]]
name = "anthropic"
kind = "anthropic"
base_url = "http://127.0.0.1:9"
models = ["claude-*"]
history = "local"

[[agent]]
id = "support"
model = "anthropic/claude-x"
instructions = "Help."
tools = ["mcp:orders"]
persistence = "per_run"

[mcp.orders]
url = "http://127.0.0.1:9000/mcp"
effects = { place_order = "once", get_order = "read_only" }
approval = ["place_order"]

[history]
parity = "none"
on_interrupt = "resume"
on_open_calls = "reject"
on_busy = "reject"
on_service_id = "throw"

[limits]
[retention]
[cors]
"#;
