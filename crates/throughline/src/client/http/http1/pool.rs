//! Idle connections, and upstreams whose connections are not reused.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::runtime::{Handle, Id};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::client::http::IDLE_TIMEOUT;

/// The idle connections of one transport.
#[derive(Default)]
pub(super) struct Pool(Mutex<PoolState>);

#[derive(Default)]
struct PoolState {
    /// Connections by the runtime that they are registered with: only its tasks are woken by them.
    runtimes: HashMap<Id, RuntimeConnections>,
    /// Hosts and ports that sent bytes which no request had asked for.
    distrusted: HashSet<String>,
    unsolicited: u64,
}

struct RuntimeConnections {
    /// By host and port, the most recently used last.
    idle: HashMap<String, Vec<IdleConnection>>,
    /// The task that closes expired connections. It ends with its runtime.
    expiry: AbortHandle,
}

struct IdleConnection {
    since: Instant,
    stream: TcpStream,
}

/// How often expired connections are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(10);

/// The state of a socket according to the system. The runtime may not have been notified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketState {
    /// Open, and nothing to read.
    Quiet,
    /// Bytes are waiting to be read.
    Readable,
    /// The peer has closed it, or it failed.
    Closed,
}

impl SocketState {
    pub(super) fn of(stream: &TcpStream) -> Self {
        match SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Self::Quiet,
            Ok(1..) => Self::Readable,
            Ok(0) | Err(_) => Self::Closed,
        }
    }
}

impl Pool {
    /// An idle connection to a host and port, checked right before it is used.
    pub(super) fn take(&self, authority: &str) -> Option<TcpStream> {
        let runtime = Handle::try_current().ok()?.id();
        let mut state = self.state();
        while let Some(connection) = state.pop(runtime, authority) {
            if connection.since.elapsed() >= IDLE_TIMEOUT {
                continue;
            }
            match SocketState::of(&connection.stream) {
                SocketState::Quiet => return Some(connection.stream),
                SocketState::Readable => state.distrust(authority),
                SocketState::Closed => {}
            }
        }
        None
    }

    /// Keeps a connection whose response was read to its end, unless its upstream is distrusted.
    pub(super) fn put(self: &Arc<Self>, authority: &str, stream: TcpStream) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut state = self.state();
        if state.distrusted.contains(authority) {
            return;
        }
        let connection = IdleConnection {
            since: Instant::now(),
            stream,
        };
        if !state.runtimes.contains_key(&runtime.id()) {
            // Connections of runtimes that are gone are closed here.
            let runtimes = &mut state.runtimes;
            runtimes.retain(|_, connections| !connections.expiry.is_finished());
            let expiry = runtime.spawn(close_expired(Arc::downgrade(self), runtime.id()));
            let connections = RuntimeConnections {
                idle: HashMap::new(),
                expiry: expiry.abort_handle(),
            };
            runtimes.insert(runtime.id(), connections);
        }
        if let Some(connections) = state.runtimes.get_mut(&runtime.id()) {
            let idle = connections.idle.entry(authority.to_owned());
            idle.or_default().push(connection);
        }
    }

    /// Notes that an upstream sent bytes that no request had asked for, and closes its idle
    /// connections.
    pub(super) fn report_unsolicited(&self, authority: &str) {
        self.state().distrust(authority);
    }

    /// How often that was noted.
    pub(super) fn unsolicited_count(&self) -> u64 {
        self.state().unsolicited
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn pop(&mut self, runtime: Id, authority: &str) -> Option<IdleConnection> {
        let connections = self.runtimes.get_mut(&runtime)?;
        connections.idle.get_mut(authority)?.pop()
    }

    fn distrust(&mut self, authority: &str) {
        self.unsolicited += 1;
        for connections in self.runtimes.values_mut() {
            connections.idle.remove(authority);
        }
        if self.distrusted.insert(authority.to_owned()) {
            tracing::warn!(
                upstream = authority,
                "the upstream sent bytes that no request asked for; \
                 its connections are no longer reused"
            );
        }
    }
}

/// Closes the expired connections of a runtime until none is left.
async fn close_expired(pool: Weak<Pool>, runtime: Id) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut state = pool.state();
        let Some(connections) = state.runtimes.get_mut(&runtime) else {
            return;
        };
        connections.idle.retain(|_, idle| {
            idle.retain(|connection| {
                // Bytes that are waiting are found, and counted, when the connection is taken.
                connection.since.elapsed() < IDLE_TIMEOUT
                    && SocketState::of(&connection.stream) != SocketState::Closed
            });
            !idle.is_empty()
        });
        if connections.idle.is_empty() {
            state.runtimes.remove(&runtime);
            return;
        }
    }
}
