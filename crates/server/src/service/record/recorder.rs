//! Begins and publishes recorded runs.

use std::sync::Arc;
use std::time::Duration;

use throughline_model::json::RawJson;
use throughline_model::{Message, Source};
use throughline_store::{
    Anchor, Begin, Begun, Error, ErrorKind, Fingerprint, FingerprintMatch, ItemNo, ItemRef, Lease,
    Leasing, NewItem, NewThread, NodeRef, Publish, Result, RunId, Store, TenantScope, ThreadId,
};

use super::close::missing;
use super::conversation::{
    DigestedMessage, History, MessageDigest, digested, instructions, quotable, quoted,
};
use super::placement::{self, KnownHistory, batches, longest, stored, unanswered};
use super::stored::{RecordedRequest, meta};
use crate::service::Runs;
use crate::trials::planted;

/// How long a request waits for its record to be written, at its beginning and at its end.
const DEADLINE: Duration = Duration::from_secs(5);

/// Why a request is not recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// The store refused it or is away.
    #[error("the store did not take it")]
    Store(#[from] Error),
    /// It took too long.
    #[error("the store did not answer within {DEADLINE:?}")]
    Slow,
}

impl RecordError {
    /// Whether the write may have been made all the same.
    fn may_be_written(&self) -> bool {
        match self {
            Self::Store(error) => error.kind() == ErrorKind::Unavailable,
            Self::Slow => true,
        }
    }
}

/// Records requests.
#[derive(Clone)]
pub(crate) struct Recorder {
    runs: Arc<Runs>,
}

/// Where a request was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// In a new thread.
    New,
    /// At the head of a thread.
    Continued,
    /// Beside what follows in a thread.
    Branched,
    /// In the thread of the same request, which has no answer.
    Retried,
}

impl Placed {
    /// The word in logs and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Continued => "continued",
            Self::Branched => "branched",
            Self::Retried => "retried",
        }
    }
}

/// Where a request begins, and what of it is stored already.
struct Place {
    anchor: Anchor,
    thread: ThreadId,
    placed: Placed,
    /// How many messages of the request are its history.
    known: usize,
    found: Vec<FingerprintMatch>,
}

impl Recorder {
    pub(crate) fn new(runs: &Arc<Runs>) -> Self {
        Self {
            runs: Arc::clone(runs),
        }
    }

    /// Record a request before its model is asked. `Ok` means that its input is stored.
    pub(crate) async fn begin(
        &self,
        scope: &TenantScope,
        about: RecordedRequest<'_>,
        messages: &[&Message],
    ) -> std::result::Result<Recording, RecordError> {
        let run = self.runs.store.ids().run();
        let begun = self.place_and_begin(scope, run, about, messages);
        let begun = match tokio::time::timeout(DEADLINE, begun).await {
            Ok(begun) => begun.map_err(RecordError::Store),
            Err(_) => Err(RecordError::Slow),
        };
        if let Err(error) = &begun
            && error.may_be_written()
        {
            self.runs.leave_unsettled(scope, run);
        }
        begun
    }

