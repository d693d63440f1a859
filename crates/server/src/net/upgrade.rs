//! Connections that become WebSockets: they keep their place among the connections, and end with the
//! server.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::idle::{ActiveRequest, TrackedConnection};

/// What a connection offers a request that asks for a WebSocket.
#[derive(Clone, Debug)]
pub(crate) struct Upgrade {
    connection: Arc<TrackedConnection>,
    cut: CancellationToken,
    open: mpsc::Sender<()>,
}

impl Upgrade {
    /// Hold the connection, until the WebSocket has ended.
    pub(crate) fn hold(&self) -> HeldConnection {
        HeldConnection {
            cut: self.cut.clone(),
            _at_work: self.connection.begin(),
            _open: self.open.clone(),
        }
    }
}

/// A connection that has become a WebSocket. It counts as open until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldConnection {
    cut: CancellationToken,
    _at_work: ActiveRequest,
    _open: mpsc::Sender<()>,
}

impl HeldConnection {
    /// Wait until it has to end at once: its client reads nothing, or the server closes.
    pub(crate) fn cut(&self) -> WaitForCancellationFuture<'_> {
        self.cut.cancelled()
    }
}

/// The other end: what the connection knows of its WebSocket.
pub(super) struct Upgraded {
    cut: CancellationToken,
    open: mpsc::Receiver<()>,
}

/// What a connection offers, and its own end of it.
pub(super) fn upgrade(connection: &Arc<TrackedConnection>) -> (Upgrade, Upgraded) {
    let (cut, (open, ended)) = (CancellationToken::new(), mpsc::channel(1));
    let offered = Upgrade {
        connection: Arc::clone(connection),
        cut: cut.clone(),
        open,
    };
    (offered, Upgraded { cut, open: ended })
}

impl Upgraded {
    /// Wait until the WebSocket has ended, or the connection did not become one.
    pub(super) async fn ended(&mut self) {
        // Nothing is ever sent.
        while self.open.recv().await.is_some() {}
    }

    /// Have it end at once, and wait for that.
    pub(super) async fn cut(&mut self) {
        self.cut.cancel();
        self.ended().await;
    }
}
