//! Retries: idempotency keys, and what becomes of them after a run failed.
//!
//! A run that failed for a transient reason frees its key: the next request with the key begins
//! another run, under a name that every retry derives alike, so that one of them begins it. If the
//! failed run had recorded something, the new one goes on with its journal: recorded model answers and
//! tool results are not made again.

use axum::http::HeaderMap;
use throughline::agent::RunEnd;
use throughline_model::{Message, Role, Source};
use throughline_store::{Error, Journal, RunId, RunState, TenantScope};

use super::errors;
use crate::app::App;
use crate::error::ApiError;
use crate::service::body_of;
use crate::trials::planted;

/// What the headers of a request say about retries. A digest is that of the request body.
pub(super) enum Retry {
    /// It has an `Idempotency-Key`.
    Keyed(IdempotencyKey),
    /// An SDK without keys sends it again.
    WithoutKey([u8; 16]),
    /// An SDK without keys sends it for the first time, and may send it again.
    FirstAttempt([u8; 16]),
    /// Nothing is said about retries.
    None,
}

impl Retry {
    pub(super) fn of(headers: &HeaderMap, body: &[u8]) -> Result<Self, ApiError> {
        let attempts = header_text(headers, "x-stainless-retry-count");
        let attempts = attempts.and_then(|count| count.parse::<u64>().ok());
        Ok(match (key_name(headers)?, attempts) {
            (Some(name), _) => Self::Keyed(IdempotencyKey::new(name, digest(body))),
            (None, Some(1..)) => Self::WithoutKey(digest(body)),
            (None, Some(0)) => Self::FirstAttempt(digest(body)),
            (None, None) => Self::None,
        })
    }
}

/// The name that a client's key has in the store. Any bytes are a key: those that are no plain text
/// are spelt in hexadecimal digits, under a name that no text has.
fn key_name(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(key) = values.next() else {
        return Ok(None);
    };
    let wrong = |text: &str| Err(ApiError::invalid(text).code("invalid_value").retry(false));
    if values.next().is_some() {
        return wrong("There is more than one Idempotency-Key header. Send one.");
    }
    if key.len() > 256 {
        return wrong("The Idempotency-Key is longer than 256 bytes.");
    }
    Ok(match key.to_str() {
        Ok("") => None,
        Ok(text) => Some(format!("key:{text}")),
        Err(_) => {
            let digits = key.as_bytes().iter().map(|byte| format!("{byte:02x}"));
            Some(format!("bytes:{}", digits.collect::<String>()))
        }
    })
}

fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let text = headers.get(name)?.to_str().ok()?;
    (!text.is_empty()).then_some(text)
}

/// The digest of a request body.
fn digest(body: &[u8]) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(body).as_bytes()[..16]);
    digest
}

/// A key under which the store begins a run at most once.
pub(super) struct IdempotencyKey {
    pub(super) name: String,
    /// The request for which the name stands.
    pub(super) digest: [u8; 16],
    /// The run that failed under the key before.
    pub(super) failed: Option<RunId>,
    /// The part of it that the new run adopts.
    pub(super) adopts: Option<AdoptedRun>,
}

/// A failed run whose journal another one goes on with.
#[derive(Clone, Copy)]
pub(super) struct AdoptedRun {
    pub(super) run: RunId,
    /// Whether a model has answered in it. If not, the first model call is still to come.
    pub(super) has_answer: bool,
}

impl IdempotencyKey {
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
) -> Result<Option<IdempotencyKey>, ApiError> {
    if planted("server-key-pinned") {
        return Ok(None);
    }
    let gone = |error| match error {
        Error::NotFound { .. } => Ok(None),
        error => Err(errors::store(&error)),
    };
    // Most runs have not failed, and journals are long.
    let known = match app.store.run(scope, run).await {
        Ok(known) => known,
        Err(error) => return gone(error),
    };
    let error = RunEnd::of(&known).and_then(|end| end.error);
    let is_transient = error.is_some_and(|(kind, _)| errors::is_transient(&kind));
    if known.state != RunState::Failed || !is_transient {
        return Ok(None);
    }
    let journal = match app.store.journal(scope, run).await {
        Ok(journal) => journal,
        Err(error) => return gone(error),
    };
    Ok(journal.run.key.as_ref().map(|name| IdempotencyKey {
        name: name_after(name, run),
        digest,
        failed: Some(run),
        adopts: adopts(&journal),
    }))
}

/// What of a failed run can be gone on with: nothing, if it has recorded no more than what it was
/// asked.
fn adopts(journal: &Journal) -> Option<AdoptedRun> {
    let said = || journal.entries.iter().map(|entry| &entry.message);
    let by_model = |message: &Message| message.source == Some(Source::Model);
    // Calls that it took over from the run before have their results among what it was asked.
    let is_result = |message: &Message| {
        message.role == Role::Tool && matches!(message.source, Some(Source::Repair | Source::Tool))
    };
    let has_answer = said().any(by_model);
    let has_done_something = has_answer || !journal.steps.is_empty() || said().any(is_result);
    has_done_something.then_some(AdoptedRun {
        run: journal.run.id,
        has_answer,
    })
}
