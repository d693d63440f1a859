//! Connections: how many there may be, how long they may take, and how they end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use std::{io, net};

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_ENCODING, UPGRADE};
use axum::response::{IntoResponse as _, Response};
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1::{self, UpgradeableConnection};
use hyper::service::{HttpService, Service as _, service_fn};
use hyper_util::rt::TokioTimer;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::conn_runtimes::{ConnRuntime, ConnRuntimes};
use super::conn_state::{ConnState, TrackedStream};
use super::idle::{self, IdleConnections, TrackedConnection};
use super::refuse;
use super::state::NetState;
use super::upgrade;

/// More connections are refused with words at once than this; the rest is just closed.
const MAX_REFUSALS: usize = 64;

/// How long to wait when the system has no room for another connection.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// How long a new connection waits for the place of one that is closed for it.
const ROOM_TIMEOUT: Duration = Duration::from_secs(1);

/// How long connections may take to end after they were cut off.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Bodies above this are not worked on where other connections would wait for it.
const SLOW_BODY: u64 = 256 * 1024;

pub(crate) struct Connections {
    net: Arc<NetState>,
    router: Router,
    runtimes: Vec<ConnRuntime>,
    /// Where requests are worked on that would keep a runtime busy.
    slow_runtime: Handle,
    permits: Arc<Semaphore>,
    idle: IdleConnections,
    refusing: Arc<Semaphore>,
    /// Connections from before the shutdown began.
    working: TaskTracker,
    /// Those that came later, and those that are refused.
    others: TaskTracker,
}

impl Connections {
    pub(crate) fn new(net: &Arc<NetState>, router: Router, runtimes: &ConnRuntimes) -> Self {
        Self {
            net: Arc::clone(net),
            router,
            runtimes: runtimes.all(),
            slow_runtime: Handle::current(),
            permits: Arc::new(Semaphore::new(net.limits.connections)),
            idle: IdleConnections::default(),
            refusing: Arc::new(Semaphore::new(MAX_REFUSALS)),
            working: TaskTracker::new(),
            others: TaskTracker::new(),
        }
    }

    /// Accept connections until the server has stopped.
    ///
    /// A draining server still accepts connections, so that readiness probes get an answer; every other
    /// request is refused with 503.
    pub(crate) async fn run(self: Arc<Self>, listener: net::TcpListener) {
        let listener = Arc::new(listener);
        let (accepting, over) = (TaskTracker::new(), CancellationToken::new());
        for runtime in &self.runtimes {
            let connections = Arc::clone(&self);
            let accepted = connections.accept_on(runtime.clone(), Arc::clone(&listener));
            let until_over = over.clone().run_until_cancelled_owned(accepted);
            accepting.spawn_on(until_over, &runtime.handle);
        }
        self.pass_turn();
        Arc::clone(&self).drained().await;
        over.cancel();
        drop(listener);
        self.net.stopping.close();
        for tracker in [&accepting, &self.working, &self.others] {
            tracker.close();
        }
        let ended = async {
            accepting.wait().await;
            self.working.wait().await;
            self.others.wait().await;
        };
        if tokio::time::timeout(CLOSE_TIMEOUT, ended).await.is_err() {
            tracing::warn!("some connections did not end");
        }
    }

