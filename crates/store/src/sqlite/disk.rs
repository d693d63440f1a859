//! What was answered before the disk has it, and who waits for that.

use std::sync::Mutex;

use tokio::sync::oneshot;

use super::cache::lock;
use crate::{Error, Result};

/// Runs that were begun and are not on the disk yet. The writer brings them there next, and says so.
#[derive(Default)]
pub(super) struct Owed(Mutex<State>);

#[derive(Default)]
struct State {
    owes: bool,
    /// The disk did not take it when it was last tried.
    failing: bool,
    waiting: Vec<oneshot::Sender<()>>,
}

impl Owed {
    /// Something was written, and is about to be answered.
    pub(super) fn owe(&self) {
        lock(&self.0).owes = true;
    }

    /// The disk has everything.
    pub(super) fn paid(&self) {
        let waiting = {
            let mut state = lock(&self.0);
            (state.owes, state.failing) = (false, false);
            std::mem::take(&mut state.waiting)
        };
        for one in waiting {
            // Whoever waited may have gone.
            let _ = one.send(());
        }
    }

    /// The disk did not take it. Whoever waits is told so, and so is whoever comes before it does.
    pub(super) fn failed(&self) {
        let mut state = lock(&self.0);
        state.failing = true;
        state.waiting.clear();
    }

    /// Wait until the disk has what was answered so far.
    pub(super) async fn wait(&self) -> Result<()> {
        let refused = || Error::Io {
            detail: "the disk has not taken what was written".into(),
        };
        let paid = {
            let mut state = lock(&self.0);
            match (state.owes, state.failing) {
                (false, _) => return Ok(()),
                (true, true) => return Err(refused()),
                (true, false) => {}
            }
            let (waits, paid) = oneshot::channel();
            state.waiting.push(waits);
            paid
        };
        paid.await.map_err(|_| refused())
    }
}
