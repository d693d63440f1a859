//! Tools of MCP servers.
//!
//! A server is a process that we start, or an address. Its tools run at most once per call unless
//! the application says otherwise: annotations of a server about its own tools, such as "read
//! only", are hints and never make a call repeatable.
//!
//! Absent on purpose: prompts, resources, sampling and elicitation. Only tools are used.

mod client;
mod error;
mod link;
mod list;
mod mcp_tool;
mod output;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Effect;
pub use error::McpError;
pub use list::McpTools;

/// The member of `_meta` that holds the idempotency key of a call. Every attempt of a call has the
/// same key.
pub const IDEMPOTENCY_KEY: &str = "throughline/idempotency_key";

/// An MCP server whose tools are used.
///
/// ```no_run
/// use throughline::tool::{Effect, McpServer};
///
/// # async fn connect() -> Result<(), throughline::tool::McpError> {
/// let orders = McpServer::stdio("orders-server", ["--read-write"])
///     .label("orders")
///     .prefixed()
///     .effect("get_order", Effect::ReadOnly)
///     .approval(["place_order"])
///     .connect()
///     .await?;
/// for tool in orders.tools() {
///     println!("{}", tool.spec().name); // orders__get_order, orders__place_order
/// }
/// orders.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct McpServer {
    reach: Reach,
    label: String,
    prefixed: bool,
    connect_timeout: Duration,
    call_timeout: Option<Duration>,
    effects: HashMap<String, Effect>,
    approval: Vec<String>,
    allowed: Option<Vec<String>>,
}

/// How to reach a server.
#[derive(Clone, Debug)]
enum Reach {
    Process {
        command: String,
        arguments: Vec<String>,
        environment: Vec<(String, Secret)>,
        show_errors: bool,
    },
    Http {
        url: String,
        bearer: Option<Secret>,
    },
}

/// Text that is never printed.
#[derive(Clone)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl McpServer {
    fn new(reach: Reach, label: String) -> Self {
        Self {
            reach,
            label,
            prefixed: false,
            connect_timeout: Duration::from_secs(30),
            call_timeout: None,
            effects: HashMap::new(),
            approval: Vec::new(),
            allowed: None,
        }
    }

    /// A server process that we start, over its standard input and output.
    ///
    /// The process inherits `PATH`, `HOME` and the like, and [`McpServer::env`]. Other variables
    /// are not passed on, because they may hold keys.
    pub fn stdio(
        command: impl Into<String>,
        arguments: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let command = command.into();
        let label = command.clone();
        let reach = Reach::Process {
            command,
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            show_errors: false,
        };
        Self::new(reach, label)
    }

    /// A server at an address, over streamable HTTP.
    pub fn http(url: impl Into<String>) -> Self {
        let url = url.into();
        let label = url.clone();
        Self::new(Reach::Http { url, bearer: None }, label)
    }

    /// Sets the name of the server, for messages and [`McpServer::prefixed`].
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Prefixes the name of each tool with the label and two underscores, so that tools of several
    /// servers do not clash.
    #[must_use]
    pub fn prefixed(mut self) -> Self {
        self.prefixed = true;
        self
    }

    /// Sets an environment variable of the process. Ignored for a server at an address.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Reach::Process { environment, .. } = &mut self.reach {
            environment.push((name.into(), Secret(value.into())));
        }
        self
    }

    /// Lets the process write to our standard error; by default that output is discarded.
    #[must_use]
    pub fn show_stderr(mut self) -> Self {
        if let Reach::Process { show_errors, .. } = &mut self.reach {
            *show_errors = true;
        }
        self
    }

    /// Sets the token of the `Authorization` header, without `Bearer`. Ignored for a process.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        if let Reach::Http { bearer, .. } = &mut self.reach {
            *bearer = Some(Secret(token.into()));
        }
        self
    }

    /// Sets how long connecting and listing the tools may take; 30 seconds by default.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long one call may take.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = Some(timeout);
        self
    }

    /// Sets what happens after a lost result of a tool, by the server's name of the tool. By
    /// default a tool runs at most once, whatever the server says.
    #[must_use]
    pub fn effect(mut self, tool: impl Into<String>, effect: Effect) -> Self {
        self.effects.insert(tool.into(), effect);
        self
    }

    /// Requires approval for each call of these tools, by the server's names.
    #[must_use]
    pub fn approval(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.approval.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Offers only these tools, by the server's names.
    #[must_use]
    pub fn allowed(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let allowed = self.allowed.get_or_insert_default();
        allowed.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Connects and lists the tools.
    ///
    /// If [`McpServer::approval`], [`McpServer::effect`] or [`McpServer::allowed`] names a tool
    /// that the server does not have, that is an error: a misspelt name would leave a tool without
    /// its approval.
    ///
    /// If the future is dropped, a process that was started is ended.
    pub async fn connect(self) -> Result<McpTools, McpError> {
        McpTools::connect(Arc::new(self)).await
    }
}
