//! Reading the events of a run that another task works on, or that is over.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use throughline_store::{EventNo, Flush, RunId, RunState, Store, TenantScope};

use super::codec::{BadEvent, decode};
use super::replay::{replayed, stop_of};
use crate::run::event::RunEvent;
use crate::thread::{StopReason, Threads};

/// How many events are asked for at once.
const PAGE: usize = 256;

/// How long to wait before a live run is asked for more. Writers flush at most every 20 ms.
const PAUSE: Duration = Duration::from_millis(20);

/// Why the events of a run cannot be read any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The store refused or failed.
    #[error("the events of {run} cannot be read")]
    Store {
        /// The run.
        run: RunId,
        /// Why.
        source: throughline_store::Error,
    },
    /// An event cannot be read.
    #[error("event {no} of {run} cannot be read")]
    Event {
        /// The run.
        run: RunId,
        /// The event.
        no: EventNo,
        /// Why.
        source: BadEvent,
    },
    /// The page in which several events are stored is damaged.
    #[error("the events of {run} from {first} to {last} are damaged; run `throughline fsck`")]
    Damaged {
        /// The run.
        run: RunId,
        /// The first of them.
        first: EventNo,
        /// The last of them.
        last: EventNo,
    },
}

impl Threads {
    /// The events of a run after a number, from whichever process; all of them without one.
    pub fn attach(&self, run: RunId, after: Option<EventNo>) -> Attached {
        Attached::new(self.store().clone(), self.scope().clone(), run, after)
    }

    /// The events of a run as far as they are known, without waiting for more.
    pub fn so_far(&self, run: RunId) -> Attached {
        Attached::so_far(self.store().clone(), self.scope().clone(), run)
    }
}

/// The events of a run after a number, each with its own.
///
/// It ends after the run's last event. It also ends when the run waits for something (parked,
/// interrupted, held) and there is no more to read; a reader that wants later events attaches again
/// after the last number. An end that says `parked` is not the last event if the run was resumed, so
/// reading goes on behind it.
///
/// A run without a reader stored no events: they are made from its journal when it does not run any
/// more. Events of kinds that this version does not know, and redacted ones, are skipped, so that
/// numbers may have gaps. After an error the stream ends.
///
/// It only reads: dropping it changes nothing for the run.
#[must_use = "a stream does nothing unless it is polled"]
pub struct Attached {
    events: BoxStream<'static, Result<(EventNo, RunEvent), AttachError>>,
}

impl Attached {
    /// Read a run of a tenant from after an event, or from its beginning.
    pub fn new(store: Store, scope: TenantScope, run: RunId, after: Option<EventNo>) -> Self {
        Self::reading(Reader::new(store, scope, run, after))
    }
}

impl Attached {
    /// Read the events of a run so far, without waiting for more.
    pub fn so_far(store: Store, scope: TenantScope, run: RunId) -> Self {
        let mut reader = Reader::new(store, scope, run, None);
        reader.follows = false;
        Self::reading(reader)
    }

