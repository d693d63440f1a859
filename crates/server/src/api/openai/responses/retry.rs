//! Requests that come again after their run failed.
//!
//! A run that failed for a reason that may be gone frees its key: the next request with it begins
//! another run, under a name that all who send the request again derive alike, so that one of them
//! begins it. If the failed run had done something, the other one goes on with its journal: answers
//! of the model and results of tools that are recorded are not made again.

use throughline::RunEnd;
use throughline_model::{Message, Role, Source};
use throughline_store::{Error, Journal, RunId, RunState, TenantScope};

use super::fail;
use crate::app::App;
use crate::error::ApiError;
use crate::service::body_of;
use crate::trials::planted;

/// Under which name a run is begun at most once.
pub(super) struct Key {
    pub(super) name: String,
    /// The request for which the name stands.
    pub(super) digest: [u8; 16],
    /// The run that failed under the key before.
    pub(super) failed: Option<RunId>,
    /// What of that is gone on with.
    pub(super) adopts: Option<Adopts>,
}

/// A failed run whose journal another one goes on with.
#[derive(Clone, Copy)]
pub(super) struct Adopts {
    pub(super) run: RunId,
    /// Whether a model has answered in it. If not, the first model call is still to come.
    pub(super) has_answer: bool,
}

impl Key {
    pub(super) fn new(name: String, digest: [u8; 16]) -> Self {
        Self {
            name,
            digest,
            failed: None,
            adopts: None,
        }
    }

    /// The body that is asked for, if the request has no key of the client's.
    pub(super) fn body(&self) -> Option<[u8; 16]> {
        body_of(&self.name)
    }
}

/// The name of a key after a run that failed under it.
fn name_after(name: &str, failed: RunId) -> String {
    let first = name.split('\n').next().unwrap_or(name);
    format!("{first}\n{}", failed.to_hex())
}

/// The key for a request that comes again, if the run that it was asked for before has failed for a
/// reason that may be gone. Otherwise that run is the answer.
pub(super) async fn key_after(
    app: &App,
    scope: &TenantScope,
    (run, digest): (RunId, [u8; 16]),
) -> Result<Option<Key>, ApiError> {
    if planted("server-key-pinned") {
        return Ok(None);
    }
    let gone = |error| match error {
        Error::NotFound { .. } => Ok(None),
        error => Err(fail::store(&error)),
    };
    // Most runs have not failed, and journals are long.
    let known = match app.store.run(scope, run).await {
        Ok(known) => known,
        Err(error) => return gone(error),
    };
    let error = RunEnd::of(&known).and_then(|end| end.error);
    let is_transient = error.is_some_and(|(kind, _)| fail::is_transient(&kind));
    if known.state != RunState::Failed || !is_transient {
        return Ok(None);
    }
    let journal = match app.store.journal(scope, run).await {
        Ok(journal) => journal,
        Err(error) => return gone(error),
    };
    Ok(journal.run.key.as_ref().map(|name| Key {
        name: name_after(name, run),
        digest,
        failed: Some(run),
        adopts: adopts(&journal),
    }))
}

/// What of a failed run can be gone on with: nothing, if it has recorded no more than what it was
/// asked.
fn adopts(journal: &Journal) -> Option<Adopts> {
    let said = || journal.entries.iter().map(|entry| &entry.message);
    let by_model = |message: &Message| message.source == Some(Source::Model);
    // Calls that it took over from the run before have their results among what it was asked.
    let is_result = |message: &Message| {
        message.role == Role::Tool && matches!(message.source, Some(Source::Repair | Source::Tool))
    };
    let has_answer = said().any(by_model);
    let has_done_something = has_answer || !journal.steps.is_empty() || said().any(is_result);
    has_done_something.then_some(Adopts {
        run: journal.run.id,
        has_answer,
    })
}