    /// Accept a connection whenever it is the turn of a runtime, on that runtime.
    ///
    /// The runtime hears of connections only then. If all of them did, each connection would wake all;
    /// if one did for all, each connection would wait until its own thread is awake.
    async fn accept_on(self: Arc<Self>, runtime: ConnRuntime, listener: Arc<net::TcpListener>) {
        loop {
            runtime.turn.notified().await;
            while let Err(error) = self.accept(&runtime, &listener).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a connection cannot be accepted"
                );
                tokio::time::sleep(ACCEPT_BACKOFF).await;
            }
            self.pass_turn();
        }
    }

    /// Accept connections until it is the turn of another runtime.
    async fn accept(
        self: &Arc<Self>,
        runtime: &ConnRuntime,
        listener: &net::TcpListener,
    ) -> io::Result<()> {
        // Another handle on the same socket, registered with this runtime.
        let listener = TcpListener::from_std(listener.try_clone()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            self.admit(runtime, stream);
            if !runtime.keeps_turn(&self.runtimes) {
                return Ok(());
            }
        }
    }

    /// Have the runtime that has the fewest connections accept the next one.
    fn pass_turn(&self) {
        if let Some(runtime) = ConnRuntime::least_loaded(&self.runtimes) {
            runtime.turn.notify_one();
        }
    }

    /// Wait for the shutdown to begin, and then for running requests or the drain timeout.
    async fn drained(self: Arc<Self>) {
        let stopping = &self.net.stopping;
        stopping.draining().await;
        self.working.close();
        let done = async {
            self.working.wait().await;
            let work = stopping.work();
            work.close();
            work.wait().await;
        };
        tokio::select! {
            () = done => {}
            () = stopping.closing() => {}
            () = tokio::time::sleep(self.net.limits.drain) => {
                tracing::warn!("requests that are still at work are cut off");
            }
        }
    }

    fn admit(self: &Arc<Self>, runtime: &ConnRuntime, stream: TcpStream) {
        // Small frames must not wait for each other. If it cannot be set, they only come later.
        let _ = stream.set_nodelay(true);
        let permits = Arc::clone(&self.permits);
        match permits.try_acquire_owned() {
            Ok(place) => self.serve(runtime, stream, place),
            Err(_) if self.idle.close_longest() => {
                let (connections, runtime) = (Arc::clone(self), runtime.clone());
                let permits = Arc::clone(&self.permits);
                self.others.spawn(async move {
                    match tokio::time::timeout(ROOM_TIMEOUT, permits.acquire_owned()).await {
                        Ok(Ok(place)) => connections.serve(&runtime, stream, place),
                        _ => connections.refuse(stream),
                    }
                });
            }
            Err(_) => self.refuse(stream),
        }
    }

    /// There is no room for it.
    fn refuse(&self, stream: TcpStream) {
        self.net.metrics.refused();
        if let Ok(place) = Arc::clone(&self.refusing).try_acquire_owned() {
            self.others.spawn(async move {
                refuse::answer_503(stream).await;
                drop(place);
            });
        }
    }

    fn serve(
        self: &Arc<Self>,
        runtime: &ConnRuntime,
        stream: TcpStream,
        place: OwnedSemaphorePermit,
    ) {
        // Draining waits for this connection from here on, unless it has begun already.
        let _token = self.working.token();
        let draining = self.net.stopping.is_draining();
        let tracker = match draining {
            true => &self.others,
            false => &self.working,
        };
        let (connections, on_runtime) = (Arc::clone(self), Arc::clone(&runtime.connections));
        tracker.spawn(async move {
            let open = connections.net.metrics.opened();
            connections.answer(stream, draining).await;
            drop((place, on_runtime));
            drop(open);
        });
    }

    async fn answer(&self, stream: TcpStream, draining: bool) {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.net.limits.header_time)
            // Whether the client is still connected is checked below.
            .half_close(true)
            .keep_alive(!draining);
        let service = TowerToHyperService::new(self.router.clone());
        let state = Arc::<ConnState>::default();
        let stream = TrackedStream::new(stream, &state);
        let client = stream.clone();
        let slow_runtime = self.slow_runtime.clone();
        let accepted = Arc::new(self.idle.track());
        let idle = Arc::clone(&accepted);
        let (upgrade, mut upgraded) = upgrade::upgrade(&accepted);
        let memory = self.net.memory.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(state.next());
            if request.headers().contains_key(UPGRADE) {
                request.extensions_mut().insert(upgrade.clone());
            }
            let at_work = accepted.begin();
            let slow_runtime = may_be_slow(&request).then(|| slow_runtime.clone());
            let answered = service.call(request);
            let memory = memory.reservation();
            async move {
                let answered = match slow_runtime {
                    Some(slow_runtime) => run_on(&slow_runtime, answered).await,
                    None => answered.await,
                };
                answered
                    .map(|answer| answer.map(|body| idle::hold_until_sent(body, at_work, memory)))
            }
        });
        let connection = builder.serve_connection(stream, service).with_upgrades();
        let ended = self.drive(connection, (&client, &idle), draining).await;
        if let Err(error) = ended {
            // A client that took too long, for instance: nothing to do about it.
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "a connection ended"
            );
        }
        // It may have become a WebSocket, which keeps its place.
        tokio::select! {
            () = upgraded.ended() => return,
            () = client.stalled(self.net.limits.stall, &self.net.memory) => {}
            () = self.net.stopping.closing() => {}
        }
        upgraded.cut().await;
    }

    /// Drive a connection until it has ended as far as HTTP is concerned.
    async fn drive<S>(
        &self,
        connection: UpgradeableConnection<TrackedStream, S>,
        (client, idle): (&TrackedStream, &TrackedConnection),
        draining: bool,
    ) -> hyper::Result<()>
    where
        S: HttpService<Incoming, ResBody = Body>,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        tokio::pin!(connection);
        let stopping = &self.net.stopping;
        let takes_no_more = async {
            tokio::select! {
                () = idle.closed() => {}
                () = stopping.draining(), if !draining => {}
            }
        };
        tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = client.gone() => Ok(()),
            () = client.stalled(self.net.limits.stall, &self.net.memory) => {
                tracing::info!("a client left its answer unread, and its connection is closed");
                Ok(())
            }
            () = takes_no_more => {
                // A request that has just come is answered.
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => ended,
                    () = client.gone() => Ok(()),
                    () = stopping.closing() => Ok(()),
                }
            }
            () = stopping.closing() => Ok(()),
        }
    }
}

/// Run a handler on another runtime; it is aborted when the connection stops waiting for it.
async fn run_on(
    runtime: &Handle,
    answer: impl Future<Output = Result<Response, Infallible>> + Send + 'static,
) -> Result<Response, Infallible> {
    let answered = AbortOnDropHandle::new(runtime.spawn(answer)).await;
    answered.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // The runtime is going down, and with it everything that listens.
        Err(_) => Ok(StatusCode::SERVICE_UNAVAILABLE.into_response()),
    })
}

/// Whether a request may take a thread some time: by what it says of its body, or does not say.
fn may_be_slow(request: &Request<Incoming>) -> bool {
    let length = request.body().size_hint().upper();
    length.is_none_or(|length| length > SLOW_BODY)
        || length > Some(0) && request.headers().contains_key(CONTENT_ENCODING)
}
