//! Starting: what a server is made of, and the tasks that it begins with.

use std::sync::Arc;

use axum::Router;
use throughline::StopReason;
use throughline::thread::MessageStore;
use throughline_store::{RunId, Store, TenantScope};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use super::Server;
use crate::api::openai::responses;
use crate::app::{App, MessageStores, ServeError};
use crate::config::Config;
use crate::net::{ConnRuntimes, Connections};
use crate::routes;
use crate::service;
use crate::webhooks;

/// A server that is not started yet, and the parts that the embedding program brings.
///
/// ```
/// use std::sync::Mutex;
///
/// use throughline::model::Message;
/// use throughline::model::json::RawJson;
/// use throughline::thread::{MessageStore, MessageStoreError};
/// use throughline_server::{Config, Server, Sources};
///
/// /// One conversation; a real store has one for each key, and appends under an `idempotency`
/// /// value once.
/// #[derive(Default)]
/// struct Crm(Mutex<Vec<Message>>);
///
/// #[async_trait::async_trait]
/// impl MessageStore for Crm {
///     async fn load(
///         &self,
///         _key: &RawJson,
///         _budget: Option<u64>,
///     ) -> Result<Vec<Message>, MessageStoreError> {
///         Ok(self.0.lock().map_err(|_| "poisoned")?.clone())
///     }
///
///     async fn append(
///         &self,
///         _key: &RawJson,
///         messages: &[Message],
///         _idempotency: &str,
///     ) -> Result<Option<RawJson>, MessageStoreError> {
///         self.0.lock().map_err(|_| "poisoned")?.extend_from_slice(messages);
///         Ok(None)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let environment = [
///     ("THROUGHLINE_LISTEN", "127.0.0.1:0"),
///     ("THROUGHLINE_STORE", "memory:"),
///     ("THROUGHLINE_AGENT_SUPPORT_MODEL", "demo"),
///     ("THROUGHLINE_AGENT_SUPPORT_MESSAGE_STORE", "crm"),
/// ];
/// let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
/// let config = Config::load(&Sources {
///     environment: environment.into(),
///     ..Sources::default()
/// })?;
/// let server = Server::builder(config)
///     .message_store("crm", Crm::default())
///     .serve()
///     .await?;
/// println!("listening on {}", server.address);
/// server.stop();
/// server.join().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "call serve() to start the server"]
pub struct ServerBuilder {
    config: Config,
    store: Option<Store>,
    routes: Router<App>,
    message_stores: MessageStores,
}

impl ServerBuilder {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            store: None,
            routes: Router::new(),
            message_stores: MessageStores::default(),
        }
    }

    /// A store that the embedding program opened: one with a clock or an engine of its own.
    /// `server.store` is not opened then.
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// More routes, beside those of the server. They pass what every request passes;
    /// [`Payload`](crate::Payload) bounds their bodies. Unless `server.runtimes` is `shared`, each
    /// connection runs on a single-threaded runtime: handlers must neither block it nor call
    /// `block_in_place`.
    pub fn routes(mut self, routes: Router<App>) -> Self {
        self.routes = self.routes.merge(routes);
        self
    }

    /// A message store of the application, for agents whose configuration names it in
    /// `message_store`. The key of a thread is `{"tenant": …, "thread": …}` until an append returns
    /// another.
    pub fn message_store(
        mut self,
        name: impl Into<String>,
        store: impl MessageStore + 'static,
    ) -> Self {
        self.message_stores.register(name.into(), Arc::new(store));
        self
    }

    /// Start: open the store, listen, answer.
    pub async fn serve(self) -> Result<Server, ServeError> {
        for warning in &self.config.warnings {
            tracing::warn!("{warning}");
        }
        let asked = self.config.server.listen;
        let listen = |source| ServeError::Listen {
            address: asked,
            source,
        };
        // First the address and the threads: a store must not be touched by a server that cannot run.
        let listener = TcpListener::bind(asked).await.map_err(listen)?;
        // Each thread that has connections hears of them by itself.
        let listener = listener.into_std().map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let runtimes = ConnRuntimes::new(&Handle::current(), self.config.server.runtimes)
            .map_err(ServeError::Threads)?;
        let routes = self.routes.clone();
        let app = self.open().await?;
        let router = routes::router(app.clone(), routes);
        let connections = Connections::new(&app.net, router, &runtimes);
        // Ends when the server stops; unfinished orphans are left to the next process.
        let resume = Arc::new(responses::Resume(app.clone()));
        tokio::spawn(service::sweep_orphans(Arc::clone(&app.runs), resume));
        // Ends when the server drains, and draining waits for it.
        app.stopping
            .work()
            .spawn(service::sweep(Arc::clone(&app.runs)));
        let notes = service::note_deliveries(Arc::clone(&app.runs));
        app.stopping.work().spawn(notes);
        if let Some(all) = &app.webhooks {
            let ends = Arc::new(responses::Ends(app.clone()));
            let posts = webhooks::post_events(Arc::clone(all), Arc::clone(&app.runs), ends);
            app.stopping.work().spawn(posts);
        }
        // The handle owns it, and join waits for it.
        let task = tokio::spawn(async move {
            Arc::new(connections).run(listener).await;
            runtimes
        });
        Ok(Server { address, app, task })
    }

    /// Go on with a run that was left, with the agents of the configuration, and wait for its end.
    /// Nothing is listened on.
    ///
    /// A run that another process works on, or that a server did not begin, is refused.
    pub async fn resume(self, scope: &TenantScope, run: RunId) -> Result<StopReason, ServeError> {
        let app = self.open().await?;
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

    async fn open(self) -> Result<App, ServeError> {
        App::open(self.config, self.store, self.message_stores).await
    }
}
