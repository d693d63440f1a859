//! Who is alive.

use std::sync::Weak;

use crate::{Millis, OwnerId, RunState, rules};

use super::schema::{RunRow, Shared};

/// A process that opened the store.
pub(super) struct Owner {
    /// Until when it counts as alive, if it says so itself.
    pub(super) until: Millis,
    /// Lives as long as the process's handle, if that counts.
    pub(super) token: Option<Weak<()>>,
}

impl Owner {
    pub(super) fn is_alive(&self, now: Millis) -> bool {
        match &self.token {
            Some(token) => token.strong_count() > 0,
            None => now < self.until,
        }
    }
}

impl Shared {
    pub(super) fn is_alive(&self, owner: OwnerId, now: Millis) -> bool {
        self.owners
            .get(&owner)
            .is_some_and(|owner| owner.is_alive(now))
    }

    /// The state of a run as of now.
    pub(super) fn state(&self, run: &RunRow, now: Millis) -> RunState {
        let alive = run.owner.is_some_and(|owner| self.is_alive(owner, now));
        rules::lease::state_now(run.state, alive)
    }

    /// A heartbeat.
    pub(super) fn renew(&mut self, owner: OwnerId, until: Millis) {
        // One that was silent for long may have been forgotten.
        let silent = Owner { until, token: None };
        self.owners.entry(owner).or_insert(silent).until = until;
    }
}
