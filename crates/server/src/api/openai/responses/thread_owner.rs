//! Who keeps the history of the thread that a request works on.

use throughline::Thread;
use throughline::thread::Owner;
use throughline_model::json::RawJson;
use throughline_store::TenantScope;

use super::resolve_target::ResolvedTarget;
use crate::api::hand_over_error;
use crate::config::HistoryLocation;
use crate::error::ApiError;

/// Choose the owner of a new thread.
pub(super) async fn settle_owner(
    scope: &TenantScope,
    thread: &Thread,
    target: &ResolvedTarget,
) -> Result<(), ApiError> {
    if thread.snapshot().is_empty()
        && let Some(owner) = first_owner(scope, thread, target)
    {
        let set = thread.set_owner(owner).await;
        set.map_err(|error| hand_over_error::owner(&error))?;
    }
    Ok(())
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
