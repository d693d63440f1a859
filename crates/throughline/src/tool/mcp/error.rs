use std::error::Error;
use std::time::Duration;

/// Why the tools of an MCP server are not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The server cannot be started or reached, or does not speak the protocol.
    #[error("cannot connect to the MCP server {label:?}")]
    Connect {
        /// The label of the server.
        label: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server did not answer in time.
    #[error("the MCP server {label:?} did not answer within {after:?}")]
    Timeout {
        /// The label of the server.
        label: String,
        /// The timeout.
        after: Duration,
    },
    /// The server did not list its tools.
    #[error("cannot list the tools of the MCP server {label:?}")]
    List {
        /// The label of the server.
        label: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server has more tools than a model can use.
    #[error("the MCP server {label:?} lists more than {limit} tools or pages of them")]
    TooMany {
        /// The label of the server.
        label: String,
        /// The limit.
        limit: usize,
    },
    /// The configuration names a tool that the server does not have.
    #[error("the MCP server {label:?} has no tool {name:?}; it has {known:?}")]
    NoSuchTool {
        /// The label of the server.
        label: String,
        /// The name of the tool.
        name: String,
        /// The tools that the server has.
        known: Vec<String>,
    },
    /// The connection was lost, and it is too early to try again.
    #[error(
        "the MCP server {label:?} is gone; {failures} attempts failed, the next is due in {wait:?}"
    )]
    Gone {
        /// The label of the server.
        label: String,
        /// How many attempts to reconnect have failed.
        failures: u32,
        /// The time until the next attempt.
        wait: Duration,
    },
    /// The connection was closed by [`McpTools::close`](super::McpTools::close).
    #[error("the connection to the MCP server {label:?} was closed")]
    Closed {
        /// The label of the server.
        label: String,
    },
}
