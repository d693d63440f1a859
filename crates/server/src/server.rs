//! Starting and stopping.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use throughline_store::Store;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use throughline::StopReason;
use throughline_store::{RunId, TenantScope};

use crate::api::openai::responses;
use crate::app::{App, ServeError};
use crate::config::Config;
use crate::net::{ConnRuntimes, Connections, Signals};
use crate::routes;
use crate::service;
use crate::stopping::Stopping;

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

/// Start a server: open the store, listen, answer.
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
    serve_with(config, Router::new()).await
}

/// The same, with more routes of one's own beside those of the server. They pass what every request
/// passes; [`Payload`](crate::Payload) bounds their bodies. Unless
/// `server.runtimes` is `shared`, each connection runs on a single-threaded runtime: handlers must
/// neither block it nor call `block_in_place`.
pub async fn serve_with(config: Config, more: Router<App>) -> Result<Server, ServeError> {
    start(config, more, None).await
}

/// The same as [`serve`], on a store that the embedding program opened: one with a clock
/// or an engine of its own. `server.store` is not opened.
pub async fn serve_on(config: Config, store: Store) -> Result<Server, ServeError> {
    start(config, Router::new(), Some(store)).await
}

async fn start(
    config: Config,
    more: Router<App>,
    store: Option<Store>,
) -> Result<Server, ServeError> {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let asked = config.server.listen;
    let listen = |source| ServeError::Listen {
        address: asked,
        source,
    };
    // First the address and the threads: a store must not be touched by a server that cannot run.
    let listener = TcpListener::bind(asked).await.map_err(listen)?;
    // Each thread that has connections hears of them by itself.
    let listener = listener.into_std().map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let runtimes = ConnRuntimes::new(&Handle::current(), config.server.runtimes)
        .map_err(ServeError::Threads)?;
    let app = App::with(config, store).await?;
    let connections = Connections::new(&app.net, routes::router(app.clone(), more), &runtimes);
    // Ends when the server stops; unfinished orphans are left to the next process.
    let resume = Arc::new(responses::Resume(app.clone()));
    tokio::spawn(service::sweep_orphans(Arc::clone(&app.runs), resume));
    // Ends when the server drains, and draining waits for it.
    app.stopping
        .work()
        .spawn(service::sweep(Arc::clone(&app.runs)));
    let notes = service::note_deliveries(Arc::clone(&app.runs));
    app.stopping.work().spawn(notes);
    // The handle owns it, and join waits for it.
    let task = tokio::spawn(async move {
        Arc::new(connections).run(listener).await;
        runtimes
    });
    Ok(Server { address, app, task })
}

/// Go on with a run that was left, with the agents of a configuration, and wait for its end.
///
/// A run that another process works on, or that a server did not begin, is refused.
pub async fn resume(
    config: Config,
    scope: &TenantScope,
    run: RunId,
) -> Result<StopReason, ServeError> {
    let app = App::open(config).await?;
    let resumed = responses::resume(&app, scope, run).await;
    app.mcp.close().await;
    app.store.close().await?;
    match resumed {
        Ok(Some(stop)) => Ok(stop),
        Ok(None) => Err(ServeError::Resume {
            run,
            why: "a server did not begin it; go on with it where its agent is".to_owned(),
        }),
        Err(error) => Err(ServeError::Resume {
            run,
            why: error.message,
        }),
    }
}

impl Server {
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
