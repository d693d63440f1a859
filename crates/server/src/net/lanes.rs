//! The threads that connections stay on (ADR 24).
//!
//! What a connection works with lies in the caches of the processor that last worked on it. A runtime
//! of several threads gives each step of a request to whichever of them is free, and most of what the
//! step touches has to be brought there first. So each connection has one thread, with a runtime of
//! its own, for as long as it lasts: the one that accepted it.

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::sync::{Notify, oneshot};

/// One of so many connections may be on one lane that should be on another.
const SHARE: usize = 16;

/// Threads that run until this is dropped.
pub(crate) struct Lanes {
    threads: Vec<Thread>,
    lanes: Vec<Lane>,
}

/// Of both channels nothing is sent: it is the other end that is missed.
struct Thread {
    /// The thread ends with this.
    _runs: oneshot::Sender<()>,
    /// And this with the thread.
    ended: oneshot::Receiver<()>,
}

/// A thread that connections stay on. Clones are the same.
#[derive(Clone)]
pub(super) struct Lane {
    pub(super) runtime: Handle,
    /// Each connection has a copy.
    pub(super) place: Arc<()>,
    /// Says that the next connection is this one's to accept.
    pub(super) turn: Arc<Notify>,
}

impl Lanes {
    /// As many as a runtime has threads. One that has a single thread is the lane itself: whoever
    /// chose that wants everything on it, or has set its clock.
    pub(crate) fn beside(runtime: &Handle) -> io::Result<Self> {
        let mut lanes = Self {
            threads: Vec::new(),
            lanes: Vec::new(),
        };
        if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
            lanes.lanes.push(Lane::of(runtime));
            return Ok(lanes);
        }
        for _ in 0..runtime.metrics().num_workers() {
            lanes.start()?;
        }
        Ok(lanes)
    }

    fn start(&mut self) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let lane = Lane::of(runtime.handle());
        let ((runs, stopped), (ending, ended)) = (oneshot::channel(), oneshot::channel::<()>());
        std::thread::Builder::new()
            .name("connections".into())
            .spawn(move || {
                let _ = runtime.block_on(stopped);
                // Whatever is left is dropped; nobody waits for what was left to threads that block.
                runtime.shutdown_background();
                drop(ending);
            })?;
        self.threads.push(Thread { _runs: runs, ended });
        self.lanes.push(lane);
        Ok(())
    }

    /// End the threads, and wait until whatever was left on them is gone.
    pub(crate) async fn end(self) {
        let ended: Vec<_> = self
            .threads
            .into_iter()
            .map(|thread| thread.ended)
            .collect();
        for ended in ended {
            let _ = ended.await;
        }
    }

    /// The lanes, for whoever has connections for them.
    pub(super) fn all(&self) -> Vec<Lane> {
        self.lanes.clone()
    }
}

impl Lane {
    fn of(runtime: &Handle) -> Self {
        Self {
            runtime: runtime.clone(),
            place: Arc::default(),
            turn: Arc::default(),
        }
    }

    /// The lane that has the fewest connections.
    pub(super) fn freest(lanes: &[Self]) -> Option<&Self> {
        lanes.iter().min_by_key(|lane| lane.connections())
    }

    /// Whether this one accepts the next connection too. It has to have more than another by a share
    /// of them: passing the turn on wakes a thread just when the request of the new connection comes,
    /// and what is done for that takes longer than accepting does.
    pub(super) fn keeps_turn(&self, lanes: &[Self]) -> bool {
        let fewest = Self::freest(lanes).map_or(0, Self::connections);
        self.connections() <= fewest + fewest / SHARE
    }

    /// How many connections it has; the same number for all is on top of that.
    fn connections(&self) -> usize {
        Arc::strong_count(&self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many connections each of two lanes has after so many were accepted, one after the other.
    fn spread(connections: usize) -> [usize; 2] {
        let runtime = Builder::new_current_thread().build().unwrap();
        let lanes = [(); 2].map(|()| Lane::of(runtime.handle()));
        let mut open = Vec::new();
        let mut turn = &lanes[0];
        for _ in 0..connections {
            open.push(Arc::clone(&turn.place));
            if !turn.keeps_turn(&lanes) {
                turn = Lane::freest(&lanes).unwrap();
            }
        }
        lanes.each_ref().map(|lane| lane.connections() - 1)
    }

    #[test]
    fn connections_are_spread_over_the_lanes() {
        for few in [2, 4, 16, 28] {
            assert_eq!(spread(few), [few / 2; 2]);
        }
        // With many, a few more or less do not matter.
        for many in 30..300 {
            let [one, other] = spread(many);
            assert!(one.abs_diff(other) <= many / 2 / SHARE + 2, "{one} {other}");
        }
    }
}
