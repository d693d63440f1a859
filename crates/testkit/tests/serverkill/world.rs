//! What callers and readers share: where the server is, what was heard, and what went wrong.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throughline_testkit::serverkill::{Event, ServerLedger, Told, Turn};

/// What callers and readers share.
#[derive(Default)]
pub(crate) struct World {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    /// Where the server listens; nowhere while it is dead.
    address: Option<String>,
    /// Which server it is.
    life: u64,
    /// How much happened so far.
    seen: u64,
    is_over: bool,
    wrong: Option<String>,
    pub(crate) told: Told,
    pub(crate) ledger: ServerLedger,
    /// Responses that are streamed, for readers to choose from.
    pub(crate) streams: Vec<String>,
    /// What each turn goes on from, whether or not it was acknowledged.
    pub(crate) parents: HashMap<String, Option<String>>,
    pub(crate) counts: Counts,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Requests that were sent again with a key or as an SDK does, and answered.
    pub(crate) retries: u64,
    /// Streams that were read, whole or cut.
    pub(crate) streams: u64,
    /// Of them: those that began after an event.
    pub(crate) resumed: u64,
    /// Answers that broke off.
    pub(crate) cut: u64,
    /// Turns that were given up by callers that guard against nothing.
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

    /// The server is dead.
    pub(crate) fn dies(&self) {
        let mut state = self.state();
        state.address = None;
        state.life += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// A server at an address cannot be reached: wait until another task notices that it is dead.
    pub(crate) fn unreachable(&self, address: &str) {
        let state = self.state();
        if state.address.as_deref() == Some(address) && state.wrong.is_none() {
            // Each task that wakes looks for itself.
            let woken = self.changed.wait_timeout(state, Duration::from_millis(20));
            drop(woken);
        }
    }

    /// Callers finish what they are at.
    pub(crate) fn ends(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_over(&self) -> bool {
        let state = self.state();
        state.is_over || state.wrong.is_some()
    }

    /// Something does not hold.
    pub(crate) fn wrong(&self, what: String) {
        let mut state = self.state();
        state.wrong.get_or_insert(what);
        drop(state);
        self.changed.notify_all();
    }

    /// What does not hold.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        self.state().wrong.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn life(&self) -> u64 {
        self.state().life
    }

    /// Where the server is, once there is one.
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

    /// Something happened.
    pub(crate) fn saw(&self) {
        self.state().seen += 1;
        self.changed.notify_all();
    }

    /// Wait until so much more has happened, or something is wrong, or `gone` says so.
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

    /// A reader heard an event.
    pub(crate) fn hears(&self, response: &str, event: &Event) -> Result<(), String> {
        let mut state = self.state();
        state.seen += 1;
        let heard = state.told.hear(response, event);
        drop(state);
        self.changed.notify_all();
        heard
    }

    /// A turn is acknowledged.
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
