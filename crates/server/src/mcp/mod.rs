//! The MCP servers of the configuration, as tools.
//!
//! A server is connected when its tools are first asked for, and stays connected. One that is down
//! costs the request that wanted it an error, and the next ones too until a growing pause is over;
//! it never keeps the server from starting.

mod connection;

use std::collections::BTreeMap;
use std::sync::Arc;

use throughline::Tool;

use crate::config::Config;
use crate::error::ApiError;
use crate::suggest::{did_you_mean, suggest};
use connection::McpConnection;

/// The MCP servers of the configuration, by label.
#[derive(Debug)]
pub struct McpServers {
    connections: BTreeMap<String, McpConnection>,
}

impl McpServers {
    /// The servers of a configuration, not connected yet.
    pub fn of(config: &Config) -> Self {
        let connections = config.mcp.iter();
        Self {
            connections: connections
                .map(|(label, server)| (label.clone(), McpConnection::new(label, server)))
                .collect(),
        }
    }

    /// The labels, in order.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.connections.keys().map(String::as_str)
    }

    /// The tools of a server, connected now if it is not yet, and listed again if it announced a change. Names are the server's own; effects and approval are as `[mcp.LABEL]` says.
    ///
    /// An unknown label is a mistake of the request (400); a server that cannot be reached is 502.
    pub async fn tools(&self, label: &str) -> Result<Vec<Arc<dyn Tool>>, ApiError> {
        match self.connections.get(label) {
            Some(connection) => connection.tools().await,
            None => {
                let shown: String = label.chars().take(128).collect();
                let meant = did_you_mean(&suggest(label, self.labels()));
                let text = format!("There is no MCP server {shown:?}{meant}");
                Err(ApiError::invalid(text)
                    .code("mcp_server_not_found")
                    .param("tools"))
            }
        }
    }

    /// End all connections, and wait until processes have ended.
    pub async fn close(&self) {
        futures_util::future::join_all(self.connections.values().map(McpConnection::close)).await;
    }
}
