//! Each section of the file, as values.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use throughline::agent::Limits;
use throughline::client::{HistoryForm, Markers};
use throughline::thread::{
    HistoryPolicy, OnBusy, OnInterrupt, OnOpenCalls, OnOtherUpstream, OnServiceId, Parity,
    Persistence,
};
use throughline::tool::Effect;

use super::error::ConfigError;
use super::table::{Table, none_of};
use super::types::{
    AgentConfig, Auth, CompactionConfig, LimitsConfig, McpConfig, McpTransport, ServerConfig,
};
use crate::suggest::{did_you_mean, suggest};

const PERSISTENCE: &[(&str, Persistence)] = &[
    ("per_run", Persistence::PerRun),
    ("per_call", Persistence::PerCall),
];

/// Less than this for requests and answers, and ordinary ones would be refused.
const LEAST_WORKING_MEMORY: usize = 64 << 20;

const STRATEGY: &str = "strategy";
const EXPERIMENTAL: &str = "experimental.native_tool_history";

pub(super) fn server(table: &Table<'_>) -> Result<ServerConfig, ConfigError> {
    let locked = [("409", 409), ("400", 400)];
    let config = ServerConfig {
        listen: address(table, "listen")?,
        store: table.get("store")?,
        auth: table.get("auth")?,
        dialect: table.get("dialect")?,
        unsupported: table.get("unsupported")?,
        runtimes: table.get("runtimes")?,
        locked_status: table.choice("locked_status", &locked)?.unwrap_or(409),
        log: table.get("log")?,
        log_format: table.get("log_format")?,
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

fn address(table: &Table<'_>, key: &str) -> Result<SocketAddr, ConfigError> {
    let text: String = table.get(key)?;
    let address = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse(),
        None => text.parse(),
    };
    address.map_err(|_| {
        let problem = format!("{text:?} is no address with a port, such as 127.0.0.1:8377");
        table.wrong(key, problem)
    })
}

pub(super) fn history(table: &Table<'_>) -> Result<HistoryPolicy, ConfigError> {
    let parity = [("none", Parity::None), ("service", Parity::Service)];
    let interrupt = [
        ("resume", OnInterrupt::Resume),
        ("close", OnInterrupt::Close),
        ("reject", OnInterrupt::Reject),
    ];
    let open = [
        ("reject", OnOpenCalls::Reject),
        ("close", OnOpenCalls::Close),
    ];
    let busy = [
        ("reject", OnBusy::Reject),
        ("queue", OnBusy::Queue),
        ("branch", OnBusy::Branch),
        ("interrupt", OnBusy::Interrupt),
    ];
    let service = [
        ("throw", OnServiceId::Throw),
        ("warn", OnServiceId::Warn),
        ("clear", OnServiceId::Clear),
        ("warn+clear", OnServiceId::WarnAndClear),
    ];
    let other_upstream = [
        ("refuse", OnOtherUpstream::Refuse),
        ("hand_over", OnOtherUpstream::HandOver),
    ];
    Ok(HistoryPolicy {
        persistence: table
            .choice("persistence", PERSISTENCE)?
            .unwrap_or_default(),
        parity: table.choice("parity", &parity)?.unwrap_or_default(),
        on_interrupt: table
            .choice("on_interrupt", &interrupt)?
            .unwrap_or_default(),
        on_open_calls: table
            .choice("on_open_calls", &open)?
            .unwrap_or(OnOpenCalls::Reject),
        on_busy: table.choice("on_busy", &busy)?.unwrap_or_default(),
        on_service_id: table.choice("on_service_id", &service)?.unwrap_or_default(),
        on_other_upstream: table
            .choice("on_other_upstream", &other_upstream)?
            .unwrap_or_default(),
        ..HistoryPolicy::default()
    })
}

pub(super) fn limits(table: &Table<'_>) -> Result<LimitsConfig, ConfigError> {
    let time = |key| table.get(key).map(Duration::from_secs);
    let some_time = |key| table.find(key).map(|time| time.map(Duration::from_secs));
    let limits = LimitsConfig {
        run: Limits {
            rounds: table.get("rounds")?,
            failed_rounds: table.get("failed_rounds")?,
            calls: table.find("calls")?,
            tokens: table.find("tokens")?,
            time: some_time("seconds")?,
            tool_time: some_time("tool_seconds")?,
        },
        body_bytes: table.get("body_bytes")?,
        memory: table.get("memory")?,
        history_bytes: table.get("history_bytes")?,
        answer_bytes: table.get("answer_bytes")?,
        decoded_ratio: table.get("decoded_ratio")?,
        json_depth: table.get("json_depth")?,
        header_time: time("header_seconds")?,
        body_time: time("body_seconds")?,
        connections: table.get("connections")?,
        streams: table.get("streams")?,
        keep_alive: time("keep_alive_seconds")?,
        stall: time("stall_seconds")?,
        socket: time("socket_seconds")?,
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

pub(super) fn compaction(table: &Table<'_>) -> Result<CompactionConfig, ConfigError> {
    Ok(CompactionConfig {
        when: table.get("when")?,
        recent_calls: table.get("recent_calls_to_keep")?,
        threshold: table.get("truncation_threshold")?,
        budget: table.find("budget")?,
        window: table.get("window")?,
        narrative: table.find("narrative_tokens")?,
        strategy: strategy(table)?,
        markers: markers(table)?,
    })
}

/// The strategy, by its key or by the one that it had before.
fn strategy(table: &Table<'_>) -> Result<HistoryForm, ConfigError> {
    let forms = HistoryForm::ALL.map(|form| (form.as_str(), form));
    let strategy = table.choice(STRATEGY, &forms)?.unwrap_or_default();
    let before = [("true", HistoryForm::Auto), ("false", HistoryForm::Text)];
    let Some(before) = table.choice(EXPERIMENTAL, &before)? else {
        return Ok(strategy);
    };
    match (table.values.contains_key(STRATEGY), strategy, before) {
        (false, ..) => Ok(before),
        // Both begin with native; the newer key says more.
        (true, HistoryForm::Native, HistoryForm::Auto) => Ok(strategy),
        _ if strategy == before => Ok(strategy),
        _ => Err(table.wrong(
            EXPERIMENTAL,
            format!("means {before}, but {STRATEGY} is {strategy}; take this key out"),
        )),
    }
}

/// What to write in place of a deprecated key.
pub(super) fn deprecated(table: &Table<'_>) -> Option<String> {
    let located = table.values.get(EXPERIMENTAL)?;
    Some(format!(
        "{}: compaction.{EXPERIMENTAL} is deprecated; write {STRATEGY} instead: \"text\" for false, \"auto\" for true",
        located.origin
    ))
}

fn markers(table: &Table<'_>) -> Result<Markers, ConfigError> {
    let (before, after): (String, String) = (table.get("text_before")?, table.get("text_after")?);
    // Which of the two is wrong shows when the other is left out.
    let key = match Markers::new(before.as_str(), "") {
        Ok(_) => "text_after",
        Err(_) => "text_before",
    };
    Markers::new(before, after).map_err(|error| table.wrong(key, error.to_string()))
}

/// What is wrong with a name that cannot stand in a model's name, in a variable and in an address.
fn name_problem(name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let is_name = (1..=64).contains(&name.len()) && name.bytes().all(is_plain);
    (!is_name)
        .then(|| format!("{name:?} has other characters than A-Z a-z 0-9 _ . -, or more than 64"))
}

/// The name that a table gives itself, or that a variable gave it.
pub(super) fn name(table: &Table<'_>, key: &str) -> Result<String, ConfigError> {
    let name = match &table.name {
        Some(name) if !table.values.contains_key(key) => name.clone(),
        _ => table.get(key)?,
    };
    match name_problem(&name) {
        None => Ok(name),
        Some(problem) => Err(table.wrong(key, problem)),
    }
}

/// The agents, each with another name and with MCP servers that there are.
pub(super) fn agents<'a, 't: 'a>(
    tables: impl Iterator<Item = &'a Table<'t>>,
    mcp: &BTreeMap<String, McpConfig>,
) -> Result<Vec<Arc<AgentConfig>>, ConfigError> {
    let mut agents: Vec<Arc<AgentConfig>> = Vec::new();
    for table in tables {
        let agent = agent(table)?;
        if agents.iter().any(|known| known.id == agent.id) {
            return Err(table.wrong("id", format!("there are two agents {:?}", agent.id)));
        }
        if let Some(label) = agent.mcp.iter().find(|label| !mcp.contains_key(*label)) {
            let meant = did_you_mean(&suggest(label, mcp.keys().map(String::as_str)));
            return Err(table.wrong("tools", format!("there is no [mcp.{label}]{meant}")));
        }
        agents.push(Arc::new(agent));
    }
    Ok(agents)
}

fn agent(table: &Table<'_>) -> Result<AgentConfig, ConfigError> {
    let id = name(table, "id")?;
    let tools: Vec<String> = table.get("tools")?;
    let labels = tools.iter().map(|tool| match tool.strip_prefix("mcp:") {
        Some(label) if !label.is_empty() => Ok(label.to_owned()),
        _ => Err(table.wrong(
            "tools",
            format!("{tool:?} is no tool; write \"mcp:LABEL\" for those of [mcp.LABEL]"),
        )),
    });
    let instructions: Option<String> = table.find("instructions")?;
    Ok(AgentConfig {
        id,
        model: table.get("model")?,
        instructions: instructions.filter(|text| !text.is_empty()),
        mcp: labels.collect::<Result<_, _>>()?,
        persistence: table.choice("persistence", PERSISTENCE)?,
        message_store: table.find("message_store")?,
        origin: table.origin.clone(),
    })
}

pub(super) fn mcp(table: &Table<'_>) -> Result<(String, McpConfig), ConfigError> {
    let label = table.name.clone().unwrap_or_default();
    if let Some(problem) = name_problem(&label) {
        return Err(table.wrong("url", problem));
    }
    let (url, command): (Option<String>, _) = (table.find("url")?, table.find("command")?);
    let transport = match (url, command) {
        (Some(url), None) if url.starts_with("http://") || url.starts_with("https://") => {
            McpTransport::Url(url)
        }
        (Some(_), None) => return Err(table.wrong("url", "must start with http:// or https://")),
        (None, Some(command)) => McpTransport::Command(command),
        (Some(_), Some(_)) => {
            return Err(table.wrong("command", "excludes url; take one of them out"));
        }
        (None, None) => return Err(table.wrong("url", "is missing; set url or command")),
    };
    let effects: BTreeMap<String, String> = table.get("effects")?;
    let effects = effects.into_iter().map(|(tool, word)| {
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
                let problem = none_of(&word, &allowed.map(Effect::as_str));
                Err(table.wrong("effects", format!("{tool:?}: {problem}")))
            }
        }
    });
    let config = McpConfig {
        transport,
        effects: effects.collect::<Result<_, _>>()?,
        approval: table.get("approval")?,
    };
    Ok((label, config))
}