    async fn place_and_begin(
        &self,
        scope: &TenantScope,
        run: RunId,
        about: RecordedRequest<'_>,
        messages: &[&Message],
    ) -> Result<Recording> {
        let (leading, messages) = messages.split_at(instructions(messages));
        let request = about.to_json(leading);
        let digests = digested(messages);
        let place = self.place(scope, about.api, messages, &digests).await?;
        let input = (messages, &*digests);
        let begun = self.begin_at(scope, (run, &request), input, place).await;
        match begun {
            // What was found is gone meanwhile, or another retry of the request has the thread.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Busy
                ) =>
            {
                let place = self.new_thread(about.api, Vec::new(), None);
                self.begin_at(scope, (run, &request), input, place).await
            }
            begun => begun,
        }
    }

    /// Find where a request belongs.
    async fn place(
        &self,
        scope: &TenantScope,
        api: &str,
        messages: &[&Message],
        digests: &[DigestedMessage],
    ) -> Result<Place> {
        let store = &self.runs.store;
        let mut found = Vec::new();
        for batch in batches(digests.len()) {
            let looked_up = digests.get(batch.clone()).unwrap_or_default();
            let ends = looked_up.iter().map(|message| message.history.end());
            let contents = looked_up.iter().map(|message| message.content);
            let wanted: Vec<_> = ends.chain(contents).collect();
            found.extend(store.find_fingerprints(scope, &wanted).await?);
            let known = match planted("record-prefix-ignored") {
                true => None,
                false => longest(digests, batch, &found),
            };
            if let Some(known) = known {
                return Ok(after(known, found));
            }
        }
        let Some(last) = digests.last() else {
            return Ok(self.new_thread(api, found, None));
        };
        let mut wanted = vec![last.history.opening()];
        wanted.extend(
            messages
                .first()
                .map(|first| quoted(first))
                .unwrap_or_default(),
        );
        let others = store.find_fingerprints(scope, &wanted).await?;
        let openings = others.iter().filter(|one| one.digest == wanted[0]);
        let openings: Vec<_> = openings.cloned().collect();
        if let Some(same) = unanswered(&openings) {
            let thread = same.thread().clone();
            return Ok(Place {
                anchor: Anchor::Head {
                    thread: thread.clone(),
                    expected: throughline_store::Version(0),
                },
                thread,
                placed: Placed::Retried,
                known: 0,
                found,
            });
        }
        let mut quotations = others.iter().filter(|one| one.digest != wanted[0]);
        let quotation = quotations
            .next()
            .map(|one| (one.thread().clone(), one.run.id));
        let origin = placement::origin(digests, &found).or(quotation);
        Ok(self.new_thread(api, found, origin.as_ref()))
    }

    fn new_thread(
        &self,
        api: &str,
        found: Vec<FingerprintMatch>,
        origin: Option<&(ThreadId, RunId)>,
    ) -> Place {
        let id = self.runs.store.ids().thread();
        let thread = NewThread {
            meta: Some(meta(api, origin)),
            ..NewThread::new(id.clone())
        };
        Place {
            anchor: Anchor::New {
                thread,
                leasing: Leasing::Free,
            },
            thread: id,
            placed: Placed::New,
            known: 0,
            found,
        }
    }

    async fn begin_at(
        &self,
        scope: &TenantScope,
        (run, request): (RunId, &RawJson),
        (messages, digests): (&[&Message], &[DigestedMessage]),
        place: Place,
    ) -> Result<Recording> {
        let store = &self.runs.store;
        let has_base = matches!(place.anchor, Anchor::Node(_));
        let new = messages.iter().zip(digests).skip(place.known);
        let mut input = Input::default();
        let stored = stored(&place.found);
        for (message, digest) in new {
            input.add(message, digest, stored.get(&digest.content));
        }
        let history = digests
            .last()
            .map_or_else(History::start, |last| last.history);
        if !has_base && input.last > 0 {
            input.find(input.last, history.opening());
        }
        let begin = Begin {
            request: Some(request.clone()),
            fingerprints: input.fingerprints,
            ..Begin::new(run, place.anchor, input.items)
        };
        let lease = match store.begin(scope, &begin).await? {
            Begun::Started(started) => started.lease,
            Begun::Repeated(run) => Lease {
                run: run.id,
                epoch: run.epoch,
            },
        };
        Ok(Recording {
            runs: Arc::clone(&self.runs),
            scope: scope.clone(),
            lease,
            thread: place.thread,
            placed: place.placed,
            inputs: input.last,
            history,
            is_open: true,
        })
    }
}

/// The request goes on after an answer.
fn after(known: KnownHistory, found: Vec<FingerprintMatch>) -> Place {
    Place {
        anchor: Anchor::Node(NodeRef::Node(known.node)),
        thread: known.thread,
        placed: match known.is_head {
            true => Placed::Continued,
            false => Placed::Branched,
        },
        known: known.messages,
        found,
    }
}

