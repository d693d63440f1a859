//! Configuration: a file, the environment and the command line, as typed values.
//!
//! Flags win over variables, variables over the file, the file over defaults. Whatever is wrong is
//! refused when the server starts, with the place where it stands and the name of the key; nothing
//! is ignored. Keys for vendors are never in a configuration, only names of variables that hold
//! them.

mod environment;
mod error;
mod file;
mod keys;
mod record;
mod sections;
mod table;
mod types;
mod upstream;
mod webhook;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use throughline::thread::HistoryPolicy;

pub use error::{ConfigError, Origin};
pub use keys::{KEYS, Key, SECTIONS, SHORT, ValueType, is_named};
pub use types::{
    AgentConfig, Auth, CompactionConfig, CompactionDefault, Credential, Dialect, HistoryLocation,
    Kind, LimitsConfig, LogFormat, McpConfig, McpTransport, Runtimes, ServerConfig, Unsupported,
    UpstreamConfig,
};

pub use record::{OnRecordFailure, RecordConfig};
pub use webhook::{WebhookConfig, WebhookSecret};

use table::{Located, Table};

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How it is reached and where it keeps things.
    pub server: ServerConfig,
    /// The upstreams, in the order of the file; the built-in model is always among them.
    pub upstreams: Vec<UpstreamConfig>,
    /// Agents that stand for models.
    pub agents: Vec<Arc<AgentConfig>>,
    /// MCP servers by label.
    pub mcp: BTreeMap<String, McpConfig>,
    /// Where events of background responses are posted.
    pub webhooks: Vec<WebhookConfig>,
    /// What becomes of history where one can choose.
    pub history: HistoryPolicy,
    /// Limits of runs, bodies, connections and memory.
    pub limits: LimitsConfig,
    /// What a model is shown of a long history.
    pub compaction: CompactionConfig,
    /// What is kept of requests that carry their whole conversation.
    pub record: RecordConfig,
    /// Deprecated keys that it uses. A server logs them when it starts.
    pub warnings: Vec<String>,
}

/// Where a configuration comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file.
    pub file: Option<PathBuf>,
    /// The environment: all variables, those of vendors too.
    pub environment: BTreeMap<String, String>,
    /// What the command line says.
    pub flags: Flags,
}

/// What the command line may say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--listen`
    pub listen: Option<String>,
    /// `--store`
    pub store: Option<String>,
}

impl Sources {
    /// The environment of this process, and nothing else. Variables that are not text are left out.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            environment: std::env::vars_os().filter_map(text).collect(),
            ..Self::default()
        }
    }
}

impl Config {
    /// Read everything.
    ///
    /// ```
    /// use throughline_server::{Config, Flags, Sources};
    ///
    /// let config = Config::load(&Sources {
    ///     flags: Flags {
    ///         listen: Some("127.0.0.1:0".to_owned()),
    ///         store: Some("memory:".to_owned()),
    ///     },
    ///     ..Sources::default()
    /// })?;
    /// assert_eq!(config.upstreams[0].name, "demo");
    /// # Ok::<(), throughline_server::ConfigError>(())
    /// ```
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let text = match &sources.file {
            Some(path) => file::read(path)?,
            None => String::new(),
        };
        let mut tables = match &sources.file {
            Some(path) => file::tables(path, &text)?,
            None => Tables::new(),
        };
        environment::read(&sources.environment, &mut tables)?;
        let flags = [
            ("--listen", "listen", &sources.flags.listen),
            ("--store", "store", &sources.flags.store),
        ];
        for (flag, key, value) in flags {
            if let Some(value) = value {
                let located = Located::text(value, &Origin::Flag { flag });
                single(&mut tables, "server").set(key, located)?;
            }
        }
        Self::of(&mut tables, &sources.environment)
    }

    fn of(
        tables: &mut Tables<'_>,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        let compaction = single(tables, "compaction").clone();
        let mcp = named(tables, "mcp").map(sections::mcp);
        let mcp = mcp.collect::<Result<_, _>>()?;
        Ok(Self {
            server: sections::server(single(tables, "server"))?,
            upstreams: upstream::all(named(tables, "upstream"), variables)?,
            agents: sections::agents(named(tables, "agent"), &mcp)?,
            mcp,
            webhooks: webhook::all(named(tables, "webhook"), variables)?,
            history: sections::history(single(tables, "history"))?,
            warnings: sections::deprecated(&compaction).into_iter().collect(),
            compaction: sections::compaction(&compaction)?,
            limits: sections::limits(single(tables, "limits"))?,
            record: record::record(single(tables, "record"))?,
        })
    }
}

/// All tables, in the order in which they were written.
type Tables<'t> = Vec<Table<'t>>;

/// The tables of a section that may have several.
fn named<'a, 't>(tables: &'a Tables<'t>, section: &str) -> impl Iterator<Item = &'a Table<'t>> {
    tables.iter().filter(move |table| table.section == section)
}

/// The table of a section that has one, made if it was not written.
fn single<'a, 't>(tables: &'a mut Tables<'t>, section: &'static str) -> &'a mut Table<'t> {
    let found = tables.iter().position(|table| table.section == section);
    let index = found.unwrap_or(tables.len());
    if found.is_none() {
        tables.push(Table::new(section, None, Origin::Default));
    }
    &mut tables[index]
}
