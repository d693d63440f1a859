//! Recorded runs whose process is gone, or whose end could not be stored.

use throughline::StopReason;
use throughline_model::json::RawJson;
use throughline_store::{Claim, End, Error, Result, RunId, Stopped, Store, TenantScope};

use super::stored::is_recorded;

/// The note of a run without an answer.
pub(super) fn missing(kind: &str, why: &str) -> End {
    End {
        how: Stopped::Failed,
        note: Some(RawJson::object(|object| {
            let stop = StopReason::Failed.as_str();
            object.str("stop", stop).str("kind", kind).str("error", why);
        })),
        events: None,
    }
}

/// Close a recorded run that was left: the record says that its answer is missing. The model is not asked
/// again, because the client has its answer or will ask again itself. `None` if it is no recorded run.
pub(crate) async fn close_left(
    store: &Store,
    scope: &TenantScope,
    run: RunId,
) -> Result<Option<StopReason>> {
    let journal = store.journal(scope, run).await?;
    if !is_recorded(journal.request.as_ref()) {
        return Ok(None);
    }
    close(store, scope, run, journal.run.epoch).await?;
    Ok(Some(StopReason::Failed))
}

async fn close(store: &Store, scope: &TenantScope, run: RunId, seen: u32) -> Result<()> {
    // The caller knows that nothing here works on it.
    let started = match store.claim(scope, run, seen, Claim::Own).await {
        // It was settled meanwhile.
        Err(Error::WrongState { .. }) => return Ok(()),
        started => started?,
    };
    let why = "the server stopped, or could not write, before the answer was recorded; the client may have received it";
    store
        .end(scope, started.lease, &missing("answer_missing", why))
        .await
}
