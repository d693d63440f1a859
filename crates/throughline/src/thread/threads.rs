//! The threads of a store.

use throughline_model::tokens;
use throughline_store::{
    Answer, Approval, ApprovalFilter, ApprovalId, At, Decision, Error, Fork, Leasing, Listing,
    NewThread, PageToken, Result, Run, RunId, RunState, State, Store, TenantScope, ThreadFilter,
    ThreadId,
};

use super::cache::HistoryCache;
use super::handle::{Position, Seed, Thread};
use super::home::ScopedStore;
use super::owner::{Owner, ThreadSettings};
use super::policy::Persistence;

/// How many threads or approvals a page has.
const PAGE: usize = 100;

/// The threads of a store: makes, opens, forks, lists and deletes them.
///
/// ```
/// use throughline::{Agent, Demo, Threads};
/// use throughline::store::Store;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let threads = Threads::of(&Store::open("memory:").await?);
/// let agent = Agent::builder(Demo::new()).build()?;
/// let thread = threads.new_thread();
/// agent.run_on(&thread, "The tide is at four.").await?;
///
/// // Elsewhere, by its id: history, state and a waiting run in one round trip.
/// let again = threads.open(thread.id().clone()).await?;
/// assert_eq!(again.history().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Threads {
    home: ScopedStore,
}

/// A copy that a vendor has of a deleted thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorCopy {
    /// The upstream that keeps it.
    pub upstream: String,
    /// The sub-agent it belongs to; empty for the thread's own.
    pub agent: String,
    /// The vendor's id of it.
    pub id: String,
}

/// What became of a deleted thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Copies that stay with vendors: deleting here does not reach them. `docs/services.md` says
    /// how each vendor deletes.
    pub vendor_copies: Vec<VendorCopy>,
}

