//! Where threads are: a store, and whose data of it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::cache::HistoryCache;
use throughline_store::{Error, ErrorKind, Result, Store, TenantScope};

/// How long to wait before something is sent again of which nobody knows whether it was done.
const AGAIN: [Duration; 4] = [
    Duration::from_millis(5),
    Duration::from_millis(25),
    Duration::from_millis(100),
    Duration::from_millis(400),
];

/// What an engine gives back for an operation.
type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A store, and whose data of it.
#[derive(Clone)]
pub(crate) struct ScopedStore {
    pub(crate) store: Store,
    pub(crate) scope: TenantScope,
    /// Where views are left for other handles, if they are.
    pub(crate) views: Option<HistoryCache>,
}

impl ScopedStore {
    /// Send a write until its answer is known. Writes of a run may be sent again: one that was done
    /// is answered as it was the first time.
    pub(crate) async fn sure<'a, T>(&self, send: impl Fn() -> Answer<'a, T> + Send) -> Result<T> {
        for wait in AGAIN {
            match send().await {
                Err(error) if is_open(&error) => tokio::time::sleep(wait).await,
                answer => return answer,
            }
        }
        send().await
    }
}

/// Whether sending again can help.
fn is_open(error: &Error) -> bool {
    match error {
        Error::Closed => false,
        Error::Locked => true,
        error => error.kind() == ErrorKind::Unavailable,
    }
}
