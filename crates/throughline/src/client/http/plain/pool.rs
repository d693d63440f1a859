//! Connections that wait for the next request.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::target::Target;
use crate::client::http::KEEP;

/// The connections that wait, for each host and port, the newest last.
#[derive(Default)]
pub(super) struct Pool(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    connections: HashMap<String, Vec<(Instant, TcpStream)>>,
    /// Whoever closes what is not used. It goes with the runtime that it is in.
    watcher: Option<AbortHandle>,
}

impl Waiting {
    /// Close what nobody used for long; whether something is left.
    fn prune(&mut self) -> bool {
        self.connections.retain(|_, waiting| {
            waiting.retain(|(since, stream)| since.elapsed() < KEEP && is_quiet(stream));
            !waiting.is_empty()
        });
        !self.connections.is_empty()
    }
}

impl Pool {
    /// A connection that is still open.
    pub(super) fn take(&self, target: &Target) -> Option<TcpStream> {
        let mut waiting = self.waiting();
        let connections = waiting.connections.get_mut(&target.authority)?;
        while let Some((since, stream)) = connections.pop() {
            if since.elapsed() < KEEP && is_quiet(&stream) {
                return Some(stream);
            }
        }
        None
    }

    /// Keep a connection whose answer has been read.
    pub(super) fn keep(self: &Arc<Self>, target: &Target, stream: TcpStream) {
        let mut waiting = self.waiting();
        let entry = (Instant::now(), stream);
        match waiting.connections.get_mut(&target.authority) {
            Some(connections) => connections.push(entry),
            None => {
                let authority = target.authority.clone();
                waiting.connections.insert(authority, vec![entry]);
            }
        }
        let is_watched = |watcher: &AbortHandle| !watcher.is_finished();
        if !waiting.watcher.as_ref().is_some_and(is_watched)
            && let Ok(runtime) = Handle::try_current()
        {
            let watcher = runtime.spawn(watch(Arc::downgrade(self)));
            waiting.watcher = Some(watcher.abort_handle());
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a connection has neither ended nor anything to say that nobody asked for. The system is
/// asked, because the runtime may not have heard of it yet.
fn is_quiet(stream: &TcpStream) -> bool {
    let peeked = SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]);
    matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// Close connections that nobody uses, until there are none.
async fn watch(pool: std::sync::Weak<Pool>) {
    loop {
        tokio::time::sleep(KEEP).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut waiting = pool.waiting();
        if !waiting.prune() {
            waiting.watcher = None;
            return;
        }
    }
}
