//! Looks in the store, about once a second, whether another process asked to cancel a run.
//!
//! Setting a timer wakes the worker thread that sleeps until the next one, which would be the largest
//! cost of a short run. So runs share timers. There are a few of them, so that not all runs read the
//! store at the same moment.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use throughline_store::RunId;
use tokio::runtime::{Handle, Id};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::thread::ScopedStore;

/// How often a long run looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Over how many timers runs are spread.
const SPREAD: u8 = 8;

/// How many timers are kept. Runtimes come and go in tests, and each has its own.
const KEPT: usize = 4_096;

type Timer = Shared<Pin<Box<dyn Future<Output = ()> + Send>>>;

/// Timers and when they fire, by runtime and number.
type Timers = HashMap<(Id, u8), (Instant, Timer)>;

static TIMERS: LazyLock<Mutex<Timers>> = LazyLock::new(Mutex::default);

/// Cancel a run when another process has asked for that. It never ends.
pub(crate) fn cancel_when_asked(
    run: RunId,
    home: &ScopedStore,
    cancel: &CancellationToken,
) -> impl Future<Output = Infallible> + Send + use<> {
    let (home, cancel) = (home.clone(), cancel.clone());
    async move {
        while !cancel.is_cancelled() {
            next_poll(run).await;
            let asked = home.store.cancelling(&home.scope, run).await;
            if asked.is_ok_and(|asked| asked) {
                cancel.cancel();
            }
        }
        std::future::pending().await
    }
}

/// Wait until it is time for a run to look.
async fn next_poll(run: RunId) {
    let now = Instant::now();
    let [.., last] = run.as_bytes();
    let key = (Handle::current().id(), last % SPREAD);
    let timer = {
        let mut timers = TIMERS.lock().unwrap_or_else(PoisonError::into_inner);
        if timers.len() > KEPT {
            timers.clear();
        }
        let known = timers.get(&key).filter(|(due, _)| *due > now);
        match known {
            Some((_, timer)) => timer.clone(),
            None => {
                let due = now + PAUSE;
                let timer: Timer = tokio::time::sleep_until(due).boxed().shared();
                timers.insert(key, (due, timer.clone()));
                timer
            }
        }
    };
    timer.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn runs_share_timers_and_each_looks_again_and_again() {
        let runs: Vec<RunId> = (0..32).map(|last| RunId::from_bytes([last; 16])).collect();
        let begun = Instant::now();
        let looks = runs.iter().map(|run| async move {
            for _ in 0..3 {
                next_poll(*run).await;
            }
            Instant::now()
        });
        for over in futures_util::future::join_all(looks).await {
            assert_eq!(over - begun, 3 * PAUSE);
        }
        let id = Handle::current().id();
        let timers = TIMERS.lock().unwrap_or_else(PoisonError::into_inner);
        let own = timers.keys().filter(|(runtime, _)| *runtime == id);
        assert_eq!(own.count(), usize::from(SPREAD));
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_run_waits_for_the_same_timer() {
        let run = RunId::from_bytes([1; 16]);
        let begun = Instant::now();
        let first = tokio::spawn(next_poll(run));
        tokio::time::sleep(PAUSE / 4).await;
        // The run that set the timer is gone by then.
        first.abort();
        next_poll(run).await;
        assert_eq!(Instant::now() - begun, PAUSE);
        // A timer that fired while no run waited for it is not used again.
        drop(tokio::time::timeout(PAUSE / 4, next_poll(run)).await);
        tokio::time::sleep(2 * PAUSE).await;
        let begun = Instant::now();
        next_poll(run).await;
        assert_eq!(Instant::now() - begun, PAUSE);
    }
}
