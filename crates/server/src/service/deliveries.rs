//! Which answers were delivered, noted in the store in batches.
//!
//! A client that sends a request again after the server was started anew gets an old answer only if
//! that was not delivered. No turn waits for the note and none has a write of its own for it: what is
//! delivered in an interval is noted in one write for each tenant. A server that is killed before that
//! gives the answer once more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throughline_store::{RunId, Store, TenantScope};
use tokio::sync::Notify;

use super::Runs;
use super::repeats::{Delivery, ToNote};

/// How long deliveries wait for others.
const INTERVAL: Duration = Duration::from_millis(500);

/// How many runs one write notes at most: other writers wait no longer than that.
const BATCH: usize = 500;

/// How many deliveries are kept while the store takes none.
const MAX_WAITING: usize = 16_384;

/// Deliveries that are still to be noted.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    waiting: Mutex<Vec<Delivery>>,
    added: Notify,
    /// Whether the store did not take the last ones, which is logged once.
    is_failing: AtomicBool,
}

impl Deliveries {
    fn waiting(&self) -> MutexGuard<'_, Vec<Delivery>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer was written whole.
    pub(super) fn add(&self, delivery: Delivery) {
        self.keep([delivery]);
        self.added.notify_one();
    }

    fn keep(&self, deliveries: impl IntoIterator<Item = Delivery>) {
        let mut waiting = self.waiting();
        waiting.extend(deliveries);
        let over = waiting.len().saturating_sub(MAX_WAITING);
        waiting.drain(..over);
    }

    /// Wait until there are some.
    async fn wait(&self) {
        while self.waiting().is_empty() {
            self.added.notified().await;
        }
    }

    /// Note all that wait. What the store does not take waits on.
    pub(crate) async fn note(&self, store: &Store) {
        let mut batches: HashMap<TenantScope, Vec<(RunId, Delivery)>> = HashMap::new();
        // Not in the head of the loop, where the lock would be held to its end.
        let waiting = std::mem::take(&mut *self.waiting());
        for delivery in waiting {
            // A client that disconnected gets the answer again when it retries; that attempt is added
            // when its answer was written.
            match delivery.to_note() {
                ToNote::Nothing => {}
                ToNote::Later => self.keep([delivery.clone()]),
                ToNote::Now(scope, run) => {
                    let batch = batches.entry(scope.clone()).or_default();
                    batch.push((run, delivery.clone()));
                }
            }
        }
        for (scope, batch) in &batches {
            for batch in batch.chunks(BATCH) {
                let runs: Vec<RunId> = batch.iter().map(|(run, _)| *run).collect();
                let noted = store.note_delivered(scope, &runs).await;
                let is_failing = noted.is_err();
                let was_failing = self.is_failing.swap(is_failing, Ordering::Relaxed);
                if let Err(error) = noted {
                    self.keep(batch.iter().map(|(_, delivery)| delivery.clone()));
                    if !was_failing {
                        tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "which answers were delivered cannot be noted now"
                        );
                    }
                }
            }
        }
    }
}

/// Note deliveries now and then, until the server drains. Those after that are noted when it ends.
pub(crate) async fn note_deliveries(runs: Arc<Runs>) {
    let deliveries = &runs.deliveries;
    loop {
        let some = async {
            deliveries.wait().await;
            tokio::time::sleep(INTERVAL).await;
        };
        tokio::select! {
            () = runs.stopping.draining() => return,
            () = some => {}
        }
        deliveries.note(&runs.store).await;
    }
}

#[cfg(test)]
mod tests {
    use throughline_store::{Anchor, Begin, NewItem, NewThread};

    use super::*;
    use crate::service::repeats::{ClientConnection, ProcessRepeats, Repeats as _};

    async fn begun(store: &Store, scope: &TenantScope) -> RunId {
        let run = store.ids().run();
        let at = Anchor::New {
            thread: NewThread::new(store.ids().thread()),
            leasing: throughline_store::Leasing::Free,
        };
        let said = NewItem::of(&[throughline_model::Message::user("hi")]);
        store
            .begin(scope, &Begin::new(run, at, said))
            .await
            .unwrap();
        run
    }

    /// A connection that is still writing, until it is told otherwise.
    #[derive(Debug, Default)]
    struct Writing(AtomicBool);

    #[async_trait::async_trait]
    impl ClientConnection for Writing {
        fn answer_ends(&self) {}

        fn is_sent(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }

        fn is_known_broken(&self) -> bool {
            false
        }

        async fn is_broken(&self) -> bool {
            !self.is_sent()
        }
    }

    #[tokio::test]
    async fn what_is_still_being_written_is_noted_later() {
        let store = Store::open("memory:").await.unwrap();
        let scope = TenantScope::local();
        let run = begun(&store, &scope).await;
        let deliveries = Arc::new(Deliveries::default());
        let repeats = ProcessRepeats::new(store.clone(), Arc::clone(&deliveries));
        let connection = Arc::new(Writing::default());
        let delivery = repeats.begun(&scope, [1; 16], run);
        let delivery = delivery.next_attempt(Some(connection.clone()));
        delivery.written();
        for sent in [false, true] {
            connection.0.store(sent, Ordering::SeqCst);
            deliveries.note(&store).await;
            assert_eq!(deliveries.waiting().is_empty(), sent);
            assert_eq!(store.run(&scope, run).await.unwrap().delivered, sent);
        }
    }

    #[tokio::test]
    async fn what_the_store_does_not_take_is_noted_later() {
        let store = Store::open("memory:").await.unwrap();
        let scope = TenantScope::local();
        let (told, left) = (begun(&store, &scope).await, begun(&store, &scope).await);
        let deliveries = Arc::new(Deliveries::default());
        let repeats = ProcessRepeats::new(store.clone(), Arc::clone(&deliveries));
        let first = repeats.begun(&scope, [1; 16], told).next_attempt(None);
        let second = repeats.begun(&scope, [2; 16], left).next_attempt(None);
        first.written();
        second.written();
        // It goes to another client now.
        let _third = second.clone().next_attempt(None);
        let closed = Store::open("memory:").await.unwrap();
        closed.close().await.unwrap();
        deliveries.note(&closed).await;
        assert_eq!(deliveries.waiting().len(), 1);
        deliveries.note(&store).await;
        assert!(deliveries.waiting().is_empty());
        for (run, delivered) in [(told, true), (left, false)] {
            let run = store.run(&scope, run).await.unwrap();
            assert_eq!(run.delivered, delivered);
        }
    }
}
