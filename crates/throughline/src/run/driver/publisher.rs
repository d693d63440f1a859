//! Writes the journal of a run, and sends events to the reader after they are stored.

use std::time::Duration;

use throughline_store::EventNo;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::RunContext;
use crate::run::event::RunEvent;
use crate::run::events::encode;
use crate::thread::Recorder;

/// How long events are gathered into one write, at least and at most. In between it is four times as
/// long as the last write took: when many runs write at once, each writes less often.
const GATHER: Duration = Duration::from_millis(25);
const GATHER_AT_MOST: Duration = Duration::from_millis(200);

/// So many bytes of events are written without further gathering. A vendor that sends at full speed
/// must not cause a write that delays those of other runs.
const MOST: usize = 64 << 10;

/// An event with its number; one that is not stored has none.
pub(crate) type NumberedEvent = (Option<EventNo>, RunEvent);

/// Events that were stored by one write.
pub(crate) struct EventBatch {
    pub(crate) events: Vec<NumberedEvent>,
}

impl EventBatch {
    /// One event that is not stored.
    pub(crate) fn unstored(event: RunEvent) -> Self {
        Self {
            events: vec![(None, event)],
        }
    }
}

/// The journal of a run together with the events that readers get of it.
pub(crate) struct RunLog {
    pub(crate) recorder: Recorder,
    pub(crate) events: EventPublisher,
}

impl RunLog {
    /// Publish an event with the next write. It is not made if it has no reader.
    pub(crate) fn publish(&mut self, event: impl FnOnce() -> RunEvent) {
        self.events.publish(&mut self.recorder, event);
    }

    /// Store the events that are held, and send them to the reader.
    pub(crate) async fn flush(&mut self) -> throughline_store::Result<()> {
        let begun = Instant::now();
        if !crate::trials::planted("server-events-unstored") {
            self.recorder.flush().await?;
        }
        self.events.wrote_in(begun.elapsed());
        self.events.release();
        Ok(())
    }
}

/// Holds events until a write has stored them, then sends them to the reader.
pub(crate) struct EventPublisher {
    reader: Option<mpsc::UnboundedSender<EventBatch>>,
    /// Whether the run had stored events when this process took it. Then it stores all of them, also
    /// without a reader here: readers elsewhere follow what is stored until the end of the run.
    is_continued: bool,
    /// Whether events are stored.
    stores: bool,
    held: Vec<NumberedEvent>,
    /// Encoded size of the held events.
    bytes: usize,
    next: EventNo,
    /// When events were last stored, and how long the next ones gather from then on.
    flushed: Option<(Instant, Duration)>,
    /// Whether the first content of the current model call has not been sent yet. It is stored
    /// without gathering.
    awaits_content: bool,
}

impl EventPublisher {
    pub(crate) fn new(context: &RunContext, next: EventNo) -> Self {
        Self {
            reader: context.events.clone(),
            is_continued: next > 0,
            stores: context.stores_events || next > 0,
            held: Vec::new(),
            bytes: 0,
            next,
            flushed: None,
            awaits_content: false,
        }
    }

    /// Whether events are made at all.
    pub(crate) fn is_enabled(&self) -> bool {
        self.reader.is_some() || self.is_continued
    }

    /// Whether events are stored, and an answer is published while it comes. Readers of a run that
    /// stores no events get an answer when it is whole, like readers that attach later.
    pub(crate) fn is_stored(&self) -> bool {
        self.is_enabled() && self.stores
    }

    /// A model call begins.
    pub(crate) fn expect_content(&mut self) {
        self.awaits_content = true;
    }

    /// Publish an event with the next write of the recorder.
    pub(crate) fn publish(&mut self, recorder: &mut Recorder, event: impl FnOnce() -> RunEvent) {
        if !self.is_enabled() {
            return;
        }
        let event = event();
        if !self.stores {
            self.hold((None, event));
            return;
        }
        let stored = encode(&event);
        self.bytes += stored.body.len();
        recorder.event(stored);
        self.hold((Some(self.next), event));
        self.next += 1;
    }

    /// Events are large, and a stream of deltas mostly holds one at a time.
    fn hold(&mut self, event: NumberedEvent) {
        if self.held.len() == self.held.capacity() {
            self.held.reserve_exact(1 + self.held.len() / 2);
        }
        self.held.push(event);
    }

    /// Store events of the time when the run had no reader, so that later events get the numbers
    /// that readers expect. The reader here does not get them.
    pub(crate) fn store_earlier(&mut self, recorder: &mut Recorder, events: &[RunEvent]) {
        for event in events {
            recorder.event(encode(event));
            self.next += 1;
        }
    }

    /// Send events that the write which began the run has stored.
    pub(crate) fn send_stored(&mut self, events: impl IntoIterator<Item = RunEvent>) {
        for event in events {
            let no = self.stores.then_some(self.next);
            self.held.push((no, event));
            self.next += u64::from(self.stores);
        }
        self.release();
    }

    /// Send an event that is not stored: the run stops here for now. Held events were not stored
    /// either, such as a success that the store refused, and are dropped.
    pub(crate) fn send_unstored(&mut self, event: RunEvent) {
        self.held.clear();
        self.held.push((None, event));
        self.release();
    }

    /// When held events are to be stored if no more come: the first content at once, others after
    /// gathering.
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.stores && self.awaits_content && self.holds_content() {
            return Some(Instant::now());
        }
        self.overdue()
    }

    /// When held events are to be stored even if more come.
    pub(crate) fn overdue(&self) -> Option<Instant> {
        // Without storing, events are sent after the next write of the journal.
        if self.held.is_empty() || !self.stores {
            return None;
        }
        Some(match self.flushed {
            Some((flushed, gather)) if self.bytes < MOST => flushed + gather,
            Some(_) | None => Instant::now(),
        })
    }

    fn holds_content(&self) -> bool {
        self.held.iter().any(|(_, event)| event.is_content())
    }

    /// Storing the held events took so long.
    pub(crate) fn wrote_in(&mut self, time: Duration) {
        let gather = (4 * time).clamp(GATHER, GATHER_AT_MOST);
        self.flushed = Some((Instant::now(), gather));
    }

    /// Send the held events to the reader: they are stored.
    pub(crate) fn release(&mut self) {
        if self.held.is_empty() {
            return;
        }
        self.bytes = 0;
        let gather = self.flushed.map_or(GATHER, |(_, gather)| gather);
        self.flushed = Some((Instant::now(), gather));
        self.awaits_content &= !self.holds_content();
        // One batch for each write: a channel allocates room for many items, and an event is large.
        let events = std::mem::take(&mut self.held);
        if let Some(reader) = &self.reader {
            // A reader that is gone has cancelled the run.
            drop(reader.send(EventBatch { events }));
        }
    }
}
