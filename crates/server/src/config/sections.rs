//! Each table of the file, as values.

use std::collections::BTreeMap;

use throughline::agent::Limits;
use throughline::thread::{
    HistoryPolicy, OnBusy, OnInterrupt, OnOpenCalls, OnServiceId, Parity, Persistence,
};
use throughline::tool::Effect;

use super::error::{ConfigError, Origin};
use super::keys::{Key, Section};
use super::read::Meaning::{self, Is, NotBuilt};
use super::tree::{Located, Raw, Table};
use super::types::{
    AgentConfig, Auth, Dialect, LimitsConfig, LogFormat, McpConfig, McpReach, Runtimes,
    ServerConfig, Unsupported,
};
use crate::suggest::{did_you_mean, suggest};

const PERSISTENCE: &[(&str, Meaning<Persistence>)] = &[
    ("per_run", Is(Persistence::PerRun)),
    ("per_call", Is(Persistence::PerCall)),
];

const CONVERSATIONS: &str = "the Conversations API";

/// A complaint about a key that has no value and no default.
pub(super) fn missing(table: &Table, key: &'static str) -> ConfigError {
    let takes = Key::find(table.section, key).map_or("", |key| key.about);
    let about = takes.split(['.', ':']).next().unwrap_or_default();
    table.wrong(key, format!("is missing: {}", about.to_lowercase()))
}

/// A value, or the default of the table of keys: said as text, read like anything else.
pub(super) fn with_defaults(table: &Table) -> Table {
    let mut full = table.clone();
    for key in Key::of(table.section) {
        if !key.default.is_empty() && key.unbuilt.is_none() {
            full.values.entry(key.name).or_insert_with(|| Located {
                value: Raw::Said(key.default.to_owned()),
                origin: Origin::Default,
            });
        }
    }
    full
}

pub(super) fn server(table: &Table) -> Result<ServerConfig, ConfigError> {
    let table = &with_defaults(table);
    let auth = [("open", Is(Auth::Open)), ("keys", NotBuilt("API keys"))];
    let dialect = [
        ("openai", Is(Dialect::OpenAi)),
        ("openresponses", Is(Dialect::OpenResponses)),
    ];
    let unsupported = [
        ("report", Is(Unsupported::Report)),
        ("refuse", Is(Unsupported::Refuse)),
    ];
    let runtimes = [
        ("per_core", Is(Runtimes::PerCore)),
        ("shared", Is(Runtimes::Shared)),
    ];
    let locked = [("409", Is(409)), ("400", NotBuilt(CONVERSATIONS))];
    let format = [("text", Is(LogFormat::Text)), ("json", Is(LogFormat::Json))];
    let need = |key| missing(table, key);
    let config = ServerConfig {
        listen: table.address("listen")?.ok_or_else(|| need("listen"))?,
        store: table.filled("store")?.ok_or_else(|| need("store"))?,
        auth: table.word("auth", &auth)?.ok_or_else(|| need("auth"))?,
        dialect: table.word("dialect", &dialect)?.unwrap_or_default(),
        unsupported: table.word("unsupported", &unsupported)?.unwrap_or_default(),
        runtimes: table.word("runtimes", &runtimes)?.unwrap_or_default(),
        locked_status: table.word("locked_status", &locked)?.unwrap_or(409),
        log: table.filled("log")?.ok_or_else(|| need("log"))?,
        log_format: table.word("log_format", &format)?.unwrap_or_default(),
    };
    match config.auth {
        Auth::Open if !config.listen.ip().is_loopback() => Err(table.wrong(
            "listen",
            format!(
                "{} can be reached from elsewhere, and server.auth = \"open\" lets everybody in; \
                 listen on 127.0.0.1 (server.auth = \"keys\" is not built in this version)",
                config.listen
            ),
        )),
        Auth::Open => Ok(config),
    }
}

pub(super) fn history(table: &Table) -> Result<HistoryPolicy, ConfigError> {
    let table = &with_defaults(table);
    let parity = [("none", Is(Parity::None)), ("service", Is(Parity::Service))];
    let interrupt = [
        ("resume", Is(OnInterrupt::Resume)),
        ("close", Is(OnInterrupt::Close)),
        ("reject", Is(OnInterrupt::Reject)),
    ];
    let open = [
        ("reject", Is(OnOpenCalls::Reject)),
        ("close", Is(OnOpenCalls::Close)),
    ];
    let busy = [
        ("reject", Is(OnBusy::Reject)),
        ("queue", NotBuilt(CONVERSATIONS)),
        ("branch", NotBuilt(CONVERSATIONS)),
        ("interrupt", NotBuilt(CONVERSATIONS)),
    ];
    let service = [
        ("throw", Is(OnServiceId::Throw)),
        ("warn", Is(OnServiceId::Warn)),
        ("clear", Is(OnServiceId::Clear)),
        ("warn+clear", Is(OnServiceId::WarnAndClear)),
    ];
    Ok(HistoryPolicy {
        persistence: table.word("persistence", PERSISTENCE)?.unwrap_or_default(),
        parity: table.word("parity", &parity)?.unwrap_or_default(),
        on_interrupt: table.word("on_interrupt", &interrupt)?.unwrap_or_default(),
        on_open_calls: table
            .word("on_open_calls", &open)?
            .unwrap_or(OnOpenCalls::Reject),
        on_busy: table.word("on_busy", &busy)?.unwrap_or_default(),
        on_service_id: table.word("on_service_id", &service)?.unwrap_or_default(),
        ..HistoryPolicy::default()
    })
}

