//! Starting and stopping.

mod builder;

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::app::{App, ServeError};
use crate::config::Config;
use crate::net::{ConnRuntimes, Signals};
use crate::stopping::Stopping;

pub use builder::ServerBuilder;

/// How long processes of MCP servers may take to end.
const MCP_CLOSE: Duration = Duration::from_secs(2);

/// How long threads of connections may take to end: nothing waits there any more.
const CONN_RUNTIMES_END: Duration = Duration::from_secs(2);

/// A server that listens. Dropping it lets it go on; [`Server::stop`] ends it.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    app: App,
    /// Accepts connections, until the server has stopped; then the threads that they are on.
    task: JoinHandle<ConnRuntimes>,
}

/// Start a server: open the store, listen, answer. [`Server::builder`] starts one with parts of one's
/// own.
///
/// ```
/// use throughline_server::{Config, Flags, Sources, serve};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::load(&Sources {
///     flags: Flags {
///         listen: Some("127.0.0.1:0".to_owned()),
///         store: Some("memory:".to_owned()),
///     },
///     ..Sources::default()
/// })?;
/// let server = serve(config).await?;
/// println!("listening on {}", server.address);
/// server.stop();
/// server.join().await;
/// # Ok(())
/// # }
/// ```
pub async fn serve(config: Config) -> Result<Server, ServeError> {
    Server::builder(config).serve().await
}

impl Server {
    /// A server with parts of the embedding program's own.
    pub fn builder(config: Config) -> ServerBuilder {
        ServerBuilder::new(config)
    }

    /// What its handlers work with.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Tell it to stop: no new work, `/readyz` says so, and what is at work gets
    /// `limits.drain_seconds`. See [`Server::join`].
    pub fn stop(&self) {
        self.app.stopping.drain();
    }

    /// Cut off what is still at work, now.
    pub fn close(&self) {
        self.app.stopping.close();
    }

    /// The shutdown signal.
    pub fn stopping(&self) -> &Stopping {
        &self.app.stopping
    }

    /// Wait until it has stopped and the store is closed.
    pub async fn join(self) {
        // What is closed below may be at work there.
        let runtimes = self.task.await.inspect_err(|error| {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "the server broke off"
            );
        });
        let closed = tokio::time::timeout(MCP_CLOSE, self.app.mcp.close()).await;
        if closed.is_err() {
            tracing::warn!("some MCP servers did not end in time");
        }
        // What was delivered last.
        self.app.runs.deliveries.note(&self.app.store).await;
        if let Err(error) = self.app.store.close().await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the store was not closed"
            );
        }
        // Processes that did not end in time do with the threads that they were started on.
        if let Ok(runtimes) = runtimes
            && tokio::time::timeout(CONN_RUNTIMES_END, runtimes.end())
                .await
                .is_err()
        {
            tracing::warn!("some threads of connections did not end in time");
        }
    }

    /// Run until a signal asks to stop, then stop; a second one cuts off what is still at work.
    pub async fn run_until(self, mut signals: Signals) {
        let stopping = self.app.stopping.clone();
        let joined = self.join();
        tokio::pin!(joined);
        for cut in [false, true] {
            tokio::select! {
                () = &mut joined => return,
                () = signals.next() => match cut {
                    false => stopping.drain(),
                    true => stopping.close(),
                },
            }
        }
        joined.await;
    }
}
