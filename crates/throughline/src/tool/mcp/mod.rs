//! Tools of MCP servers.
//!
//! A server is a process that we start, or an address. Its tools are run at most once for each call
//! unless the application says otherwise: what a server says of its own tools (that one only reads,
//! say) is a hint and never makes us run it again.
//!
//! What is not here on purpose: prompts, resources, sampling and questions to the user. Only tools
//! are asked for.

mod client;
mod error;
mod link;
mod list;
mod offered;
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

/// The member of `_meta` in which a server finds the idempotency key of a call: the same however
/// often the call is made.
pub const IDEMPOTENCY_KEY: &str = "throughline/idempotency_key";

/// An MCP server whose tools are to be used.
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

/// How a server is reached.
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

/// A text that is never shown.
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

    /// A server that is a process of ours and speaks over its standard input and output.
    ///
    /// The process gets what a shell needs of our environment (`PATH`, `HOME` and the like) and
    /// [`McpServer::env`], nothing else: our environment may hold keys that are not its business.
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

    /// The name of the server, for messages and [`McpServer::prefixed`].
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Put the label and two underscores before the name of each tool, so that tools of several
    /// servers do not clash.
    #[must_use]
    pub fn prefixed(mut self) -> Self {
        self.prefixed = true;
        self
    }

    /// Set a variable in the environment of the process. Nothing for a server at an address.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Reach::Process { environment, .. } = &mut self.reach {
            environment.push((name.into(), Secret(value.into())));
        }
        self
    }

    /// Let the process write to our standard error; else what it writes there is dropped.
    #[must_use]
    pub fn show_stderr(mut self) -> Self {
        if let Reach::Process { show_errors, .. } = &mut self.reach {
            *show_errors = true;
        }
        self
    }

    /// The token for the `Authorization` header, without `Bearer`. Nothing for a process.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        if let Reach::Http { bearer, .. } = &mut self.reach {
            *bearer = Some(Secret(token.into()));
        }
        self
    }

    /// How long connecting and listing the tools may take; 30 seconds if not set.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long one call may take; as for any tool if not set.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = Some(timeout);
        self
    }

    /// What a lost result of a tool means, by the server's own name of it. Without this, and
    /// whatever the server says of it, a tool is run at most once.
    #[must_use]
    pub fn effect(mut self, tool: impl Into<String>, effect: Effect) -> Self {
        self.effects.insert(tool.into(), effect);
        self
    }

    /// Tools that need approval for each call, by the server's own names.
    #[must_use]
    pub fn approval(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.approval.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Offer these tools only, by the server's own names.
    #[must_use]
    pub fn allowed(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let allowed = self.allowed.get_or_insert_default();
        allowed.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Connect and list the tools.
    ///
    /// A tool that is named in [`McpServer::approval`], [`McpServer::effect`] or
    /// [`McpServer::allowed`] and that the server does not have is an error: a slip there would
    /// leave a tool unguarded.
    ///
    /// If the future is dropped, a process that was started is ended.
    pub async fn connect(self) -> Result<McpTools, McpError> {
        McpTools::connect(Arc::new(self)).await
    }
}