/// Less than this for requests and answers, and ordinary ones would be refused.
const LEAST_WORKING_MEMORY: usize = 64 << 20;

pub(super) fn limits(table: &Table) -> Result<LimitsConfig, ConfigError> {
    let table = &with_defaults(table);
    let number = |key| table.number(key)?.ok_or_else(|| missing(table, key));
    let small = |key| {
        let number = number(key)?;
        u32::try_from(number).map_err(|_| table.wrong(key, "is too large"))
    };
    let size = |key| {
        let number = number(key)?;
        usize::try_from(number).map_err(|_| table.wrong(key, "is too large"))
    };
    let time = |key| table.seconds(key)?.ok_or_else(|| missing(table, key));
    let limits = LimitsConfig {
        run: Limits {
            rounds: small("rounds")?,
            failed_rounds: small("failed_rounds")?,
            calls: match table.number("calls")? {
                Some(_) => Some(small("calls")?),
                None => None,
            },
            tokens: table.number("tokens")?,
            time: table.seconds("seconds")?,
            tool_time: table.seconds("tool_seconds")?,
        },
        body_bytes: size("body_bytes")?,
        memory: size("memory")?,
        history_bytes: size("history_bytes")?,
        answer_bytes: size("answer_bytes")?,
        decoded_ratio: number("decoded_ratio")?,
        json_depth: size("json_depth")?,
        header_time: time("header_seconds")?,
        body_time: time("body_seconds")?,
        connections: size("connections")?,
        streams: size("streams")?,
        keep_alive: time("keep_alive_seconds")?,
        stall: time("stall_seconds")?,
        drain: time("drain_seconds")?,
    };
    match limits.working_memory() {
        left if left < LEAST_WORKING_MEMORY => Err(table.wrong(
            "history_bytes",
            format!(
                "leaves {left} bytes of limits.memory ({}) for requests and answers; {LEAST_WORKING_MEMORY} \
                 are needed: lower it, or raise limits.memory",
                limits.memory,
            ),
        )),
        _ => Ok(limits),
    }
}

/// A name that can stand in a model's name, in a variable and in an address.
pub(super) fn name(table: &Table, key: &'static str) -> Result<String, ConfigError> {
    let name = table.filled(key)?.ok_or_else(|| missing(table, key))?;
    match is_name(&name) {
        true => Ok(name),
        false => Err(table.wrong(key, not_a_name(&name))),
    }
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

fn not_a_name(name: &str) -> String {
    format!("{name:?} has other characters than A-Z a-z 0-9 _ . -, or more than 64")
}

pub(super) fn agent(table: &Table) -> Result<AgentConfig, ConfigError> {
    let id = name(table, "id")?;
    let tools = table.list("tools")?.unwrap_or_default();
    let labels = tools.iter().map(|tool| match tool.strip_prefix("mcp:") {
        Some(label) if !label.is_empty() => Ok(label.to_owned()),
        _ => Err(table.wrong(
            "tools",
            format!("{tool:?} is no tool; write \"mcp:LABEL\" for those of [mcp.LABEL]"),
        )),
    });
    Ok(AgentConfig {
        id,
        model: table
            .filled("model")?
            .ok_or_else(|| missing(table, "model"))?,
        instructions: table.text("instructions")?.filter(|text| !text.is_empty()),
        mcp: labels.collect::<Result<_, _>>()?,
        persistence: table.word("persistence", PERSISTENCE)?,
        origin: table.origin.clone(),
    })
}

pub(super) fn mcp(tables: &[Table]) -> Result<BTreeMap<String, McpConfig>, ConfigError> {
    let mut servers = BTreeMap::new();
    for table in tables {
        let label = table.name.clone().unwrap_or_default();
        if !is_name(&label) {
            return Err(table.wrong("url", not_a_name(&label)));
        }
        servers.insert(label, mcp_server(table)?);
    }
    Ok(servers)
}

fn mcp_server(table: &Table) -> Result<McpConfig, ConfigError> {
    let reach = match (table.filled("url")?, table.command("command")?) {
        (Some(url), None) if url.starts_with("http://") || url.starts_with("https://") => {
            McpReach::Url(url)
        }
        (Some(_), None) => {
            return Err(table.wrong("url", "must start with http:// or https://"));
        }
        (None, Some(command)) => McpReach::Command(command),
        (Some(_), Some(_)) => {
            return Err(table.wrong("command", "excludes url; take one of them out"));
        }
        (None, None) => return Err(table.wrong("url", "is missing; set url or command")),
    };
    let effects = table.map("effects")?.into_iter().map(|(tool, word)| {
        // The two others need a tool inside of this process.
        let allowed = [
            Effect::ReadOnly,
            Effect::Idempotent,
            Effect::Keyed,
            Effect::Once,
        ];
        match allowed.into_iter().find(|effect| effect.as_str() == word) {
            Some(effect) => Ok((tool, effect)),
            None => {
                let words = allowed.map(Effect::as_str);
                let meant = did_you_mean(&suggest(&word, words));
                let words = words.join(", ");
                Err(table.wrong(
                    "effects",
                    format!("{tool:?}: {word:?} is none of {words}{meant}"),
                ))
            }
        }
    });
    Ok(McpConfig {
        reach,
        effects: effects.collect::<Result<_, _>>()?,
        approval: table.list("approval")?.unwrap_or_default(),
    })
}

/// An empty table of which there is one.
pub(super) fn empty(section: Section) -> Table {
    Table::new(section, None, Origin::Default)
}
