//! The handle that the layers above hold.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{CallResult, Claim, End, Engine, Ids, Result, Run, RunId, Stopped, TenantScope};

/// A store: an engine, and a source of ids. Cheap to clone.
///
/// ```
/// use throughline_model::Message;
/// use throughline_store::{Append, At, NewItem, NewThread, Store, TenantScope, ThreadId};
/// # fn block_on<F: Future>(future: F) -> F::Output { tokio_test(future) }
/// # fn tokio_test<F: Future>(future: F) -> F::Output {
/// #     let waker = std::task::Waker::noop();
/// #     let mut future = std::pin::pin!(future);
/// #     loop {
/// #         let mut cx = std::task::Context::from_waker(waker);
/// #         if let std::task::Poll::Ready(done) = future.as_mut().poll(&mut cx) { return done; }
/// #         std::thread::yield_now();
/// #     }
/// # }
/// # block_on(async {
/// let store = Store::open("memory:").await?;
/// let scope = TenantScope::local();
/// let thread = ThreadId::new("ticket-4711").unwrap();
/// let opened = store.open_or_create(&scope, &NewThread::new(thread.clone()), 50).await?;
/// let append = Append {
///     run: store.ids().run(),
///     thread: thread.clone(),
///     expected: Some(opened.thread.version),
///     items: NewItem::of(&[Message::user("hello")]),
///     state: None,
///     key: None,
/// };
/// store.append(&scope, &append).await?;
/// let again = store.open(&scope, &At::Thread(thread), 50).await?;
/// assert_eq!(again.entries[0].message.text(), "hello");
/// # Ok::<(), throughline_store::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    ids: Arc<Ids>,
    unwritten: Arc<Mutex<Unwritten>>,
}

/// Results of calls that ran and could not be written, by run.
type Unwritten = HashMap<RunId, Vec<CallResult>>;

impl Store {
    /// A store on an engine of one's own.
    pub fn on(engine: Arc<dyn Engine>, ids: Arc<Ids>) -> Self {
        Self {
            engine,
            ids,
            unwritten: Arc::default(),
        }
    }

    /// Where new ids come from.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Keep results that could not be written, because the disk is full or the store is away. They
    /// live as long as this handle and its clones; [`Store::unwritten`] gives them back to the worker
    /// that resumes the run in this process.
    pub fn keep_unwritten(&self, run: RunId, results: Vec<CallResult>) {
        let mut unwritten = self.lock_unwritten();
        let kept = unwritten.entry(run).or_default();
        for result in results {
            let place = (result.step, result.position);
            if !kept.iter().any(|one| (one.step, one.position) == place) {
                kept.push(result);
            }
        }
    }

    /// The results of a run that could not be written, by step and position.
    pub fn unwritten(&self, run: RunId) -> Vec<CallResult> {
        let mut kept = self.lock_unwritten().get(&run).cloned().unwrap_or_default();
        kept.sort_by_key(|result| (result.step, result.position));
        kept
    }

    /// The results of a run are written, or its end is known.
    pub fn forget_unwritten(&self, run: RunId) {
        self.lock_unwritten().remove(&run);
    }

    fn lock_unwritten(&self) -> MutexGuard<'_, Unwritten> {
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Discard a run: claim it as it was seen, and end it without publishing. What it published
    /// before stays; its waiting approvals are withdrawn, and what it has not taken from the
    /// thread's queue stays there.
    ///
    /// [`Busy`](crate::Error::Busy) while its owner lives ([`Claim::Own`] if that is this process, and the
    /// caller knows that nothing here works on it), [`WrongState`](crate::Error::WrongState) once it is
    /// settled, [`Fenced`](crate::Error::Fenced) if it was claimed since it was seen. Two writes: if the
    /// second one fails, the run belongs to this process and can be discarded with `Claim::Own`.
    pub async fn discard_run(&self, scope: &TenantScope, seen: &Run, claim: Claim) -> Result<()> {
        let started = self.claim(scope, seen.id, seen.epoch, claim).await?;
        let end = End {
            how: Stopped::Discarded,
            note: seen.note.clone(),
            events: None,
        };
        self.end(scope, started.lease, &end).await
    }

    /// What it is on, for an engine that wraps another: both go to [`Store::on`].
    pub fn parts(&self) -> (Arc<dyn Engine>, Arc<Ids>) {
        (Arc::clone(&self.engine), Arc::clone(&self.ids))
    }
}

impl Deref for Store {
    type Target = dyn Engine;

    fn deref(&self) -> &Self::Target {
        &*self.engine
    }
}
