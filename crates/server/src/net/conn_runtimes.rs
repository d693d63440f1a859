//! The runtimes that connections run on (`server.runtimes`, ADR 24).
//!
//! With `per_core` each connection stays on one single-threaded runtime, the one that accepted it: its
//! data stays in the cache of one core, and no step of a request waits for another thread to wake up.
//! With `shared` all connections run on the runtime in which the server was started.

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::sync::{Notify, oneshot};

use crate::config::Runtimes;

/// A runtime may have this fraction more connections than the others before it passes accepting on.
const SLACK: usize = 16;

/// The runtimes of all connections. Threads that were started for them end when this is dropped.
pub(crate) struct ConnRuntimes {
    threads: Vec<RuntimeThread>,
    runtimes: Vec<ConnRuntime>,
}

/// A thread with a runtime. Nothing is sent over its channels; each side sees when the other is dropped.
struct RuntimeThread {
    /// Dropping it ends the thread.
    _running: oneshot::Sender<()>,
    /// Closed when the thread has ended.
    ended: oneshot::Receiver<()>,
}

/// A runtime that connections run on. Clones are the same runtime.
#[derive(Clone)]
pub(super) struct ConnRuntime {
    pub(super) handle: Handle,
    /// Each connection holds a clone, so that the count is the number of connections.
    pub(super) connections: Arc<()>,
    /// Notified when this runtime is to accept the next connection.
    pub(super) turn: Arc<Notify>,
}

impl ConnRuntimes {
    /// The runtimes beside the one in which the server was started. A single-threaded runtime is used
    /// as it is, whatever is configured: its program wants everything on that thread, or has paused
    /// its clock.
    pub(crate) fn new(main: &Handle, configured: Runtimes) -> io::Result<Self> {
        let mut all = Self {
            threads: Vec::new(),
            runtimes: Vec::new(),
        };
        let is_single = main.runtime_flavor() == RuntimeFlavor::CurrentThread;
        if is_single || configured == Runtimes::Shared {
            all.runtimes.push(ConnRuntime::of(main));
            return Ok(all);
        }
        for _ in 0..main.metrics().num_workers() {
            all.start_thread()?;
        }
        Ok(all)
    }

    fn start_thread(&mut self) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = ConnRuntime::of(runtime.handle());
        let ((running, stopped), (ending, ended)) = (oneshot::channel(), oneshot::channel::<()>());
        std::thread::Builder::new()
            .name("connections".into())
            .spawn(move || {
                let _ = runtime.block_on(stopped);
                // Remaining tasks are dropped; blocking tasks are not waited for.
                runtime.shutdown_background();
                drop(ending);
            })?;
        self.threads.push(RuntimeThread {
            _running: running,
            ended,
        });
        self.runtimes.push(handle);
        Ok(())
    }

    /// End the threads, and wait until they have dropped their tasks.
    pub(crate) async fn end(self) {
        let threads = self.threads.into_iter();
        let ended: Vec<_> = threads.map(|thread| thread.ended).collect();
        for ended in ended {
            let _ = ended.await;
        }
    }

    pub(super) fn all(&self) -> Vec<ConnRuntime> {
        self.runtimes.clone()
    }
}

impl ConnRuntime {
    fn of(runtime: &Handle) -> Self {
        Self {
            handle: runtime.clone(),
            connections: Arc::default(),
            turn: Arc::default(),
        }
    }

    /// The runtime that has the fewest connections.
    pub(super) fn least_loaded(runtimes: &[Self]) -> Option<&Self> {
        runtimes.iter().min_by_key(|runtime| runtime.load())
    }

    /// Whether this runtime accepts the next connection too. It keeps accepting until it has
    /// noticeably more than another one: passing the turn on wakes another thread just when the first
    /// request of the new connection arrives.
    pub(super) fn keeps_turn(&self, runtimes: &[Self]) -> bool {
        let fewest = Self::least_loaded(runtimes).map_or(0, Self::load);
        self.load() <= fewest + fewest / SLACK
    }

    /// The number of its connections, plus the same constant for all runtimes.
    fn load(&self) -> usize {
        Arc::strong_count(&self.connections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many connections each of two runtimes has after so many were accepted one by one.
    fn spread(connections: usize) -> [usize; 2] {
        let runtime = Builder::new_current_thread().build().unwrap();
        let runtimes = [(); 2].map(|()| ConnRuntime::of(runtime.handle()));
        let mut open = Vec::new();
        let mut turn = &runtimes[0];
        for _ in 0..connections {
            open.push(Arc::clone(&turn.connections));
            if !turn.keeps_turn(&runtimes) {
                turn = ConnRuntime::least_loaded(&runtimes).unwrap();
            }
        }
        runtimes.each_ref().map(|runtime| runtime.load() - 1)
    }

    #[test]
    fn connections_are_spread_over_the_runtimes() {
        for few in [2, 4, 16, 28] {
            assert_eq!(spread(few), [few / 2; 2]);
        }
        // With many, a few more or less do not matter.
        for many in 30..300 {
            let [one, other] = spread(many);
            assert!(one.abs_diff(other) <= many / 2 / SLACK + 2, "{one} {other}");
        }
    }
}
