//! The configuration as values.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;
use throughline::agent::Limits;
use throughline::client::{HistoryForm, Markers, Secret};
use throughline::thread::Persistence;
use throughline::tool::Effect;

use super::error::Origin;

/// `[server]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The URL of the store.
    pub store: String,
    /// Which clients are accepted.
    pub auth: Auth,
    /// Which specification answers follow.
    pub dialect: Dialect,
    /// What becomes of a request that cannot be carried out as it stands.
    pub unsupported: Unsupported,
    /// Which runtimes connections run on.
    pub runtimes: Runtimes,
    /// The status for a conversation that is busy.
    pub locked_status: u16,
    /// What is logged.
    pub log: String,
    /// How a line of the log looks.
    pub log_format: LogFormat,
}

/// Which clients are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// All clients that can reach a loopback address.
    Open,
}

/// Whose events and items are sent where OpenAI's API and the Open Responses specification differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// OpenAI's, with the member `throughline`.
    #[default]
    OpenAi,
    /// Nothing outside of the Open Responses specification.
    OpenResponses,
}

/// What becomes of a request that cannot be carried out as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unsupported {
    /// It is carried out as far as possible, and the answer names the rest.
    #[default]
    Report,
    /// It is refused.
    Refuse,
}

/// Which runtimes connections run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runtimes {
    /// One single-threaded runtime for each worker thread; a connection stays on the one that accepted
    /// it.
    #[default]
    PerCore,
    /// The multi-threaded runtime in which the server was started.
    Shared,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// One `[[upstream]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamConfig {
    /// Its name.
    pub name: String,
    /// What it speaks.
    pub kind: Kind,
    /// Its address, if it is not the vendor's own.
    pub base_url: Option<String>,
    /// What requests are signed with.
    pub credential: Credential,
    /// Bare model names that go here, with `*` for anything.
    pub models: Vec<String>,
    /// Who keeps conversations.
    pub history: HistoryLocation,
    /// Tokens that the context windows of its models hold, if configured.
    pub window: Option<u64>,
    /// Where it was written.
    pub origin: Origin,
}

/// What an upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// OpenAI's Responses API.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Chat Completions, at OpenAI or elsewhere.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// A project of Azure Foundry.
    Foundry,
    /// The built-in model that needs no network.
    Demo,
}

impl Kind {
    /// Whether it speaks the API that the server speaks, so that requests can be sent on as they are.
    pub fn speaks_responses(self) -> bool {
        match self {
            Self::OpenAiResponses | Self::Foundry => true,
            Self::OpenAiChat | Self::Anthropic | Self::Gemini | Self::Demo => false,
        }
    }

    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::OpenAiResponses,
        Self::OpenAiChat,
        Self::Anthropic,
        Self::Gemini,
        Self::Foundry,
        Self::Demo,
    ];

    /// The word in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiResponses => "openai-responses",
            Self::OpenAiChat => "openai-chat",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Foundry => "foundry",
            Self::Demo => "demo",
        }
    }

    /// The variables that usually hold its key, the best first.
    pub const fn usual_keys(self) -> &'static [&'static str] {
        match self {
            Self::OpenAiResponses | Self::OpenAiChat => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Self::Foundry | Self::Demo => &[],
        }
    }
}

/// What requests to an upstream are signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing: a server of one's own may want none.
    None,
    /// A key.
    Key(Secret),
    /// What a program prints: the program and its arguments.
    Command(Vec<String>),
}

/// Who keeps conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HistoryLocation {
    /// The store of the server.
    #[default]
    Local,
    /// The vendor.
    Service,
}

impl HistoryLocation {
    /// The word in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Service => "service",
        }
    }
}

/// One `[[agent]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Its name: it is the model `agent/ID`.
    pub id: String,
    /// The model that it asks.
    pub model: String,
    /// Its system instructions.
    pub instructions: Option<String>,
    /// The labels of the MCP servers whose tools it has.
    pub mcp: Vec<String>,
    /// When its history moves, if not as `[history]` says.
    pub persistence: Option<Persistence>,
    /// The message store of the embedding application that keeps the histories of its new threads.
    pub message_store: Option<String>,
    /// Where it was written.
    pub origin: Origin,
}

/// One `[mcp.LABEL]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpConfig {
    /// How it is reached.
    pub transport: McpTransport,
    /// What a lost result of a tool means, by the server's own name of it.
    pub effects: Vec<(String, Effect)>,
    /// Tools that need approval for each call, by the server's own names.
    pub approval: Vec<String>,
}

/// How an MCP server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// At an address.
    Url(String),
    /// As a process: the program and its arguments.
    Command(Vec<String>),
}

/// `[compaction]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionConfig {
    /// Which requests are compacted.
    pub when: CompactionDefault,
    /// Tool calls that stay in full.
    pub recent_calls: u32,
    /// Tokens of tool history above which it is compacted.
    pub threshold: u64,
    /// Tokens that a model is sent at most.
    pub budget: Option<u64>,
    /// Tokens that a context window holds, for upstreams that configure nothing else.
    pub window: u64,
    /// Tokens that a model may write beside digests, each time.
    pub narrative: Option<u64>,
    /// How earlier tool calls and their results are shown to vendors.
    pub strategy: HistoryForm,
    /// What stands around results that are shown as text.
    pub markers: Markers,
}

/// Which requests are compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactionDefault {
    /// Those that ask for it.
    #[default]
    Asked,
    /// All that do not refuse it.
    Always,
}

/// `[limits]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Limits of one run.
    pub run: Limits,
    /// The largest body, before and after decompression.
    pub body_bytes: usize,
    /// What the whole process may take of memory.
    pub memory: usize,
    /// How much of that is for histories that are kept between turns.
    pub history_bytes: usize,
    /// The largest answer of an upstream.
    pub answer_bytes: usize,
    /// How many times its own size a compressed body may become.
    pub decoded_ratio: u64,
    /// How deep JSON may be nested.
    pub json_depth: usize,
    /// How long the head of a request may take, and how long an idle connection is kept.
    pub header_time: Duration,
    /// How long a body may take.
    pub body_time: Duration,
    /// Open connections.
    pub connections: usize,
    /// Open event streams.
    pub streams: usize,
    /// How long an event stream may be silent before it gets a comment.
    pub keep_alive: Duration,
    /// How long a client may leave an answer unread.
    pub stall: Duration,
    /// How long a WebSocket may be open.
    pub socket: Duration,
    /// How long requests may continue after a shutdown began.
    pub drain: Duration,
}

/// What the process needs in any case, at least: its code, connections, the caches of the store, and
/// what its allocator has not given back yet.
const OVERHEAD: usize = 96 << 20;

impl LimitsConfig {
    /// What requests and answers at work may take of memory: `memory` without the histories that are
    /// kept, and without an eighth for everything else.
    pub fn working_memory(&self) -> usize {
        let overhead = OVERHEAD.max(self.memory / 8);
        self.memory.saturating_sub(overhead + self.history_bytes)
    }
}
