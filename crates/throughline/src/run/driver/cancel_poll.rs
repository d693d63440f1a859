//! Looking for something from time to time, for many runs at once.
//!
//! A timer of its own for each run would be the most expensive thing about a short one: setting it
//! wakes whoever sleeps for all timers, for a moment that hardly any run lives to see. So runs share
//! timers, and spread over a few, so that they do not all look in one moment.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use throughline_store::RunId;
use tokio::runtime::{Handle, Id};
use tokio::time::Instant;

/// How often a run that takes long looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Over how many timers runs are spread.
const SPREAD: u8 = 8;

/// Runtimes come and go in tests; what is kept of more than this is forgotten.
const KEPT: usize = 4_096;

type Timer = Shared<Pin<Box<dyn Future<Output = ()> + Send>>>;

/// By the runtime that keeps their time, and which of them. With each, when it rings.
type Timers = HashMap<(Id, u8), (Instant, Timer)>;

static TIMERS: LazyLock<Mutex<Timers>> = LazyLock::new(Mutex::default);

/// Wait until it is time for a run to look.
pub(super) async fn time_to_look(run: RunId) {
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
                time_to_look(*run).await;
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
    async fn one_that_comes_later_waits_for_the_same_moment() {
        let run = RunId::from_bytes([1; 16]);
        let begun = Instant::now();
        let first = tokio::spawn(time_to_look(run));
        tokio::time::sleep(PAUSE / 4).await;
        // Whoever set the timer may be gone by then.
        first.abort();
        time_to_look(run).await;
        assert_eq!(Instant::now() - begun, PAUSE);
        // And one that nobody saw is over.
        drop(tokio::time::timeout(PAUSE / 4, time_to_look(run)).await);
        tokio::time::sleep(2 * PAUSE).await;
        let begun = Instant::now();
        time_to_look(run).await;
        assert_eq!(Instant::now() - begun, PAUSE);
    }
}