/// Why an owner cannot be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// A run is at work, parked or unfinished.
    #[error("{run} on thread {thread} is {}; settle it first, then change who owns the history", state.as_str())]
    Unsettled {
        /// The thread.
        thread: ThreadId,
        /// The run.
        run: RunId,
        /// Where it stands.
        state: RunState,
    },
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Threads {
    /// The threads of a store that a process has to itself: tenant `local`.
    pub fn of(store: &Store) -> Self {
        Self::scoped(store, TenantScope::local())
    }

    /// The threads of a tenant.
    pub fn scoped(store: &Store, scope: TenantScope) -> Self {
        Self {
            home: ScopedStore {
                store: store.clone(),
                scope,
                views: None,
            },
        }
    }

    /// The threads of the store that a thread is in.
    pub(super) fn at(home: ScopedStore) -> Self {
        Self { home }
    }

    /// With views that outlive the handles on threads.
    #[must_use]
    pub fn with_history_cache(mut self, views: HistoryCache) -> Self {
        self.home.views = Some(views);
        self
    }

    pub(super) fn home(&self) -> &ScopedStore {
        &self.home
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.home.store
    }

    /// The tenant.
    pub fn scope(&self) -> &TenantScope {
        &self.home.scope
    }

    /// A new thread with an id of its own. It is stored when something is said on it.
    pub fn new_thread(&self) -> Thread {
        self.make(NewThread::new(self.home.store.ids().thread()))
    }

    /// A new thread with an id, aliases, a title as the caller wants. It is stored when something
    /// is said on it; if its id is taken by then, what is said goes on there.
    pub fn make(&self, thread: NewThread) -> Thread {
        self.made(thread, Leasing::Thread)
    }

    /// A new thread whose runs take no lease, see [`Threads::open_after`].
    pub fn make_free(&self, thread: NewThread) -> Thread {
        self.made(thread, Leasing::Free)
    }

    fn made(&self, thread: NewThread, leasing: Leasing) -> Thread {
        let seed = Seed {
            thread,
            messages: Vec::new(),
            state: State::default(),
            leasing,
        };
        Thread::made(self.home.clone(), false, seed)
    }

    /// Open a thread by its id or an alias, to go on at its head; or by a node or a run (a response
    /// id), to go on there. One round trip.
    pub async fn open(&self, at: impl Into<At>) -> Result<Thread> {
        let at = at.into();
        let ScopedStore {
            store,
            scope,
            views,
        } = &self.home;
        // What is in memory is not read again.
        let window = match (&at, views) {
            (At::Node(node), Some(views)) if views.has(node.run()) => 0,
            _ => usize::MAX,
        };
        let opened = store.open(scope, &at, window).await?;
        let thread = Thread::opened(self.home.clone(), &at, opened, window > 0)?;
        thread.shared.find_pending().await?;
        Ok(thread)
    }

    /// Open what a run left, to go on from there. Runs on it take no lease and wait for nobody: what
    /// they publish becomes the head if that is still where they began, and a branch if not.
    ///
    /// A run that failed left its journal: the next run begins with what was said in it, closed. One
    /// that has not ended is [`NotFinal`](Error::NotFinal).
    pub async fn open_after(&self, run: RunId) -> Result<Thread> {
        match self.open(run).await {
            Err(Error::NotFinal {
                state: RunState::Failed,
                ..
            }) => {}
            opened => return opened,
        }
        let ScopedStore { store, scope, .. } = &self.home;
        let failed = store.run(scope, run).await?;
        let thread = match failed.base {
            Some(node) => self.open(node).await?,
            // It was the first, and its thread has nothing: what it said opens another.
            None => self.make_free(NewThread::new(store.ids().thread())),
        };
        thread.shared.after_failed(run);
        Ok(thread)
    }

    /// The same, for somebody who begins a run at once: what is in memory, see
    /// [`Threads::with_history_cache`], is not read before. Whether it is still there and as it was is seen by
    /// the run that begins, which reads it again if not. Until then the handle shows what is
    /// remembered; [`Thread::refresh`] reads it.
    pub async fn after(&self, run: RunId) -> Result<Thread> {
        match Thread::remembered(&self.home, run) {
            Some(thread) => Ok(thread),
            None => self.open_after(run).await,
        }
    }

    /// Open the place where a run works.
    pub(crate) async fn open_run(&self, run: &Run) -> Result<Thread> {
        match (run.leased, run.published.or(run.base)) {
            (false, Some(node)) => self.open(node).await,
            _ => self.open(run.thread.clone()).await,
        }
    }

    /// Open a thread, or make it. Whoever comes second opens what the first one made.
    ///
    /// ```
    /// use throughline::store::{NewThread, Store, ThreadId};
    /// use throughline::Threads;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let threads = Threads::of(&Store::open("memory:").await?);
    /// let new = NewThread::new(ThreadId::new("ticket-4711")?);
    /// assert!(threads.open(new.id.clone()).await.is_err());
    /// threads.open_or_create(new.clone()).await?;
    /// assert_eq!(threads.open_or_create(new).await?.id().as_str(), "ticket-4711");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open_or_create(&self, thread: NewThread) -> Result<Thread> {
        let ScopedStore { store, scope, .. } = &self.home;
        let opened = store.open_or_create(scope, &thread, usize::MAX).await?;
        let thread = Thread::opened(self.home.clone(), &At::Thread(thread.id), opened, true)?;
        thread.shared.find_pending().await?;
        Ok(thread)
    }

    /// A new thread that goes on from any place of another. It shares everything up to there.
    ///
    /// ```
    /// use throughline::store::{NewThread, Store, ThreadId};
    /// use throughline::{Agent, Demo, Threads};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let threads = Threads::of(&Store::open("memory:").await?);
    /// let agent = Agent::builder(Demo::new()).threads(&threads).build()?;
    /// let thread = agent.new_thread();
    /// let first = agent.run_on(&thread, "The tide is at four.").await?;
    /// agent.run_on(&thread, "What did I say first?").await?;
    ///
    /// let new = NewThread::new(ThreadId::new("what-if")?);
    /// let fork = threads.fork(first.run, new).await?;
    /// assert_eq!((fork.history().len(), thread.history().len()), (2, 4));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fork(&self, from: impl Into<At>, mut thread: NewThread) -> Result<Thread> {
        let ScopedStore { store, scope, .. } = &self.home;
        let from = from.into();
        if thread.settings.is_none() {
            let origin = store.open(scope, &from, 0).await?;
            thread.settings = origin.thread.settings;
        }
        let id = thread.id.clone();
        store.fork(scope, &Fork { from, thread }).await?;
        self.open(id).await
    }

    /// List threads, last touched first.
    pub async fn list(
        &self,
        filter: &ThreadFilter,
        after: Option<PageToken>,
    ) -> Result<Listing<throughline_store::Thread>> {
        let ScopedStore { store, scope, .. } = &self.home;
        store.threads(scope, filter, after, PAGE).await
    }

    /// Delete a thread. What vendors keep of it stays with them, and is named. Deleting again
    /// changes nothing.
    ///
    /// ```
    /// use throughline::store::Store;
    /// use throughline::{Agent, Demo, Threads};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let threads = Threads::of(&Store::open("memory:").await?);
    /// let agent = Agent::builder(Demo::new()).threads(&threads).build()?;
    /// let thread = agent.new_thread();
    /// agent.run_on(&thread, "The tide is at four.").await?;
    /// assert!(threads.delete(thread.id()).await?.vendor_copies.is_empty());
    /// assert!(threads.open(thread.id().clone()).await.is_err());
    /// threads.delete(thread.id()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete(&self, thread: &ThreadId) -> Result<Deleted> {
        let ScopedStore { store, scope, .. } = &self.home;
        let opened = match store.open(scope, &At::Thread(thread.clone()), 0).await {
            Ok(opened) => opened,
            Err(Error::NotFound { .. }) => return Ok(Deleted::default()),
            Err(error) => return Err(error),
        };
        store.delete(scope, thread).await?;
        let copies = opened.state.services().iter();
        Ok(Deleted {
            vendor_copies: copies
                .map(|service| VendorCopy {
                    upstream: service.upstream.clone(),
                    agent: service.agent.clone(),
                    id: service.id.clone(),
                })
                .collect(),
        })
    }

    /// Approvals that were asked for, newest first.
    pub async fn approvals(
        &self,
        filter: &ApprovalFilter,
        after: Option<PageToken>,
    ) -> Result<Listing<Approval>> {
        let ScopedStore { store, scope, .. } = &self.home;
        store.approvals(scope, filter, after, PAGE).await
    }

    /// Answer an approval. The tool runs when the run goes on: [`Agent::resume`](crate::Agent::resume).
    pub async fn answer(&self, answer: &Answer) -> Result<Approval> {
        let ScopedStore { store, scope, .. } = &self.home;
        self.home.sure(|| store.answer(scope, answer)).await
    }

    /// Answer an approval as it was shown.
    pub async fn decide(
        &self,
        approval: &Approval,
        decision: Decision,
        by: &str,
        reason: Option<&str>,
    ) -> Result<Approval> {
        let reason = reason.filter(|reason| !reason.trim().is_empty());
        self.answer(&Answer {
            approval: approval.id,
            shown: approval.shown,
            decision,
            by: by.to_owned(),
            reason: reason.map(str::to_owned),
        })
        .await
    }

    /// An approval by its id.
    pub async fn approval(&self, id: ApprovalId) -> Result<Approval> {
        let mut after = None;
        loop {
            let page = self.approvals(&ApprovalFilter::default(), after).await?;
            if let Some(found) = page.found.into_iter().find(|one| one.id == id) {
                return Ok(found);
            }
            after = match page.next {
                Some(next) => Some(next),
                None => {
                    return Err(Error::NotFound {
                        what: "approval",
                        id: id.to_string(),
                    });
                }
            };
        }
    }
}

