//! Configuration: a file, the environment and the command line, as typed values.
//!
//! Flags win over variables, variables over the file, the file over defaults. Whatever is wrong is
//! refused when the server starts, with the place where it stands and the name of the key; nothing
//! is ignored. Keys for vendors are never in a configuration, only names of variables that hold
//! them.

mod compaction;
mod environment;
mod error;
mod file;
mod keys;
mod read;
mod sections;
mod tree;
mod types;
mod upstream;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use throughline::thread::HistoryPolicy;

pub use error::{ConfigError, Origin};
pub use keys::{KEYS, Key, SHORT, Section, Takes};
pub use types::{
    AgentConfig, Auth, CompactionConfig, Credential, Dialect, Keeping, Kind, LimitsConfig,
    LogFormat, McpConfig, McpReach, Runtimes, ServerConfig, Unsupported, UpstreamConfig, When,
};

use crate::suggest::{did_you_mean, suggest};
use tree::{Located, Raw, Table, Tree};

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How it is reached and where it keeps things.
    pub server: ServerConfig,
    /// Whom it asks, in the order of the file; the built-in model is always among them.
    pub upstreams: Vec<UpstreamConfig>,
    /// Agents that stand for models.
    pub agents: Vec<Arc<AgentConfig>>,
    /// MCP servers by label.
    pub mcp: BTreeMap<String, McpConfig>,
    /// What becomes of history where one can choose.
    pub history: HistoryPolicy,
    /// How far everything may go.
    pub limits: LimitsConfig,
    /// What a model is shown of a long history.
    pub compaction: CompactionConfig,
    /// What is said in it and will not be understood for ever. A server that starts logs it.
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
        let mut tree = Tree::default();
        if let Some(path) = &sources.file {
            file::read(path, &mut tree)?;
        }
        environment::read(&sources.environment, &mut tree)?;
        let flags = [
            ("--listen", "listen", &sources.flags.listen),
            ("--store", "store", &sources.flags.store),
        ];
        for (flag, key, value) in flags {
            if let Some(value) = value {
                let located = Located {
                    value: Raw::Said(value.clone()),
                    origin: Origin::Flag { flag },
                };
                tree.single(Section::Server).set(key, located)?;
            }
        }
        Self::of(&mut tree, &sources.environment)
    }

    fn of(tree: &mut Tree, variables: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let single = |section| match tree.single.get(&section) {
            Some(table) => table.clone(),
            None => sections::empty(section),
        };
        let mcp = sections::mcp(&tree.mcp)?;
        let compaction = single(Section::Compaction);
        let config = Self {
            server: sections::server(&single(Section::Server))?,
            upstreams: upstream::all(&tree.upstreams, variables)?,
            agents: agents(&tree.agents, &mcp)?,
            mcp,
            history: sections::history(&single(Section::History))?,
            warnings: compaction::deprecated(&compaction).into_iter().collect(),
            compaction: compaction::read(&compaction)?,
            limits: sections::limits(&single(Section::Limits))?,
        };
        Ok(config)
    }
}

/// The agents, each with another name and with MCP servers that there are.
fn agents(
    tables: &[Table],
    mcp: &BTreeMap<String, McpConfig>,
) -> Result<Vec<Arc<AgentConfig>>, ConfigError> {
    let mut agents: Vec<Arc<AgentConfig>> = Vec::new();
    for table in tables {
        let agent = sections::agent(table)?;
        if agents.iter().any(|known| known.id == agent.id) {
            let problem = format!("there are two agents {:?}", agent.id);
            return Err(table.wrong("id", problem));
        }
        if let Some(label) = agent.mcp.iter().find(|label| !mcp.contains_key(*label)) {
            let meant = did_you_mean(&suggest(label, mcp.keys().map(String::as_str)));
            let problem = format!("there is no [mcp.{label}]{meant}");
            return Err(table.wrong("tools", problem));
        }
        agents.push(Arc::new(agent));
    }
    Ok(agents)
}
