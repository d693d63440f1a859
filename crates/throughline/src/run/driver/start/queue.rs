//! The place of a run in the line of a busy thread.
//!
//! The store keeps the line, so that its order holds for every process. A run takes a place when it
//! has to wait, and begins when it is the first whose process is alive. A run that is dropped while it
//! waits gives up its place; if the store does not take that, a task of the agent retries until it
//! does.

use std::time::Duration;

use throughline_store::{Error, ErrorKind, Result, RunId, ThreadId};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::run::driver::RunContext;
use crate::thread::{ScopedStore, live};
use crate::trials::planted;

/// How often a waiting run looks whether another process has finished its run.
const POLL: Duration = Duration::from_millis(50);

/// How long to wait before giving up a place is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// A run and its place in the line of a thread, if it has one.
pub(crate) struct QueuePlace {
    home: ScopedStore,
    thread: ThreadId,
    run: RunId,
    tasks: TaskTracker,
    place: Option<Ticket>,
}

/// A place that the store may have.
struct Ticket {
    _waits: live::QueuedRun,
    /// The runtime for the task that gives up the place when the run is dropped.
    runtime: Handle,
}

impl QueuePlace {
    /// No place yet, for a run that has not begun.
    pub(crate) fn new(context: &RunContext, run: RunId) -> Self {
        Self {
            home: context.thread.home.clone(),
            thread: context.thread_id().clone(),
            run,
            tasks: context.agent.tasks.clone(),
            place: None,
        }
    }

    /// The run that the place is for.
    pub(crate) fn run(&self) -> RunId {
        self.run
    }

    /// The run that begins before this one, if `next`, the first in line, is another run.
    pub(crate) fn before(&self, next: Option<RunId>) -> Option<RunId> {
        next.filter(|next| *next != self.run)
    }

    pub(crate) fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// A write that takes a place is about to be sent. From here on the place is given up when the run
    /// is dropped, whether or not the answer of the store came.
    pub(crate) fn expect_place(&mut self) {
        if self.place.is_none() {
            self.place = Some(Ticket {
                _waits: live::QueuedRun::register(&self.home.store, self.run),
                runtime: Handle::current(),
            });
        }
    }

    /// The store has no place of this run: the run began, or took none.
    pub(crate) fn forget_place(&mut self) {
        self.place = None;
    }

    /// Take a place at the end of the line, unless the run has one. The store removes the places of a
    /// process whose lease has lapsed, so the run may have to take one again.
    async fn keep_place(&mut self) -> Result<()> {
        let ScopedStore { store, scope, .. } = &self.home.clone();
        if self.has_place() {
            let line = store.wait_queue(scope, &self.thread).await?;
            if line.iter().any(|waiter| waiter.run == self.run) {
                return Ok(());
            }
        }
        self.expect_place();
        let (home, thread, run) = (&self.home, &self.thread, self.run);
        let taken = home.retry_until_known(|| home.store.join_wait_queue(&home.scope, thread, run));
        taken.await.map(drop)
    }

    /// Take a place in line, or keep it behind the run `before` this one, and wait until the blocking
    /// run may be over. `false` if this run was cancelled meanwhile.
    pub(crate) async fn wait_behind(
        &mut self,
        blocking: RunId,
        before: Option<RunId>,
        context: &RunContext,
    ) -> Result<bool> {
        let is_new = !self.has_place();
        if is_new || before.is_some() {
            self.keep_place().await?;
        }
        // After taking a place, look again: the thread may have become free before that.
        Ok(is_new || self.wait_for(blocking, context).await)
    }

    async fn wait_for(&self, other: RunId, context: &RunContext) -> bool {
        let over = live::over(&self.home.store, other);
        let gone = async {
            match over {
                Some(over) => over.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => false,
            () = gone => true,
            () = tokio::time::sleep(POLL) => true,
        }
    }

    /// Give up the place, if there is one.
    pub(crate) async fn leave(&mut self) {
        let Some(place) = &self.place else {
            return;
        };
        let runtime = place.runtime.clone();
        let leaving = self.leaving();
        // If this future is dropped here, `drop` gives up the place.
        let left = leaving.once().await;
        self.place = None;
        if left.is_err_and(|error| may_succeed_later(&error)) {
            self.tasks.spawn_on(leaving.until_done(), &runtime);
        }
    }

    fn leaving(&self) -> LeaveQueue {
        LeaveQueue {
            home: self.home.clone(),
            thread: self.thread.clone(),
            run: self.run,
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            let leaving = self.leaving();
            self.tasks.spawn_on(leaving.until_done(), &place.runtime);
        }
    }
}

/// Gives up a place.
struct LeaveQueue {
    home: ScopedStore,
    thread: ThreadId,
    run: RunId,
}

impl LeaveQueue {
    async fn once(&self) -> Result<()> {
        if planted("queue-place-kept") {
            return Ok(());
        }
        let Self { home, thread, run } = self;
        let leave =
            home.retry_until_known(|| home.store.leave_wait_queue(&home.scope, thread, *run));
        leave.await
    }

    /// Other runs wait behind the place as long as this process lives, so this never gives up.
    async fn until_done(self) {
        while self
            .once()
            .await
            .is_err_and(|error| may_succeed_later(&error))
        {
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Whether the same write may succeed later.
fn may_succeed_later(error: &Error) -> bool {
    match error {
        Error::Closed => false,
        Error::Locked | Error::Full => true,
        error => error.kind() == ErrorKind::Unavailable,
    }
}