impl Thread {
    /// Read again what others may have changed.
    ///
    /// ```
    /// use throughline::store::Store;
    /// use throughline::{Agent, Demo, Threads};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let threads = Threads::of(&Store::open("memory:").await?);
    /// let agent = Agent::builder(Demo::new()).threads(&threads).build()?;
    /// let here = agent.new_thread();
    /// agent.run_on(&here, "The tide is at four.").await?;
    /// let elsewhere = threads.open(here.id().clone()).await?;
    /// agent.run_on(&elsewhere, "What did I say first?").await?;
    ///
    /// assert_eq!(here.history().len(), 2);
    /// here.refresh().await?;
    /// assert_eq!(here.history().len(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refresh(&self) -> Result<()> {
        if self.shared.is_new() {
            return Ok(());
        }
        self.shared.forget_found();
        let loaded = self.shared.load().await?;
        let pending = self.shared.waiting(loaded.found.as_deref()).await?;
        self.shared.show(loaded, pending);
        Ok(())
    }

    /// Tokens of its history as the store has it: what each item was counted as when it entered,
    /// added up. One small read, however long the history is.
    ///
    /// Counts are estimates that hold for every vendor alike, see
    /// [`tokens`](crate::model::tokens). Compaction does not change them: it changes what a model is
    /// shown, not what is stored. A fork has what it shares with its origin in its total.
    ///
    /// ```
    /// use throughline::{Agent, Demo, Thread};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(Demo::new()).build()?;
    /// let thread = Thread::new();
    /// assert_eq!(thread.tokens().await?, 0);
    /// agent.run_on(&thread, "The tide is at four.").await?;
    /// assert!(thread.tokens().await? > 10);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn tokens(&self) -> Result<u64> {
        let at = match self.shared.place() {
            Position::New(seed) => {
                let counts = seed.messages.iter().map(tokens::units);
                return Ok(counts.map(u64::from).sum());
            }
            Position::Head => At::Thread(self.shared.id.clone()),
            Position::Node(node) => At::from(node),
        };
        let ScopedStore { store, scope, .. } = &self.shared.home;
        let tip = store.open(scope, &at, 0).await?.tip;
        Ok(tip.map_or(0, |tip| tip.tokens))
    }

    /// Hand the history over to another owner. Refused while a run is at work, parked or
    /// unfinished.
    ///
    /// To a service: the next call sends the whole view once, then only what is new. From a service
    /// to us: the view is the record of all that went through us.
    ///
    /// ```
    /// use throughline::model::json::RawJson;
    /// use throughline::thread::Owner;
    /// use throughline::Thread;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let thread = Thread::new();
    /// assert_eq!(thread.owner(), Owner::Local);
    /// let crm = Owner::External {
    ///     store: "crm".to_owned(),
    ///     key: RawJson::new(r#"{"case":4711}"#)?,
    /// };
    /// thread.set_owner(crm.clone()).await?;
    /// assert_eq!(thread.owner(), crm);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_owner(&self, owner: Owner) -> Result<(), OwnerError> {
        let mut settings = self.shared.settings();
        settings.owner = owner;
        self.change(settings).await
    }

    /// When runs on this thread move its history, whatever their agents say. A run that has begun
    /// ends in the mode it began with; `None` leaves it to the agents again.
    ///
    /// ```
    /// use throughline::thread::Persistence;
    /// use throughline::{Agent, Demo, Thread};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(Demo::new()).build()?;
    /// let thread = Thread::new();
    /// // Here every model call is history as soon as it is answered.
    /// thread.set_persistence(Some(Persistence::PerCall)).await?;
    /// agent.run_on(&thread, "The tide is at four.").await?;
    /// assert_eq!(thread.history().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_persistence(&self, persistence: Option<Persistence>) -> Result<()> {
        let mut settings = self.shared.settings();
        settings.persistence = persistence;
        if self.shared.change_seed(&settings) {
            return Ok(());
        }
        self.shared.write_settings(settings).await
    }

    async fn change(&self, settings: ThreadSettings) -> Result<(), OwnerError> {
        if self.shared.change_seed(&settings) {
            return Ok(());
        }
        let ScopedStore { store, scope, .. } = &self.shared.home;
        let at = At::Thread(self.shared.id.clone());
        let opened = store.open(scope, &at, 0).await?;
        if let Some(run) = opened.unsettled {
            return Err(OwnerError::Unsettled {
                thread: run.thread,
                run: run.id,
                state: run.state,
            });
        }
        Ok(self.shared.write_settings(settings).await?)
    }
}