    fn reading(reader: Reader) -> Self {
        let events = stream::unfold(Some(reader), |reader| async {
            let mut reader = reader?;
            match reader.next().await {
                Ok(Some(event)) => Some((Ok(event), Some(reader))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Self {
            // An unfolded stream must not be polled after its end; a fused one may.
            events: events.fuse().boxed(),
        }
    }
}

impl Stream for Attached {
    type Item = Result<(EventNo, RunEvent), AttachError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(cx)
    }
}

/// Where events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// No event was read yet.
    Unknown,
    /// The store has them.
    Stored,
    /// The last event is read, or in `ready`.
    Over,
}

struct Reader {
    store: Store,
    scope: TenantScope,
    run: RunId,
    /// The event that is read next.
    from: EventNo,
    ready: VecDeque<(EventNo, Result<RunEvent, BadEvent>)>,
    origin: Origin,
    /// Whether the run was seen not to run, and so had stored all its events, since they were last
    /// read.
    has_stopped: bool,
    /// Whether it waits for more events while the run works.
    follows: bool,
}

impl Reader {
    fn new(store: Store, scope: TenantScope, run: RunId, after: Option<EventNo>) -> Self {
        Self {
            store,
            scope,
            run,
            from: after.map_or(0, |no| no.saturating_add(1)),
            ready: VecDeque::new(),
            origin: Origin::Unknown,
            has_stopped: false,
            follows: true,
        }
    }

    async fn next(&mut self) -> Result<Option<(EventNo, RunEvent)>, AttachError> {
        loop {
            while let Some((no, event)) = self.ready.pop_front() {
                if let Some(event) = self.unless_skipped(no, event).await? {
                    return Ok(Some((no, event)));
                }
            }
            if self.origin == Origin::Over {
                return Ok(None);
            }
            self.read().await?;
        }
    }

    /// The event, unless it is skipped.
    async fn unless_skipped(
        &mut self,
        no: EventNo,
        event: Result<RunEvent, BadEvent>,
    ) -> Result<Option<RunEvent>, AttachError> {
        let event = match event {
            Ok(event) => event,
            // The stop reason is not redacted, and readers wait for the end.
            Err(error) if error.is_redacted_end() => {
                let run = self.store.run(&self.scope, self.run).await;
                match stop_of(&run.map_err(|source| self.failed(source))?) {
                    Some(stop) => RunEvent::Ended { stop },
                    None => return Ok(None),
                }
            }
            Err(error) if error.can_be_skipped() => return Ok(None),
            Err(source) => {
                let run = self.run;
                return Err(AttachError::Event { run, no, source });
            }
        };
        if let RunEvent::Ended { stop } = event
            && stop != StopReason::Parked
        {
            self.origin = Origin::Over;
            self.ready.clear();
        }
        Ok(Some(event))
    }

    /// Read some events, or wait, or find that there are no more.
    async fn read(&mut self) -> Result<(), AttachError> {
        let page = self.stored(self.from, PAGE).await?;
        if !page.is_empty() {
            self.origin = Origin::Stored;
            self.has_stopped = false;
            return self.take(&page);
        }
        if self.has_stopped {
            return self.finish().await;
        }
        let run = self.store.run(&self.scope, self.run).await;
        match run.map_err(|source| self.failed(source))?.state {
            RunState::Running if self.follows => tokio::time::sleep(PAUSE).await,
            // It may have stored its last events after they were read: read once more.
            RunState::Running
            | RunState::Interrupted
            | RunState::Parked
            | RunState::Held
            | RunState::Committed
            | RunState::Cancelled
            | RunState::Failed
            | RunState::Unpublished
            | RunState::Discarded => self.has_stopped = true,
        }
        Ok(())
    }

    fn take(&mut self, page: &[Flush]) -> Result<(), AttachError> {
        for flush in page {
            let events = match flush.events() {
                Some(events) => events,
                // Events before it are read first, then it is read again.
                None if !self.ready.is_empty() => break,
                None => {
                    return Err(AttachError::Damaged {
                        run: self.run,
                        first: flush.first(),
                        last: flush.end().saturating_sub(1),
                    });
                }
            };
            for (no, event) in (flush.first()..).zip(&events) {
                if no >= self.from {
                    self.ready.push_back((no, decode(event)));
                }
            }
            self.from = self.from.max(flush.end());
        }
        Ok(())
    }

    /// The run does not run, and all events that it stored are read.
    async fn finish(&mut self) -> Result<(), AttachError> {
        let streamed = self.origin == Origin::Stored || !self.stored(0, 1).await?.is_empty();
        self.origin = Origin::Over;
        if streamed {
            return Ok(());
        }
        let journal = self.store.journal(&self.scope, self.run).await;
        let journal = journal.map_err(|source| self.failed(source))?;
        let events = (0..).zip(replayed(&journal));
        let wanted = events.filter(|(no, _)| *no >= self.from);
        self.ready = wanted.map(|(no, event)| (no, Ok(event))).collect();
        Ok(())
    }

    async fn stored(&self, from: EventNo, limit: usize) -> Result<Vec<Flush>, AttachError> {
        let found = self.store.events(&self.scope, self.run, from, limit).await;
        found.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: throughline_store::Error) -> AttachError {
        AttachError::Store {
            run: self.run,
            source,
        }
    }
}
