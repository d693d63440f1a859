//! Telling readers, after what they hear is stored.

use std::time::Duration;

use throughline_store::EventNo;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Job;
use crate::agent::event::RunEvent;
use crate::agent::events::encode;
use crate::history::Recorder;

/// How long events are gathered before they are stored together.
const GATHER: Duration = Duration::from_millis(25);

/// An event with its number; one that is not stored has none.
pub(crate) type Heard = (Option<EventNo>, RunEvent);

/// Who listens to a run, and what they are told with the next write.
pub(super) struct Telling {
    reader: Option<mpsc::UnboundedSender<Heard>>,
    /// Whether the run has stored events: then all of them are, whoever reads it now. Others follow
    /// it by what is stored, and wait for its end.
    logged: bool,
    /// Whether what is said is stored.
    stores: bool,
    held: Vec<Heard>,
    next: EventNo,
    flushed: Option<Instant>,
}

impl Telling {
    pub(super) fn new(job: &Job, next: EventNo) -> Self {
        Self {
            reader: job.events.clone(),
            logged: next > 0,
            stores: job.stores || next > 0,
            held: Vec::new(),
            next,
            flushed: None,
        }
    }

    pub(super) fn is_heard(&self) -> bool {
        self.reader.is_some() || self.logged
    }

    /// Say something once it is stored.
    pub(super) fn say(&mut self, recorder: &mut Recorder, event: impl FnOnce() -> RunEvent) {
        if !self.is_heard() {
            return;
        }
        let event = event();
        if !self.stores {
            self.held.push((None, event));
            return;
        }
        recorder.event(encode(&event));
        self.held.push((Some(self.next), event));
        self.next += 1;
    }

    /// Whether there are readers who need what was said before they came.
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

    /// Say something that was stored by other means.
    pub(super) fn say_stored(&mut self, event: RunEvent) {
        let no = self.stores.then_some(self.next);
        self.held.push((no, event));
        self.next += u64::from(self.stores);
        self.stored();
    }

    /// Say something that is not part of the run's events: that it stops here for now. What is held
    /// was not stored, so it never happened: a success, for instance, that the store did not take.
    pub(super) fn say_unstored(&mut self, event: RunEvent) {
        self.held.clear();
        self.held.push((None, event));
        self.stored();
    }

    /// When what is held is to be stored at the latest: the first event at once, others gather.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.held.is_empty() {
            return None;
        }
        Some(match self.flushed {
            Some(flushed) => flushed + GATHER,
            None => Instant::now(),
        })
    }

    /// What is held was stored.
    pub(super) fn stored(&mut self) {
        if self.held.is_empty() {
            return;
        }
        self.flushed = Some(Instant::now());
        let Some(reader) = &self.reader else {
            self.held.clear();
            return;
        };
        for event in self.held.drain(..) {
            // Whoever listened may be gone; the run is then being cancelled anyway.
            drop(reader.send(event));
        }
    }
}
