//! The place of a run in the line of its thread.
//!
//! The store keeps the line, so that its order holds for every process. A run takes a place when it
//! has to wait, and begins when it is the first whose process lives. A run that goes away gives up
//! its place; if that cannot be stored now, a task of the agent tries again until it is.

use std::sync::Arc;
use std::time::Duration;

use throughline_store::{Error, ErrorKind, Result, RunId, ThreadId};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::run::driver::Job;
use crate::run::setup::AgentSetup;
use crate::thread::{ScopedStore, live};
use crate::trials::planted;

/// How often a waiter looks whether another process has made way.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long to wait before a place is given up again that could not be given up.
const LEAVE_AGAIN: Duration = Duration::from_secs(1);

/// A run and its place in the line of a thread, if it has one.
pub(in crate::run::driver) struct QueuePlace {
    home: ScopedStore,
    thread: ThreadId,
    run: RunId,
    tasks: TaskTracker,
    place: Option<Ticket>,
}

/// A place that may be stored.
struct Ticket {
    _waits: live::QueuedRun,
    /// Where it can be given up.
    runtime: Handle,
}

impl QueuePlace {
    /// No place yet, for a run that has not begun.
    pub(in crate::run::driver) fn of(agent: &Arc<AgentSetup>, job: &Job, run: RunId) -> Self {
        Self {
            home: job.thread.home.clone(),
            thread: job.id().clone(),
            run,
            tasks: agent.tasks.clone(),
            place: None,
        }
    }

    /// The run that waits, or may have to.
    pub(in crate::run::driver) fn run(&self) -> RunId {
        self.run
    }

    /// The run whose turn it is, if it is not this one's; `next` is the first in line.
    pub(in crate::run::driver) fn before(&self, next: Option<RunId>) -> Option<RunId> {
        next.filter(|next| *next != self.run)
    }

    pub(in crate::run::driver) fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// A write that takes a place is about to be sent. From here on it is given up when the run goes
    /// away, whether or not the answer came.
    pub(in crate::run::driver) fn expect_place(&mut self) {
        if self.place.is_none() {
            self.place = Some(Ticket {
                _waits: live::QueuedRun::on(&self.home.store, self.run),
                runtime: Handle::current(),
            });
        }
    }

    /// The store has no place of this run: it began, or never took one.
    pub(in crate::run::driver) fn has_none(&mut self) {
        self.place = None;
    }

    /// Take the last place, or make sure that the one it has is still there: the store lets others
    /// pass a process whose lease has lapsed.
    pub(in crate::run::driver) async fn keep_place(&mut self) -> Result<()> {
        let ScopedStore { store, scope, .. } = &self.home.clone();
        if self.has_place() {
            let line = store.line(scope, &self.thread).await?;
            if line.iter().any(|waiter| waiter.run == self.run) {
                return Ok(());
            }
        }
        self.expect_place();
        let (home, thread, run) = (&self.home, &self.thread, self.run);
        let taken = home.sure(|| home.store.line_up(&home.scope, thread, run));
        taken.await.map(drop)
    }

    /// Wait until what is in the way may have gone. `false` if the run was cancelled meanwhile.
    pub(in crate::run::driver) async fn wait(&self, job: &Job, in_the_way: RunId) -> bool {
        let over = live::over(&self.home.store, in_the_way);
        let gone = async {
            match over {
                Some(over) => over.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = job.cancel.cancelled() => false,
            () = gone => true,
            () = tokio::time::sleep(LOOK_AGAIN) => true,
        }
    }

    /// Give up the place, if there is one.
    pub(in crate::run::driver) async fn leave(&mut self) {
        let Some(place) = &self.place else {
            return;
        };
        let runtime = place.runtime.clone();
        let leaving = self.leaving();
        // Dropping this future in the middle leaves the place to `drop`.
        let left = leaving.once().await;
        self.place = None;
        if left.is_err_and(|error| is_open(&error)) {
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

/// What it takes to give up a place.
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
        let leave = home.sure(|| home.store.leave_line(&home.scope, thread, *run));
        leave.await
    }

    /// Others wait behind the place for as long as this process lives.
    async fn until_done(self) {
        while self.once().await.is_err_and(|error| is_open(&error)) {
            tokio::time::sleep(LEAVE_AGAIN).await;
        }
    }
}

/// Whether sending again can help.
fn is_open(error: &Error) -> bool {
    match error {
        Error::Closed => false,
        Error::Locked | Error::Full => true,
        error => error.kind() == ErrorKind::Unavailable,
    }
}