/// The input of a run.
#[derive(Default)]
struct Input {
    items: Vec<NewItem>,
    fingerprints: Vec<Fingerprint>,
    /// The number of the last item.
    last: ItemNo,
}

impl Input {
    /// Add a message: what is stored is said again.
    fn add(&mut self, message: &Message, digest: &DigestedMessage, stored: Option<&ItemRef>) {
        let first = self.last + 1;
        match stored.filter(|_| !planted("record-stored-again")) {
            Some(stored) => {
                let again = (0..digest.items).map(|place| {
                    NewItem::Repeat(ItemRef {
                        run: stored.run,
                        no: stored.no.saturating_add(place),
                    })
                });
                self.items.extend(again);
            }
            None => {
                let said = Message {
                    source: message.source.clone().or(Some(Source::Caller)),
                    ..message.clone()
                };
                NewItem::push(&mut self.items, &said);
                self.find(first, digest.content);
            }
        }
        self.last = self.last.saturating_add(digest.items);
    }

    fn find(&mut self, item: ItemNo, digest: throughline_store::FingerprintDigest) {
        self.fingerprints.push(Fingerprint { item, digest });
    }
}

/// A request whose input is recorded and whose answer is not. Dropped without an end it is left to the
/// orphan sweeper, which says in the record that the answer is missing.
pub(crate) struct Recording {
    runs: Arc<Runs>,
    scope: TenantScope,
    lease: Lease,
    thread: ThreadId,
    placed: Placed,
    inputs: ItemNo,
    history: History,
    is_open: bool,
}

impl Recording {
    /// The thread that it is recorded in.
    pub(crate) fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// Its run there.
    #[cfg(test)]
    pub(crate) fn run(&self) -> RunId {
        self.lease.run
    }

    /// How it was placed.
    pub(crate) fn placed(&self) -> Placed {
        self.placed
    }

    /// Record the answer. `Ok` means that it is stored.
    pub(crate) async fn publish(
        mut self,
        answer: &[Message],
        note: RawJson,
    ) -> std::result::Result<(), RecordError> {
        let mut history = self.history;
        let mut fingerprints = Vec::new();
        let mut last = self.inputs;
        for message in answer {
            let digest = MessageDigest::of(message);
            history = history.with(&digest);
            let first = last + 1;
            let found_by = std::iter::once(digest.content(message)).chain(quotable(message));
            fingerprints.extend(found_by.map(|digest| Fingerprint {
                item: first,
                digest,
            }));
            last = last.saturating_add(NewItem::count(message));
        }
        if last > 0 {
            fingerprints.push(Fingerprint {
                item: last,
                digest: history.end(),
            });
        }
        let publish = Publish {
            note: Some(note),
            fingerprints,
            ..Publish::new(0, NewItem::of(answer))
        };
        let store = self.store();
        let written = timed(|| store.publish(&self.scope, self.lease, &publish)).await;
        self.is_open = written.is_err();
        written.map(|_| ())
    }

    /// Record that there is no answer, and why.
    pub(crate) async fn fail(
        mut self,
        kind: &str,
        why: &str,
    ) -> std::result::Result<(), RecordError> {
        let end = missing(kind, why);
        let store = self.store();
        let written = timed(|| store.end(&self.scope, self.lease, &end)).await;
        self.is_open = written.is_err();
        written
    }

    fn store(&self) -> Store {
        self.runs.store.clone()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.is_open {
            self.runs.leave_unsettled(&self.scope, self.lease.run);
        }
    }
}

/// Write until it is known what came of it, for as long as a client is kept waiting.
async fn timed<T, F: Future<Output = Result<T>>>(
    write: impl Fn() -> F,
) -> std::result::Result<T, RecordError> {
    let attempts = async {
        match write().await {
            // It may have been written: the same write again says whether.
            Err(error) if error.kind() == ErrorKind::Unavailable => write().await,
            written => written,
        }
    };
    let written = tokio::time::timeout(DEADLINE, attempts).await;
    Ok(written.map_err(|_| RecordError::Slow)??)
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
