//! One server: connected when it is first needed, and again when it was gone.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use throughline::Tool;
use throughline::tool::{McpError, McpServer, McpTools};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::config::{McpConfig, McpTransport};
use crate::error::ApiError;

/// How long a server is not asked again after the first attempt that failed; each further one
/// doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct McpConnection {
    label: String,
    server: McpServer,
    /// Held while a connection is made, so that requests that come meanwhile wait for that one.
    state: Mutex<ConnectionAttempts>,
}

#[derive(Debug, Default)]
struct ConnectionAttempts {
    tools: Option<Arc<McpTools>>,
    failures: u32,
    /// Until when no attempt is made, and the error meanwhile.
    resting: Option<(Instant, ApiError)>,
    closed: bool,
}

impl McpConnection {
    pub(super) fn new(label: &str, config: &McpConfig) -> Self {
        let server = match &config.transport {
            McpTransport::Url(url) => McpServer::http(url.clone()),
            McpTransport::Command(words) => {
                let mut words = words.iter().cloned();
                McpServer::stdio(words.next().unwrap_or_default(), words)
            }
        };
        let server = server
            .label(label)
            .approval(config.approval.iter().cloned());
        let with_effect =
            |server: McpServer, (tool, effect): &(String, _)| server.effect(tool.clone(), *effect);
        Self {
            label: label.to_owned(),
            server: config.effects.iter().fold(server, with_effect),
            state: Mutex::default(),
        }
    }

    pub(super) async fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, ApiError> {
        let mut state = self.state.lock().await;
        if state.closed {
            return Err(down(&self.label, "the server is stopping"));
        }
        let now = Instant::now();
        if let Some((until, error)) = &state.resting
            && now < *until
        {
            let mut error = error.clone();
            error.retry_after = Some(*until - now);
            return Err(error);
        }
        let listed = match &state.tools {
            None => self.connect(&mut state).await,
            // A lost connection is made again by the next tool call.
            Some(tools) if !tools.have_changed() => return Ok(tools.tools()),
            Some(tools) => tools.refresh().await,
        };
        match listed {
            Ok(tools) => {
                state.failures = 0;
                state.resting = None;
                Ok(tools)
            }
            Err(error) => Err(self.failed(&mut state, &error)),
        }
    }

    async fn connect(
        &self,
        state: &mut ConnectionAttempts,
    ) -> Result<Vec<Arc<dyn Tool>>, McpError> {
        let tools = Arc::new(self.server.clone().connect().await?);
        tracing::info!(server = self.label, "connected to the MCP server");
        let listed = tools.tools();
        state.tools = Some(tools);
        Ok(listed)
    }

    fn failed(&self, state: &mut ConnectionAttempts, error: &McpError) -> ApiError {
        tracing::warn!(
            server = self.label,
            error = error as &dyn Error,
            cause = chain(error),
            "the tools of the MCP server cannot be had"
        );
        let wait = FIRST_WAIT.saturating_mul(1 << state.failures.min(10));
        let wait = wait.min(LONGEST_WAIT);
        state.failures = state.failures.saturating_add(1);
        let answer = answer(&self.label, error);
        state.resting = Some((Instant::now() + wait, answer.clone()));
        let mut answer = answer;
        answer.retry_after = Some(wait);
        answer
    }

    pub(super) async fn close(&self) {
        let tools = {
            let mut state = self.state.lock().await;
            state.closed = true;
            state.tools.take()
        };
        if let Some(tools) = tools {
            tools.close().await;
        }
    }
}

/// The error for clients: which server and what is wrong with it, but no address and no program.
fn answer(label: &str, error: &McpError) -> ApiError {
    match error {
        McpError::Timeout { .. } => {
            let mut answer = down(label, "it did not answer in time");
            answer.status = 504;
            answer.code("upstream_timeout")
        }
        McpError::List { .. } => down(label, "it does not list its tools"),
        McpError::TooMany { limit, .. } => {
            down(label, &format!("it lists more than {limit} tools")).retry(false)
        }
        // A mistake in the configuration, which a retry cannot mend.
        McpError::NoSuchTool { name, .. } => ApiError::server(format!(
            "The configuration of the MCP server {label:?} names a tool {name:?} that it does not \
             have; mend effects or approval of [mcp.{label}]"
        ))
        .code("mcp_misconfigured")
        .retry(false),
        // Connections that fail, and whatever else may come.
        _ => down(label, "it cannot be reached"),
    }
}

fn down(label: &str, why: &str) -> ApiError {
    ApiError::new(
        502,
        "server_error",
        format!("The tools of the MCP server {label:?} cannot be had: {why}."),
    )
    .code("upstream_unavailable")
    .retry(true)
}

/// Everything that led to an error, in one line for the log.
fn chain(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
