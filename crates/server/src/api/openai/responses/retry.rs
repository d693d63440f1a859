//! Retries: idempotency keys, and what becomes of them after a run failed.
//!
//! A run that failed for a transient reason frees its key: the next request with the key begins
//! another run, under a name that every retry derives alike, so that one of them begins it. If the
//! failed run had recorded something, the new one goes on with its journal: recorded model answers and
//! tool results are not made again.

use axum::http::HeaderMap;
use throughline::agent::RunEnd;
use throughline_model::{Message, Role, Source};
use throughline_store::{Error, Idempotency, Journal, RunId, RunState, TenantScope};

use super::errors;
use crate::app::App;
use crate::error::ApiError;
use crate::trials::planted;

/// What the headers of a request say about retries. A digest is that of the request body.
pub(in crate::api::openai) enum Retry {
    /// It has an `Idempotency-Key`.
    Keyed(Idempotency),
    /// An SDK without keys sends it again.
    WithoutKey([u8; 16]),
    /// An SDK without keys sends it for the first time, and may send it again.
    FirstAttempt([u8; 16]),
    /// Nothing is said about retries.
    None,
}

impl Retry {
    pub(in crate::api::openai) fn of(headers: &HeaderMap, body: &[u8]) -> Result<Self, ApiError> {
        let attempts = header_text(headers, "x-stainless-retry-count");
        let attempts = attempts.and_then(|count| count.parse::<u64>().ok());
        Ok(match (key_name(headers)?, attempts) {
            (Some(key), _) => Self::Keyed(Idempotency {
                key,
                request: digest(body),
            }),
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

/// A run that failed under the key of a request before.
#[derive(Clone, Copy)]
pub(super) struct FailedRun {
    pub(super) run: RunId,
    pub(super) recorded: Recorded,
}

/// What a failed run has recorded beside its input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorded {
    /// Nothing: the request begins anew.
    Nothing,
    /// Steps or results of tools, and no answer of a model: the first model call is still to come.
    Steps,
    /// An answer of a model.
    Answer,
}

impl FailedRun {
    /// Whether the next run goes on with the journal of this one.
    pub(super) fn is_adopted(&self) -> bool {
        self.recorded != Recorded::Nothing
    }
}

/// The name of a key after a run that failed under it.
fn name_after(name: &str, failed: RunId) -> String {
    let first = name.split('\n').next().unwrap_or(name);
    format!("{first}\n{}", failed.to_hex())
}

/// The key for a request that comes again, and the run that failed, if the run that it was asked for
/// before has failed for a reason that may be gone. Otherwise that run is the answer.
pub(super) async fn key_after(
    app: &App,
    scope: &TenantScope,
    (run, request): (RunId, [u8; 16]),
) -> Result<Option<(Idempotency, FailedRun)>, ApiError> {
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
    let recorded = recorded(&journal);
    Ok(journal.run.key.as_ref().map(|name| {
        let key = Idempotency {
            key: name_after(name, run),
            request,
        };
        (key, FailedRun { run, recorded })
    }))
}

/// What a failed run has recorded beside its input.
fn recorded(journal: &Journal) -> Recorded {
    let messages = || journal.entries.iter().map(|entry| &entry.message);
    let by_model = |message: &Message| message.source == Some(Source::Model);
    // Results of calls that it took over from the run before are part of its input.
    let is_result = |message: &Message| {
        message.role == Role::Tool && matches!(message.source, Some(Source::Repair | Source::Tool))
    };
    if messages().any(by_model) {
        return Recorded::Answer;
    }
    match !journal.steps.is_empty() || messages().any(is_result) {
        true => Recorded::Steps,
        false => Recorded::Nothing,
    }
}
