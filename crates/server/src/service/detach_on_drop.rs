//! A future that the request task drives, and that moves to a background task when it is dropped.

use std::pin::Pin;
use std::task::Poll;

use futures_util::future::poll_fn;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Work that the request task polls itself: a task of its own would cost a wake-up for each step.
/// When the client disconnects, hyper drops the request task; dropping this value then spawns the rest
/// of the work on `tracker`.
pub(crate) struct DetachOnDrop {
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    tracker: TaskTracker,
    runtime: Handle,
    _token: TaskTrackerToken,
}

impl DetachOnDrop {
    /// Work that is not begun. It must be made in a runtime.
    pub(crate) fn new(
        tracker: &TaskTracker,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self {
            work: Some(Box::pin(work)),
            tracker: tracker.clone(),
            runtime: Handle::current(),
            _token: tracker.token(),
        }
    }

    /// Work until something has come of it. Nothing else is waited for: when the work is over, it has.
    pub(crate) async fn drive_until<T>(
        &mut self,
        mut happened: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        poll_fn(|cx| {
            if let Some(work) = &mut self.work
                && work.as_mut().poll(cx).is_ready()
            {
                self.work = None;
            }
            match (happened(), &self.work) {
                (None, Some(_)) => Poll::Pending,
                (happened, _) => Poll::Ready(happened),
            }
        })
        .await
    }

    /// Go on with it in a task of its own.
    pub(crate) fn detach(self) {
        drop(self);
    }
}

impl Drop for DetachOnDrop {
    fn drop(&mut self) {
        // What panicked is not polled again.
        if let Some(work) = self.work.take()
            && !std::thread::panicking()
        {
            self.tracker.spawn_on(work, &self.runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::sync::Notify;
    use tokio_util::task::TaskTracker;

    use super::DetachOnDrop;

    /// Work of two steps, with a signal after each and a wait between them.
    fn steps(done: &Arc<AtomicU32>, go_on: &Arc<Notify>) -> impl Future<Output = ()> + use<> {
        let (done, go_on) = (Arc::clone(done), Arc::clone(go_on));
        async move {
            done.fetch_add(1, Ordering::SeqCst);
            go_on.notified().await;
            done.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn the_waiting_task_drives_it_and_dropping_it_spawns_the_rest() {
        let (done, go_on) = (Arc::default(), Arc::new(Notify::new()));
        let tracker = TaskTracker::new();
        tracker.close();
        let mut driven = DetachOnDrop::new(&tracker, steps(&done, &go_on));
        let waited =
            tokio::time::timeout(Duration::from_millis(1), driven.drive_until(|| None::<()>));
        assert!(waited.await.is_err(), "nothing happens that it waits for");
        assert_eq!(done.load(Ordering::SeqCst), 1);
        driven.detach();
        assert_eq!(tracker.len(), 1, "a server that stops waits for it");
        go_on.notify_one();
        tracker.wait().await;
        assert_eq!(done.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn what_is_over_needs_no_task() {
        let (done, go_on) = (Arc::default(), Arc::new(Notify::new()));
        let tracker = TaskTracker::new();
        tracker.close();
        let mut driven = DetachOnDrop::new(&tracker, steps(&done, &go_on));
        go_on.notify_one();
        let seen = driven.drive_until(|| (done.load(Ordering::SeqCst) == 2).then_some(7));
        assert_eq!(seen.await, Some(7));
        assert_eq!(driven.drive_until(|| None::<()>).await, None);
        drop(driven);
        assert_eq!(tracker.len(), 0);
    }
}
