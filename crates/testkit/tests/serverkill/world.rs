//! Shared state of clients and readers: the server's address, received events, and violations.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throughline_testkit::serverkill::{Event, ServerLedger, StreamLog, Turn};

/// Shared state of clients and readers.
#[derive(Default)]
pub(crate) struct World {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    /// The address of the server; `None` while it is dead.
    address: Option<String>,
    /// The number of the server.
    life: u64,
    /// The number of events so far.
    seen: u64,
    is_over: bool,
    wrong: Option<String>,
    pub(crate) streams_read: StreamLog,
    pub(crate) ledger: ServerLedger,
    /// Streamed responses, from which readers choose.
    pub(crate) streams: Vec<String>,
    /// The parent of each turn, acknowledged or not.
    pub(crate) parents: HashMap<String, Option<String>>,
    pub(crate) counts: Counts,
}

/// The counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Requests that were retried with a key or as an SDK does, and answered.
    pub(crate) retries: u64,
    /// Streams that were read, whole or cut.
    pub(crate) streams: u64,
    /// Of them, those that began after an event.
    pub(crate) resumed: u64,
    /// Interrupted answers.
    pub(crate) cut: u64,
    /// Turns that were given up by clients without any guard against repetition.
    pub(crate) left: u64,
    /// Responses that were read again.
    pub(crate) reads: u64,
    /// Requests that were told to wait.
    pub(crate) waited: u64,
    /// Turns whose runs were killed so often that they were given up.
    pub(crate) given_up: u64,
}

impl World {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server has started.
    pub(crate) fn starts(&self, address: &str) {
        self.state().address = Some(address.to_owned());
        self.changed.notify_all();
    }

    /// The server has died.
    pub(crate) fn dies(&self) {
        let mut state = self.state();
        state.address = None;
        state.life += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// A server cannot be reached: waits until another task reports that it is dead.
    pub(crate) fn unreachable(&self, address: &str) {
        let state = self.state();
        if state.address.as_deref() == Some(address) && state.wrong.is_none() {
            // Each woken task checks by itself.
            let woken = self.changed.wait_timeout(state, Duration::from_millis(20));
            drop(woken);
        }
    }

    /// Tells clients to finish.
    pub(crate) fn ends(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_over(&self) -> bool {
        let state = self.state();
        state.is_over || state.wrong.is_some()
    }

    /// Records a violation.
    pub(crate) fn wrong(&self, what: String) {
        let mut state = self.state();
        state.wrong.get_or_insert(what);
        drop(state);
        self.changed.notify_all();
    }

    /// The violations.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        self.state().wrong.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn life(&self) -> u64 {
        self.state().life
    }

    /// Waits for the server's address.
    pub(crate) fn address(&self) -> Result<String, String> {
        let mut state = self.state();
        loop {
            if state.wrong.is_some() {
                return Err("something else went wrong".to_owned());
            }
            if let Some(address) = &state.address {
                return Ok(address.clone());
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Counts an event.
    pub(crate) fn saw(&self) {
        self.state().seen += 1;
        self.changed.notify_all();
    }

    /// Waits until this many more events have happened, a violation is recorded, or `gone` returns
    /// true.
    pub(crate) fn happens(&self, more: u64, mut gone: impl FnMut() -> bool) {
        let mut state = self.state();
        let enough = state.seen + more;
        while state.seen < enough && state.wrong.is_none() && !gone() {
            // A process that ends by itself wakes no task.
            let (woken, _) = self
                .changed
                .wait_timeout(state, Duration::from_millis(20))
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
        }
    }

    /// Records an event that a reader received.
    pub(crate) fn hears(&self, response: &str, event: &Event) -> Result<(), String> {
        let mut state = self.state();
        state.seen += 1;
        let heard = state.streams_read.record(response, event);
        drop(state);
        self.changed.notify_all();
        heard
    }

    /// Records an acknowledged turn.
    pub(crate) fn acknowledges(&self, turn: Turn) -> Result<(), String> {
        let mut state = self.state();
        state.seen += 1;
        let known = state.ledger.acknowledge(turn);
        drop(state);
        self.changed.notify_all();
        known
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.retries += other.retries;
        self.streams += other.streams;
        self.resumed += other.resumed;
        self.cut += other.cut;
        self.left += other.left;
        self.reads += other.reads;
        self.waited += other.waited;
        self.given_up += other.given_up;
    }
}
