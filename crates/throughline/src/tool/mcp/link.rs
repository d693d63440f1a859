//! The connection of a server, which is re-established on demand.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rmcp::{Peer, RoleClient};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::client::{self, Client};
use super::{McpError, McpServer};

/// The pause after the first failed attempt; each further failure doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

pub(super) struct Link {
    pub(super) server: Arc<McpServer>,
    /// Set when the server reports that its tools have changed.
    pub(super) changed: Arc<AtomicBool>,
    /// Held while connecting, so that concurrent calls wait for the same connection.
    state: Mutex<LinkState>,
}

struct LinkState {
    client: Option<Client>,
    failures: u32,
    next: Option<Instant>,
    closed: bool,
}

impl Link {
    pub(super) async fn connect(server: Arc<McpServer>) -> Result<Self, McpError> {
        let changed = Arc::new(AtomicBool::new(false));
        let client = client::connect(&server, Arc::clone(&changed)).await?;
        let state = LinkState {
            client: Some(client),
            failures: 0,
            next: None,
            closed: false,
        };
        Ok(Self {
            server,
            changed,
            state: Mutex::new(state),
        })
    }

    /// The connected server; reconnects if the connection was lost.
    pub(super) async fn peer(&self) -> Result<Peer<RoleClient>, McpError> {
        let mut state = self.state.lock().await;
        let label = || self.server.label.clone();
        if state.closed {
            return Err(McpError::Closed { label: label() });
        }
        if let Some(client) = &state.client
            && !client.is_transport_closed()
        {
            return Ok(client.peer().clone());
        }
        let now = Instant::now();
        if let Some(next) = state.next.filter(|next| *next > now) {
            return Err(McpError::Gone {
                label: label(),
                failures: state.failures,
                wait: next - now,
            });
        }
        state.client = None;
        match client::connect(&self.server, Arc::clone(&self.changed)).await {
            Ok(client) => {
                tracing::info!(server = %self.server.label, "connected to the MCP server again");
                let peer = client.peer().clone();
                state.client = Some(client);
                state.failures = 0;
                state.next = None;
                Ok(peer)
            }
            Err(error) => {
                let doubled = FIRST_WAIT.saturating_mul(1 << state.failures.min(10));
                state.failures = state.failures.saturating_add(1);
                state.next = Some(Instant::now() + doubled.min(LONGEST_WAIT));
                Err(error)
            }
        }
    }

    /// Ends the connection and waits until the process, if there is one, has ended.
    pub(super) async fn close(&self) {
        let client = {
            let mut state = self.state.lock().await;
            state.closed = true;
            state.client.take()
        };
        if let Some(client) = client {
            // This fails only if the connection's task panicked, and then the connection is
            // closed too.
            let _ = client.cancel().await;
        }
    }
}
