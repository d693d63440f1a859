//! Listing the tools of a server.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{PaginatedRequestParams, Tool as Listed};
use rmcp::{Peer, RoleClient};

use super::link::Link;
use super::mcp_tool::{self, McpTool};
use super::{McpError, McpServer};
use crate::tool::Tool;

/// The largest number of tools. A server is not trusted to end its list.
const MOST_TOOLS: usize = 1_000;
const MOST_PAGES: usize = 100;

/// The tools of a connected MCP server.
///
/// The connection lives as long as this value or one of its tools. When the last one is dropped, a
/// server process is asked to end, and killed after three seconds; [`McpTools::close`] waits for
/// that. After a lost connection the next call reconnects, with growing pauses after failures.
pub struct McpTools {
    link: Arc<Link>,
    tools: Mutex<Vec<Arc<McpTool>>>,
}

impl McpTools {
    pub(super) async fn connect(server: Arc<McpServer>) -> Result<Self, McpError> {
        let link = Arc::new(Link::connect(Arc::clone(&server)).await?);
        let listed = list(&link).await?;
        refuse_unknown_names(&server, &listed)?;
        Ok(Self {
            tools: Mutex::new(offer(&link, listed, &[])),
            link,
        })
    }

    /// The tools of the last listing.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let plain = |tool: &Arc<McpTool>| Arc::clone(tool) as Arc<dyn Tool>;
        tools.iter().map(plain).collect()
    }

    /// Whether the server has reported changed tools since the last listing.
    pub fn have_changed(&self) -> bool {
        self.link.changed.load(Ordering::Acquire)
    }

    /// Lists the tools again. Unchanged tools stay the same values.
    pub async fn refresh(&self) -> Result<Vec<Arc<dyn Tool>>, McpError> {
        self.link.changed.store(false, Ordering::Release);
        let listed = list(&self.link).await?;
        {
            let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            *tools = offer(&self.link, listed, &tools);
        }
        Ok(self.tools())
    }

    /// Ends the connection, and waits until a server process has ended. Later calls fail.
    pub async fn close(&self) {
        self.link.close().await;
    }
}

impl std::fmt::Debug for McpTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpTools")
            .field("server", &self.link.server.label)
            .finish_non_exhaustive()
    }
}

/// All tools that the server lists, within its timeout.
async fn list(link: &Link) -> Result<Vec<Listed>, McpError> {
    let server = &link.server;
    let label = || server.label.clone();
    let listing = async {
        let peer = link.peer().await?;
        pages(server, &peer).await
    };
    let after = server.connect_timeout;
    let timeout = || McpError::Timeout {
        label: label(),
        after,
    };
    let listed = tokio::time::timeout(after, listing).await;
    listed.map_err(|_| timeout())?
}

async fn pages(server: &McpServer, peer: &Peer<RoleClient>) -> Result<Vec<Listed>, McpError> {
    let mut tools = Vec::new();
    let mut page = None;
    for _ in 0..MOST_PAGES {
        let answer = peer
            .list_tools(page)
            .await
            .map_err(|error| McpError::List {
                label: server.label.clone(),
                source: error.into(),
            })?;
        tools.extend(answer.tools);
        if tools.len() > MOST_TOOLS {
            break;
        }
        match answer.next_cursor {
            Some(cursor) => {
                page = Some(PaginatedRequestParams::default().with_cursor(Some(cursor)));
            }
            None => return Ok(tools),
        }
    }
    Err(McpError::TooMany {
        label: server.label.clone(),
        limit: MOST_TOOLS,
    })
}

fn refuse_unknown_names(server: &McpServer, listed: &[Listed]) -> Result<(), McpError> {
    let known: HashSet<&str> = listed.iter().map(|tool| tool.name.as_ref()).collect();
    let allowed = server.allowed.iter().flatten();
    let mut named = server.approval.iter().chain(server.effects.keys());
    match named
        .by_ref()
        .chain(allowed)
        .find(|name| !known.contains(name.as_str()))
    {
        None => Ok(()),
        Some(name) => Err(McpError::NoSuchTool {
            label: server.label.clone(),
            name: name.clone(),
            known: listed.iter().map(|tool| tool.name.to_string()).collect(),
        }),
    }
}

/// The tools to offer; an unchanged tool is reused.
fn offer(link: &Arc<Link>, listed: Vec<Listed>, before: &[Arc<McpTool>]) -> Vec<Arc<McpTool>> {
    let server = &link.server;
    let mut names = HashSet::new();
    let mut offered = Vec::new();
    for tool in listed {
        let allowed = server.allowed.as_ref();
        if allowed.is_some_and(|allowed| !allowed.iter().any(|name| *name == tool.name)) {
            continue;
        }
        let spec = mcp_tool::spec(server, &tool);
        if !names.insert(spec.name.clone()) {
            tracing::warn!(
                server = %server.label,
                tool = %tool.name,
                "the MCP server lists a tool twice, the first one is offered"
            );
            continue;
        }
        let same = before
            .iter()
            .find(|known| known.is(&tool.name, &spec))
            .map(Arc::clone);
        offered.push(same.unwrap_or_else(|| {
            Arc::new(McpTool::new(Arc::clone(link), tool.name.into_owned(), spec))
        }));
    }
    offered
}
