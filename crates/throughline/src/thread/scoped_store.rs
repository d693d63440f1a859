//! A store and a tenant: where the threads of a [`Threads`](super::Threads) are.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::cache::HistoryCache;
use throughline_store::{Error, ErrorKind, Result, Store, TenantScope};

/// The pauses before a write with an unknown outcome is sent again.
const RETRY_PAUSES: [Duration; 4] = [
    Duration::from_millis(5),
    Duration::from_millis(25),
    Duration::from_millis(100),
    Duration::from_millis(400),
];

/// The future that an engine returns for an operation.
type EngineFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A store and a tenant.
#[derive(Clone)]
pub(crate) struct ScopedStore {
    pub(crate) store: Store,
    pub(crate) scope: TenantScope,
    /// The history cache of all handles, if there is one.
    pub(crate) history_cache: Option<HistoryCache>,
}

impl ScopedStore {
    /// Sends a write until its outcome is known. Writes of a run can be repeated: one that was done
    /// is answered as it was the first time.
    pub(crate) async fn retry_until_known<'a, T>(
        &self,
        send: impl Fn() -> EngineFuture<'a, T> + Send,
    ) -> Result<T> {
        for wait in RETRY_PAUSES {
            match send().await {
                Err(error) if is_outcome_unknown(&error) => tokio::time::sleep(wait).await,
                answer => return answer,
            }
        }
        send().await
    }
}

/// Whether the outcome is unknown, so that sending the write again can help.
fn is_outcome_unknown(error: &Error) -> bool {
    match error {
        Error::Closed => false,
        Error::Locked => true,
        error => error.kind() == ErrorKind::Unavailable,
    }
}
