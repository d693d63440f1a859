//! Publishes events to readers after they are stored.

use std::time::Duration;

use throughline_store::EventNo;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Job;
use crate::run::event::RunEvent;
use crate::run::events::encode;
use crate::thread::Recorder;

/// How long events are gathered before they are stored together, at least and at most. Between them
/// it follows how long storing took: when many runs want it at once, each asks less often for more.
const GATHER: Duration = Duration::from_millis(25);
const GATHER_AT_MOST: Duration = Duration::from_millis(200);

/// So many bytes of events are stored at once, however short they gathered: a service that sends as
/// fast as it can must not make one large write that all others wait for.
const MOST: usize = 64 << 10;

/// An event with its number; one that is not stored has none.
pub(crate) type NumberedEvent = (Option<EventNo>, RunEvent);

/// Events that are told together.
pub(crate) struct EventBatch {
    pub(crate) heard: Vec<NumberedEvent>,
}

impl EventBatch {
    /// One event that is not stored.
    pub(crate) fn unstored(event: RunEvent) -> Self {
        Self {
            heard: vec![(None, event)],
        }
    }
}

/// Who listens to a run, and what they are told with the next write.
pub(super) struct EventPublisher {
    reader: Option<mpsc::UnboundedSender<EventBatch>>,
    /// Whether the run has stored events: then all of them are, whoever reads it now. Others follow
    /// it by what is stored, and wait for its end.
    logged: bool,
    /// Whether what is said is stored.
    stores: bool,
    held: Vec<NumberedEvent>,
    /// How many bytes of them are to be stored.
    bytes: usize,
    next: EventNo,
    /// When events were last stored, and how long the next ones gather from there.
    flushed: Option<(Instant, Duration)>,
    /// Whether readers still wait for the first words of an answer, which gather with nothing.
    waited_for: bool,
}

impl EventPublisher {
    pub(super) fn new(job: &Job, next: EventNo) -> Self {
        Self {
            reader: job.events.clone(),
            logged: next > 0,
            stores: job.stores || next > 0,
            held: Vec::new(),
            bytes: 0,
            next,
            flushed: None,
            waited_for: false,
        }
    }

    pub(super) fn is_heard(&self) -> bool {
        self.reader.is_some() || self.logged
    }

    /// A model call begins: somebody waits for its first words.
    pub(super) fn await_words(&mut self) {
        self.waited_for = true;
    }

    /// Say something once it is stored.
    pub(super) fn say(&mut self, recorder: &mut Recorder, event: impl FnOnce() -> RunEvent) {
        if !self.is_heard() {
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

    /// Events are large, and a stream that comes word by word holds one at a time.
    fn hold(&mut self, heard: NumberedEvent) {
        if self.held.len() == self.held.capacity() {
            self.held.reserve_exact(1 + self.held.len() / 2);
        }
        self.held.push(heard);
    }

    /// Whether there are readers who need what was said before they came, and hear of an answer while
    /// it comes. Those of a run whose events are not stored hear of it when it is whole, as readers
    /// do who come later.
    pub(super) fn is_logged(&self) -> bool {
        self.is_heard() && self.stores
    }

    /// Store what was never stored, without saying it: whoever hears of it later needs its number.
    pub(super) fn store(&mut self, recorder: &mut Recorder, events: &[RunEvent]) {
        for event in events {
            recorder.event(encode(event));
            self.next += 1;
        }
    }

    /// Say what was stored by other means.
    pub(super) fn say_stored(&mut self, events: impl IntoIterator<Item = RunEvent>) {
        for event in events {
            let no = self.stores.then_some(self.next);
            self.held.push((no, event));
            self.next += u64::from(self.stores);
        }
        self.stored();
    }

    /// Say something that is not part of the run's events: that it stops here for now. What is held
    /// was not stored, so it never happened: a success, for instance, that the store did not take.
    pub(super) fn say_unstored(&mut self, event: RunEvent) {
        self.held.clear();
        self.held.push((None, event));
        self.stored();
    }

    /// When what is held is to be stored if nothing more comes: the first words at once, others
    /// gather.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.stores && self.is_waited_for() {
            return Some(Instant::now());
        }
        self.overdue()
    }

    /// When what is held is to be stored, whatever comes.
    pub(super) fn overdue(&self) -> Option<Instant> {
        // What is not stored is told with the next write, whatever it writes.
        if self.held.is_empty() || !self.stores {
            return None;
        }
        Some(match self.flushed {
            Some((flushed, gather)) if self.bytes < MOST => flushed + gather,
            Some(_) | None => Instant::now(),
        })
    }

    /// Whether what is held are the first words, or has them.
    pub(super) fn is_waited_for(&self) -> bool {
        self.waited_for && self.has_words()
    }

    fn has_words(&self) -> bool {
        self.held.iter().any(|(_, event)| event.is_word())
    }

    /// How long storing what is held took.
    pub(super) fn took(&mut self, time: Duration) {
        let gather = (4 * time).clamp(GATHER, GATHER_AT_MOST);
        self.flushed = Some((Instant::now(), gather));
    }

    /// What is held was stored.
    pub(super) fn stored(&mut self) {
        if self.held.is_empty() {
            return;
        }
        self.bytes = 0;
        let gather = self.flushed.map_or(GATHER, |(_, gather)| gather);
        self.flushed = Some((Instant::now(), gather));
        self.waited_for &= !self.has_words();
        // Together, as they were stored: a channel has room for many of what it carries, and an event
        // is large.
        let told = EventBatch {
            heard: std::mem::take(&mut self.held),
        };
        if let Some(reader) = &self.reader {
            // Whoever listened may be gone; the run is then being cancelled anyway.
            drop(reader.send(told));
        }
    }
}
