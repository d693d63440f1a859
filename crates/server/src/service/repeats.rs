//! Requests that come again: an unmodified SDK sends a request a second time when its answer broke
//! off, and says so, but has no key for it.
//!
//! Such a request attaches to the newest run of the same body, begun in the last ten minutes, whose
//! answer was not delivered whole. What a process does not remember is looked up in the record: the
//! key of such a run begins with the digest of its body, and the run says whether its answer was
//! delivered, see [`super::deliveries`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline_store::{Error, Millis, RunFilter, RunId, Store, TenantScope};

use super::deliveries::Deliveries;
use crate::trials::planted;

/// How long a run can be attached to.
const WINDOW: Millis = 10 * 60 * 1_000;

/// How many runs are scanned at most.
const MAX_SCANNED: usize = 2_000;

/// How many bodies are remembered.
const MAX_REMEMBERED: usize = 16_384;

/// The connection to the client of one request, as far as delivery is concerned.
///
/// An answer that was written may still be lost: the kernel accepts bytes long before the client reads
/// them. Implementations tell a connection that the client broke off from one that it read.
#[async_trait]
pub(crate) trait ClientConnection: std::fmt::Debug + Send + Sync {
    /// It has taken the end of the answer, and is yet to write it.
    fn answer_ends(&self);

    /// Whether it has written all of the answer.
    fn is_sent(&self) -> bool;

    /// Whether it is known by now that the client broke the connection off.
    fn is_known_broken(&self) -> bool;

    /// Whether the client broke the connection off, or is still to be sent a part of the answer, after
    /// a short wait if nothing is known yet. Dropping the future has no effect.
    async fn is_broken(&self) -> bool;
}

/// Whether an answer was delivered whole, as far as a server can know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    state: Arc<Mutex<DeliveryState>>,
    /// Which of the attempts this one is.
    attempt: u64,
    /// What is noted in the store when it is delivered, if something is.
    note: Option<Arc<DeliveryRecord>>,
}

/// What is to be noted of a delivery.
#[derive(Debug)]
pub(super) enum ToNote<'d> {
    /// It went wrong, or goes to another client now.
    Nothing,
    /// The connection is still writing the answer.
    Later,
    /// The client has the answer of this run.
    Now(&'d TenantScope, RunId),
}

/// Whose answer is delivered, and who notes it.
#[derive(Debug)]
struct DeliveryRecord {
    scope: TenantScope,
    run: RunId,
    deliveries: Arc<Deliveries>,
}

#[derive(Debug, Default)]
struct DeliveryState {
    /// The last attempt.
    attempt: u64,
    is_written: bool,
    /// How it went, if that can be known.
    connection: Option<Arc<dyn ClientConnection>>,
}

impl Delivery {
    fn state(&self) -> MutexGuard<'_, DeliveryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It goes to this client now.
    pub(crate) fn next_attempt(self, connection: Option<Arc<dyn ClientConnection>>) -> Self {
        let mut state = self.state();
        let attempt = state.attempt + 1;
        *state = DeliveryState {
            attempt,
            is_written: false,
            connection,
        };
        drop(state);
        Self { attempt, ..self }
    }

    /// The connection has taken all of it. An attempt that was given up may still be written to its end,
    /// to a client that is not there: that says nothing about the one that came after it.
    pub(crate) fn written(&self) {
        {
            let mut state = self.state();
            if state.attempt != self.attempt {
                return;
            }
            state.is_written = true;
            if let Some(connection) = &state.connection {
                connection.answer_ends();
            }
        }
        if let Some(note) = &self.note {
            note.deliveries.add(self.clone());
        }
    }

    /// The run to note, if the client has its answer as far as is known now.
    pub(super) fn to_note(&self) -> ToNote<'_> {
        let state = self.state();
        let (true, Some(note)) = (state.is_written, &self.note) else {
            return ToNote::Nothing;
        };
        match &state.connection {
            Some(connection) if connection.is_known_broken() => ToNote::Nothing,
            Some(connection) if !connection.is_sent() => ToNote::Later,
            Some(_) | None => ToNote::Now(&note.scope, note.run),
        }
    }

    /// Whether the client has it. What was written may be lost all the same: a client that breaks
    /// off has not read it.
    async fn is_delivered(&self) -> bool {
        let connection = {
            let state = self.state();
            if !state.is_written {
                return false;
            }
            state.connection.clone()
        };
        match connection {
            Some(connection) => !connection.is_broken().await,
            None => true,
        }
    }
}

/// The runs that were begun for request bodies, so that a retry without a key finds its run.
///
/// A body is remembered by its tenant and digest for [`WINDOW`]. Forgetting one is allowed: the store
/// is asked next. An implementation that several servers share would make a retry independent of the
/// server that it reaches.
#[async_trait]
pub(crate) trait Repeats: Send + Sync {
    /// Remember a run that was begun for a body. Returns the handle that tracks the delivery of its
    /// answer.
    fn begun(&self, scope: &TenantScope, digest: [u8; 16], run: RunId) -> Delivery;

    /// Mark a failed run as delivered because another run retries it: the next retry of this body must
    /// find that one.
    fn superseded(&self, scope: &TenantScope, digest: &[u8; 16], failed: RunId);

    /// The newest run of a body whose answer was not delivered, if there is one. Dropping the future
    /// has no effect.
    async fn find(
        &self,
        scope: &TenantScope,
        digest: &[u8; 16],
        now: Millis,
    ) -> Result<Option<(RunId, Delivery)>, Error>;
}

