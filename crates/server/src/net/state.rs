//! What the HTTP layer works with.

use std::sync::Arc;

use throughline::client::MemoryBudget;
use throughline_store::Store;

use super::metrics::HttpMetrics;
use crate::config::LimitsConfig;
use crate::stopping::Stopping;

/// Limits, metrics and the shutdown signal that connections and middleware share.
///
/// An `Arc` of it is taken from the state of a router with
/// [`FromRef`](axum::extract::FromRef), so that this module does not know what else a server has.
pub struct NetState {
    pub(crate) limits: LimitsConfig,
    pub(crate) metrics: Arc<HttpMetrics>,
    pub(crate) stopping: Stopping,
    /// Budget for request bodies and unread answers.
    pub(crate) memory: MemoryBudget,
    /// Its id source gives requests their ids; nothing else of it is used.
    pub(crate) store: Store,
    /// Whether acknowledged writes may be lost in a power failure, which each answer says.
    pub(crate) is_relaxed: bool,
}
