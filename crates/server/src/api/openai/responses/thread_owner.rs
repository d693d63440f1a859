//! Who keeps the history of the thread that a request works on.

use throughline::agent::HandedOver;
use throughline::thread::{OnOtherUpstream, Owner};
use throughline::{Thread, Threads};
use throughline_model::json::RawJson;
use throughline_store::{At, TenantScope};

use super::errors;
use super::resolve_target::ResolvedTarget;
use crate::api::hand_over_error;
use crate::api::native::forms::has_more;
use crate::app::App;
use crate::config::HistoryLocation;
use crate::error::ApiError;

/// What became of the thread of a request when its owner was settled.
pub(super) enum OwnerSettled {
    /// Its history is what it was.
    AsItIs,
    /// It was handed over, and a service had more messages than our record. This handle is behind
    /// them.
    Longer(Box<Thread>),
}

/// Choose the owner of a new thread. A thread that services of other upstreams keep is handed over if
/// `history.on_other_upstream` is `hand_over`; if it is `refuse`, the run is refused when it begins.
pub(super) async fn settle_owner(
    app: &App,
    scope: &TenantScope,
    thread: &Thread,
    target: &ResolvedTarget,
) -> Result<OwnerSettled, ApiError> {
    if thread.snapshot().is_empty() {
        if let Some(owner) = first_owner(scope, thread, target) {
            let set = thread.set_owner(owner).await;
            set.map_err(|error| hand_over_error::owner(&error))?;
        }
        return Ok(OwnerSettled::AsItIs);
    }
    if !is_kept_elsewhere(&thread.owner(), target) {
        return Ok(OwnerSettled::AsItIs);
    }
    // The handle may be of a cached node, from before the thread was handed over.
    let refreshed = thread.refresh().await;
    refreshed.map_err(|error| errors::store(&error))?;
    let hands_over = app.config.history.on_other_upstream == OnOtherUpstream::HandOver;
    match hands_over && is_kept_elsewhere(&thread.owner(), target) {
        true => hand_over(app, scope, thread, target).await,
        false => Ok(OwnerSettled::AsItIs),
    }
}

/// The owner of a new thread, if it is not our store.
fn first_owner(scope: &TenantScope, thread: &Thread, target: &ResolvedTarget) -> Option<Owner> {
    match (&target.message_store, target.upstream.history) {
        (Some(store), _) => Some(Owner::External {
            store: store.clone(),
            key: RawJson::object(|key| {
                key.str("tenant", scope.tenant().as_str())
                    .str("thread", thread.id().as_str());
            }),
        }),
        (None, HistoryLocation::Service) => Some(target.upstream.owner()),
        (None, HistoryLocation::Local) => None,
    }
}

/// Whether services keep a history, and that of the target is none of them.
fn is_kept_elsewhere(owner: &Owner, target: &ResolvedTarget) -> bool {
    match owner {
        Owner::Services(services) => !services.contains(target.upstream.service()),
        Owner::Local | Owner::External { .. } => false,
    }
}

async fn hand_over(
    app: &App,
    scope: &TenantScope,
    thread: &Thread,
    target: &ResolvedTarget,
) -> Result<OwnerSettled, ApiError> {
    let threads = app.runs.threads(scope);
    let clients = app.upstreams.service_clients();
    let to = target.upstream.owner();
    // What a service has more is added at the head: a request that continues an earlier node, or a
    // failed run, has the record.
    let head = match thread.follows_failed() {
        None => at_head(&threads, thread).await?,
        Some(_) => None,
    };
    let handed = clients.hand_over(head.as_ref().unwrap_or(thread), to).await;
    let handed = handed.map_err(|error| hand_over_error::of(&error))?;
    log(thread, &handed);
    if !has_more(&handed) {
        // The handle shows who owned the thread when it was read.
        let refreshed = thread.refresh().await;
        refreshed.map_err(|error| errors::store(&error))?;
        return Ok(OwnerSettled::AsItIs);
    }
    let at = At::Thread(thread.id().clone());
    let opened = app.store.open(scope, &at, 0).await;
    let opened = opened.map_err(|error| errors::store(&error))?;
    let longer = match opened.tip {
        Some(tip) => threads.open(tip.node).await,
        None => threads.open(at).await,
    };
    let longer = longer.map_err(|error| errors::store(&error))?;
    Ok(OwnerSettled::Longer(Box::new(longer)))
}

/// The thread at its head, if that is where the request continues it.
async fn at_head(threads: &Threads, thread: &Thread) -> Result<Option<Thread>, ApiError> {
    let head = threads.open(thread.id().clone()).await;
    let head = head.map_err(|error| errors::store(&error))?;
    let last = |thread: &Thread| thread.snapshot().last().and_then(|last| last.id.clone());
    Ok(Some(head).filter(|head| last(head) == last(thread)))
}

fn log(thread: &Thread, handed: &HandedOver) {
    tracing::info!(
        thread = thread.id().as_str(),
        from = handed.from.kind(),
        to = handed.to.kind(),
        "a thread is handed over to go on with another upstream"
    );
}
