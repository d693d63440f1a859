//! A walk over all keys: each refuses by its name, or changes something, by file and by environment.

use throughline_server::{Config, ConfigError, KEYS, Key, is_named};

use super::{bare, from_environment, load};

/// What a table needs beside the key that is looked at, and tables that it names.
fn base(section: &str) -> (&'static [(&'static str, &'static str)], &'static str) {
    match section {
        "upstream" => (
            &[
                ("name", "\"x\""),
                ("kind", "\"openai-responses\""),
                ("base_url", "\"http://127.0.0.1:9/v1\""),
            ],
            "",
        ),
        "agent" => (
            &[("id", "\"x\""), ("model", "\"demo\"")],
            "[mcp.sample]\nurl = \"http://127.0.0.1:9/mcp\"\n",
        ),
        "mcp" => (&[("url", "\"http://127.0.0.1:9/mcp\"")], ""),
        "webhook" => (
            &[
                ("name", "\"x\""),
                ("url", "\"http://127.0.0.1:9/hook\""),
                ("secret_env", "\"SAMPLE_KEY\""),
            ],
            "",
        ),
        _ => (&[], ""),
    }
}

/// A file in which a key has a value; without a value it is as it would be otherwise.
fn file(key: &Key, value: Option<&str>) -> String {
    let (others, tables) = base(key.section);
    let head = match key.section {
        "upstream" | "agent" | "webhook" => format!("[[{}]]", key.section),
        "mcp" => "[mcp.x]".to_owned(),
        section => format!("[{section}]"),
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

/// For each key a value other than the default, as TOML, and what one sees of it.
const SAMPLES: &[(&str, &str, &str)] = &[
    ("server.listen", "\"127.0.0.1:0\"", "the bound address"),
    (
        "server.store",
        "\"memory:\"",
        "`/healthz` names another engine",
    ),
    ("server.auth", "\"keys\"", "refuses to start"),
    (
        "server.dialect",
        "\"openresponses\"",
        "no `throughline` member in responses",
    ),
    (
        "server.unsupported",
        "\"refuse\"",
        "a request with `temperature` to a model that has none gets 400",
    ),
    (
        "server.runtimes",
        "\"shared\"",
        "no threads named `connections` are started",
    ),
    (
        "server.locked_status",
        "400",
        "a busy conversation answers 400",
    ),
    ("server.log", "\"off\"", "no line for a request"),
    ("server.log_format", "\"json\"", "lines are JSON objects"),
    ("upstream.name", "\"other\"", "`other/x` goes there"),
    (
        "upstream.kind",
        "\"anthropic\"",
        "requests have another format",
    ),
    (
        "upstream.base_url",
        "\"http://127.0.0.1:9/v2\"",
        "requests go there",
    ),
    (
        "upstream.api_key_env",
        "\"SAMPLE_KEY\"",
        "requests are signed with it",
    ),
    (
        "upstream.token_command",
        "[\"print-token\"]",
        "requests are signed with what it prints",
    ),
    ("upstream.models", "[\"sample-*\"]", "`sample-1` goes there"),
    (
        "upstream.history",
        "\"service\"",
        "requests name what the vendor keeps",
    ),
    (
        "upstream.window",
        "32000",
        "`truncation: \"auto\"` keeps to it",
    ),
    ("agent.id", "\"other\"", "`/v1/models` lists `agent/other`"),
    ("agent.model", "\"demo/two\"", "another model is asked"),
    (
        "agent.instructions",
        "\"Be brief.\"",
        "the model is told so",
    ),
    (
        "agent.tools",
        "[\"mcp:sample\"]",
        "the model is offered them",
    ),
    (
        "agent.persistence",
        "\"per_call\"",
        "history moves after each model call",
    ),
    (
        "agent.message_store",
        "\"crm\"",
        "the application's store gets its messages",
    ),
    (
        "mcp.url",
        "\"http://127.0.0.1:9/other\"",
        "it is connected there",
    ),
    ("mcp.command", "[\"orders-server\"]", "it is started"),
    (
        "mcp.effects",
        "{ get_order = \"read_only\" }",
        "the tool may run again after a crash",
    ),
    (
        "mcp.approval",
        "[\"place_order\"]",
        "calls wait for approval",
    ),
    ("webhook.name", "\"other\"", "deliveries are kept under it"),
    (
        "webhook.url",
        "\"http://127.0.0.1:9/other\"",
        "events are posted there",
    ),
    (
        "webhook.secret_env",
        "\"OTHER_KEY\"",
        "events are signed with it",
    ),
    (
        "webhook.events",
        "[\"response.failed\"]",
        "no others are posted",
    ),
    (
        "history.persistence",
        "\"per_call\"",
        "history moves after each model call",
    ),
    (
        "history.parity",
        "\"service\"",
        "trailing results are not in the history",
    ),
    (
        "history.on_interrupt",
        "\"close\"",
        "an orphaned run is closed",
    ),
    (
        "history.on_open_calls",
        "\"close\"",
        "such input is accepted",
    ),
    (
        "history.on_busy",
        "\"queue\"",
        "a turn waits for the one before",
    ),
    ("history.on_service_id", "\"warn\"", "the run goes on"),
    (
        "history.on_other_upstream",
        "\"hand_over\"",
        "a chain goes on with another vendor",
    ),
    ("limits.rounds", "2", "a run ends with `round_limit`"),
    ("limits.failed_rounds", "1", "a run ends with `error_limit`"),
    ("limits.calls", "5", "a run ends with its budget"),
    ("limits.tokens", "1000", "a run ends with its budget"),
    ("limits.seconds", "60", "a run ends with its budget"),
    ("limits.tool_seconds", "10", "a slow tool is given up"),
    ("limits.body_bytes", "2048", "a larger body gets 413"),
    (
        "limits.decoded_ratio",
        "10",
        "a body that grows more gets 413",
    ),
    ("limits.json_depth", "8", "a deeper body gets 400"),
    (
        "limits.header_seconds",
        "1",
        "an idle connection is closed sooner",
    ),
    ("limits.body_seconds", "1", "a slower body gets 408"),
    (
        "limits.connections",
        "1",
        "a second connection closes an idle first one, or gets 503",
    ),
    ("limits.streams", "1", "a second stream gets 503"),
    ("limits.keep_alive_seconds", "1", "comments come sooner"),
    (
        "limits.memory",
        "268435456",
        "large requests are refused sooner",
    ),
    ("limits.history_bytes", "0", "every history is read again"),
    ("limits.answer_bytes", "1024", "a longer answer fails"),
    (
        "limits.stall_seconds",
        "1",
        "a client that does not read is closed sooner",
    ),
    ("limits.socket_seconds", "60", "a WebSocket is closed then"),
    ("limits.drain_seconds", "0", "requests are cut at once"),
    (
        "record.stateless",
        "true",
        "stateless requests are recorded as threads",
    ),
    (
        "record.on_failure",
        "\"error\"",
        "a request that cannot be recorded fails",
    ),
    (
        "compaction.when",
        "\"always\"",
        "a request that says nothing is compacted",
    ),
    (
        "compaction.recent_calls_to_keep",
        "2",
        "fewer calls stay in full",
    ),
    (
        "compaction.truncation_threshold",
        "2000",
        "shorter histories are compacted",
    ),
    (
        "compaction.budget",
        "16000",
        "requests to vendors stay below it",
    ),
    (
        "compaction.window",
        "32000",
        "`truncation: \"auto\"` keeps to it",
    ),
    (
        "compaction.narrative_tokens",
        "400",
        "the model is asked for a summary after a compaction",
    ),
    (
        "compaction.strategy",
        "\"text\"",
        "upstreams get results as text",
    ),
    (
        "compaction.text_before",
        "\"({tool} said)\"",
        "upstreams that get text get this",
    ),
    (
        "compaction.text_after",
        "\"(over)\"",
        "upstreams that get text get this",
    ),
    (
        "compaction.experimental.native_tool_history",
        "false",
        "upstreams get results as text",
    ),
    ("retention.*", "30", "refuses to start"),
    ("cors.*", "[\"*\"]", "refuses to start"),
    ("recall.*", "true", "refuses to start"),
];

fn sample(key: &Key) -> (&'static str, &'static str) {
    let found = SAMPLES.iter().find(|(path, ..)| *path == key.path());
    let (_, sample, seen) = found.expect("every key has a sample");
    (sample, seen)
}

const KEY: (&str, &str) = ("SAMPLE_KEY", "k");
const OTHER_KEY: (&str, &str) = ("OTHER_KEY", "o");

fn with_key(file: &str) -> Result<Config, ConfigError> {
    from_environment(file, &[KEY, OTHER_KEY])
}

#[test]
fn every_key_refuses_by_its_name_or_changes_something() {
    let mut refusing = 0;
    for key in KEYS {
        let (sample, seen) = sample(key);
        let found = with_key(&file(key, Some(sample)));
        match found {
            Err(ConfigError::NotBuilt {
                key: named,
                feature,
                origin,
            }) => {
                assert_eq!(seen, "refuses to start", "{named}");
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
                assert_ne!(seen, "refuses to start", "{}", key.path());
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
            ("upstream" | "webhook", "name") | ("agent", "id")
        ) {
            continue;
        }
        let variable = key.variable().replace("_NAME_", "_X_");
        let (sample, _) = sample(key);
        let without = match key.name {
            // The file must not have the address that stands against it.
            "command" => "[mcp.x]\napproval = []\n".to_owned(),
            _ => file(key, None),
        };
        let set = from_environment(&without, &[KEY, OTHER_KEY, (&variable, said(sample))]);
        let written = with_key(&file(key, Some(sample)));
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
        if is_named(key.section) || key.default.is_empty() {
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
on_other_upstream = "refuse"

[limits]
[retention]
[cors]
"#;
