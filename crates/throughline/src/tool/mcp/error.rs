use std::error::Error;
use std::time::Duration;

/// Why the tools of an MCP server cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The server cannot be started or reached, or does not speak the protocol.
    #[error("cannot connect to the MCP server {label:?}")]
    Connect {
        /// The server.
        label: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It did not answer in time.
    #[error("the MCP server {label:?} did not answer within {after:?}")]
    Timeout {
        /// The server.
        label: String,
        /// How long was waited.
        after: Duration,
    },
    /// It does not say which tools it has.
    #[error("cannot list the tools of the MCP server {label:?}")]
    List {
        /// The server.
        label: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It has more tools than anybody can use.
    #[error("the MCP server {label:?} lists more than {limit} tools or pages of them")]
    TooMany {
        /// The server.
        label: String,
        /// The limit.
        limit: usize,
    },
    /// A tool was named that the server does not have.
    #[error("the MCP server {label:?} has no tool {name:?}; it has {known:?}")]
    NoSuchTool {
        /// The server.
        label: String,
        /// The name.
        name: String,
        /// What it has.
        known: Vec<String>,
    },
    /// The connection was lost and not enough time has passed to try again.
    #[error(
        "the MCP server {label:?} is gone; {failures} attempts failed, the next is due in {wait:?}"
    )]
    Gone {
        /// The server.
        label: String,
        /// How many attempts to connect again failed.
        failures: u32,
        /// When it is tried again.
        wait: Duration,
    },
    /// The connection was closed by [`McpTools::close`](super::McpTools::close).
    #[error("the connection to the MCP server {label:?} was closed")]
    Closed {
        /// The server.
        label: String,
    },
}