/// The runs that this process began, and those that its store knows.
pub(crate) struct ProcessRepeats {
    store: Store,
    known: Mutex<RunsByBody>,
    /// Deliveries that are still to be noted in the store.
    deliveries: Arc<Deliveries>,
}

/// Runs by whose they are and by the digest of their body.
type RunsByBody = HashMap<(TenantScope, [u8; 16]), Vec<RememberedRun>>;

#[derive(Clone, Debug)]
struct RememberedRun {
    run: RunId,
    delivery: Delivery,
}

/// When a run was begun: its id says so.
pub(crate) fn begun_at(run: RunId) -> Millis {
    let bytes = run.as_bytes();
    bytes
        .iter()
        .take(6)
        .fold(0, |time, byte| (time << 8) | Millis::from(*byte))
}

/// The key of a run that was asked for without one.
pub(crate) fn key(digest: &[u8; 16], run: RunId) -> String {
    format!("{}{}", prefix(digest), run.to_hex())
}

fn prefix(digest: &[u8; 16]) -> String {
    let digest = u128::from_be_bytes(*digest);
    format!("{BODY}{digest:032x}:")
}

/// How the keys of runs begin that were asked for without one. Clients' keys begin otherwise.
const BODY: &str = "body:";

/// The digest of the body in the key of a run that was asked for without one.
pub(crate) fn body_of(key: &str) -> Option<[u8; 16]> {
    let digest = key.strip_prefix(BODY)?.get(..32)?;
    Some(u128::from_str_radix(digest, 16).ok()?.to_be_bytes())
}

impl ProcessRepeats {
    pub(crate) fn new(store: Store, deliveries: Arc<Deliveries>) -> Self {
        Self {
            store,
            known: Mutex::default(),
            deliveries,
        }
    }

    fn known(&self) -> MutexGuard<'_, RunsByBody> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Repeats for ProcessRepeats {
    fn begun(&self, scope: &TenantScope, digest: [u8; 16], run: RunId) -> Delivery {
        let delivery = Delivery {
            note: Some(Arc::new(DeliveryRecord {
                scope: scope.clone(),
                run,
                deliveries: Arc::clone(&self.deliveries),
            })),
            ..Delivery::default()
        };
        let one = RememberedRun {
            run,
            delivery: delivery.clone(),
        };
        let since = begun_at(run).saturating_sub(WINDOW);
        let mut known = self.known();
        if known.len() >= MAX_REMEMBERED {
            known.retain(|_, runs| runs.iter().any(|one| begun_at(one.run) > since));
            if known.len() >= MAX_REMEMBERED {
                known.clear();
            }
        }
        let runs = known.entry((scope.clone(), digest)).or_default();
        runs.retain(|one| begun_at(one.run) > since);
        runs.push(one);
        delivery
    }

    fn superseded(&self, scope: &TenantScope, digest: &[u8; 16], failed: RunId) {
        let known = self.known();
        let runs = known.get(&(scope.clone(), *digest));
        let one = runs.and_then(|runs| runs.iter().find(|one| one.run == failed));
        let delivery = one.map(|one| one.delivery.clone());
        drop(known);
        if let Some(delivery) = delivery {
            delivery.next_attempt(None).written();
        }
    }

    async fn find(
        &self,
        scope: &TenantScope,
        digest: &[u8; 16],
        now: Millis,
    ) -> Result<Option<(RunId, Delivery)>, Error> {
        let since = now.saturating_sub(WINDOW);
        let known = {
            let known = self.known();
            let runs = known.get(&(scope.clone(), *digest));
            runs.cloned().unwrap_or_default()
        };
        let mut delivered = Vec::new();
        for one in known.iter().rev() {
            if begun_at(one.run) < since || one.delivery.is_delivered().await {
                delivered.push(one.run);
                continue;
            }
            return Ok(Some((one.run, one.delivery.clone())));
        }
        if planted("server-retry-anew") {
            return Ok(None);
        }
        let found = stored(&self.store, scope, digest, since, &delivered).await?;
        Ok(found.map(|run| (run, self.begun(scope, *digest, run))))
    }
}

/// The newest run of a body in the record, from before this process or by another one, whose answer is
/// not noted as delivered.
async fn stored(
    store: &Store,
    scope: &TenantScope,
    digest: &[u8; 16],
    since: Millis,
    delivered: &[RunId],
) -> Result<Option<RunId>, Error> {
    let prefix = prefix(digest);
    let mut after = None;
    let mut scanned = 0;
    while scanned < MAX_SCANNED {
        let page = store.runs(scope, &RunFilter::default(), after, 100).await?;
        scanned += page.found.len();
        for run in page.found {
            if run.created < since {
                return Ok(None);
            }
            let same = run.key.as_ref().is_some_and(|key| key.starts_with(&prefix));
            let is_noted = run.delivered && !planted("server-delivery-forgotten");
            if same && !is_noted && !delivered.contains(&run.id) {
                return Ok(Some(run.id));
            }
        }
        after = match page.next {
            Some(next) => Some(next),
            None => break,
        };
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_attempt_that_was_given_up_says_nothing_of_the_next() {
        let first = Delivery::default().next_attempt(None);
        let second = first.clone().next_attempt(None);
        // It is written to its end although its client has gone.
        first.written();
        assert!(!second.is_delivered().await);
        second.written();
        assert!(second.is_delivered().await);
        // All handles see the last attempt.
        assert!(first.is_delivered().await);
    }
}
