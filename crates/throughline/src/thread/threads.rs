//! The threads of a store.

use throughline_model::{Message, tokens};
use throughline_store::{
    Answer, Append, Approval, ApprovalFilter, ApprovalId, At, Decision, Error, Fork, ItemRef,
    Leasing, Listing, NewItem, NewThread, PageToken, Result, Run, RunId, RunState, State, Store,
    TenantScope, ThreadFilter, ThreadId,
};

use super::cache::HistoryCache;
use super::handle::{Position, Seed, Thread};
use super::live;
use super::owner::{Owner, ThreadSettings};
use super::policy::Persistence;
use super::scoped_store::ScopedStore;
use super::service_state::note_service;
use super::vendor_copies::Deleted;

/// How many threads or approvals a page has.
const PAGE: usize = 100;

/// The threads of a store: creates, opens, forks, lists and deletes them.
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
/// // Elsewhere, by its id: history, state and an unfinished run in one round trip.
/// let again = threads.open(thread.id().clone()).await?;
/// assert_eq!(again.history().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Threads {
    home: ScopedStore,
}

/// Why the owner of a history cannot be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// A run on the thread is running, parked or interrupted.
    #[error("{run} on thread {thread} is {}; settle it first, then change who owns the history", state.as_str())]
    Unsettled {
        /// The thread.
        thread: ThreadId,
        /// The run.
        run: RunId,
        /// The state of the run.
        state: RunState,
    },
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Threads {
    /// The threads of tenant `local`, for stores with a single user.
    pub fn of(store: &Store) -> Self {
        Self::scoped(store, TenantScope::local())
    }

    /// The threads of a tenant.
    pub fn scoped(store: &Store, scope: TenantScope) -> Self {
        Self {
            home: ScopedStore {
                store: store.clone(),
                scope,
                history_cache: None,
            },
        }
    }

    /// The threads of a thread's store.
    pub(super) fn at(home: ScopedStore) -> Self {
        Self { home }
    }

    /// Sets a history cache, which outlives the handles on threads.
    #[must_use]
    pub fn with_history_cache(mut self, history_cache: HistoryCache) -> Self {
        self.home.history_cache = Some(history_cache);
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

    /// A new thread with a generated id. It is stored with its first run.
    pub fn new_thread(&self) -> Thread {
        self.make(NewThread::new(self.home.store.ids().thread()))
    }

    /// A new thread with an id, aliases and a title of the caller's choice. It is stored with its
    /// first run; if the id is taken by then, the run continues that thread.
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

    /// Opens a thread in one round trip: by its id or an alias to continue at its head, or by a
    /// node or a run (a response id) to continue there.
    pub async fn open(&self, at: impl Into<At>) -> Result<Thread> {
        let at = at.into();
        let ScopedStore {
            store,
            scope,
            history_cache,
        } = &self.home;
        // A cached history is not read again. Which node a thread continues from is not known
        // before it was read.
        let window = match (&at, history_cache) {
            (At::Node(node), Some(history_cache)) if history_cache.has(node.run()) => 0,
            (At::Thread(_) | At::Alias(_), Some(history_cache)) if !history_cache.is_empty() => 0,
            _ => usize::MAX,
        };
        let mut opened = store.open(scope, &at, window).await?;
        let cached = match (history_cache, opened.tip) {
            (Some(history_cache), Some(tip)) if window == 0 => {
                let held = history_cache.take(tip.node);
                held.filter(|held| held.view.redactions() == opened.redactions)
            }
            _ => None,
        };
        if window == 0 && opened.tip.is_some() && cached.is_none() {
            opened = store.open(scope, &at, usize::MAX).await?;
        }
        let thread = Thread::opened(self.home.clone(), &at, opened, cached)?;
        thread.shared.find_pending().await?;
        Ok(thread)
    }

    /// Opens a thread after a run, to continue there. Runs on it take no lease and wait for no
    /// other run: the node that they publish becomes the head if that is still where they began,
    /// and else a branch.
    ///
    /// A failed run leaves its journal: the next run begins with its messages, closed. A run that
    /// has not ended is [`NotFinal`](Error::NotFinal).
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
            // It was the first run of its thread, which is empty: its messages begin another
            // thread.
            None => self.make_free(NewThread::new(store.ids().thread())),
        };
        thread.shared.after_failed(run);
        Ok(thread)
    }

    /// Like [`Threads::open_after`], for callers that begin a run at once: a cached node
    /// ([`Threads::with_history_cache`]) is not read. The begin of the run checks that the node
    /// still exists unchanged, and reads it again if not. Until then the handle shows the cached
    /// state; [`Thread::refresh`] reads it.
    pub async fn after(&self, run: RunId) -> Result<Thread> {
        match Thread::from_cache(&self.home, run) {
            Some(thread) => Ok(thread),
            None => self.open_after(run).await,
        }
    }

    /// Opens the thread at the node of a run.
    pub(crate) async fn open_run(&self, run: &Run) -> Result<Thread> {
        match (run.leased, run.published.or(run.base)) {
            (false, Some(node)) => self.open(node).await,
            _ => self.open(run.thread.clone()).await,
        }
    }

    /// Opens a thread, or creates it. Concurrent calls open the same thread.
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
        let thread = Thread::opened(self.home.clone(), &At::Thread(thread.id), opened, None)?;
        thread.shared.find_pending().await?;
        Ok(thread)
    }

    /// A new thread that continues from any point of another one. They share everything up to that
    /// point.
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

    /// Lists threads, the most recently used first.
    pub async fn list(
        &self,
        filter: &ThreadFilter,
        after: Option<PageToken>,
    ) -> Result<Listing<throughline_store::Thread>> {
        let ScopedStore { store, scope, .. } = &self.home;
        store.threads(scope, filter, after, PAGE).await
    }

    /// Deletes a thread. Copies at vendors remain and are listed. Deleting again changes nothing.
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
        let vendor_copies = self.vendor_copies(thread).await?;
        let ScopedStore { store, scope, .. } = &self.home;
        store.delete(scope, thread).await?;
        Ok(Deleted {
            is_deleted: true,
            vendor_copies,
        })
    }

    /// Asks for the end of a run, in whichever process it runs, and returns the run as it stands: it ends
    /// as soon as its worker notices, or when it is resumed. A run that has ended is returned as it is.
    ///
    /// ```
    /// use throughline::store::{RunState, Store};
    /// use throughline::{Agent, Demo, Threads};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let threads = Threads::of(&Store::open("memory:").await?);
    /// let agent = Agent::builder(Demo::new()).threads(&threads).build()?;
    /// let outcome = agent.run_on(&agent.new_thread(), "hello").await?;
    /// assert_eq!(threads.cancel_run(outcome.run).await?.state, RunState::Committed);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel_run(&self, run: RunId) -> Result<Run> {
        let ScopedStore { store, scope, .. } = &self.home;
        let found = self
            .home
            .retry_until_known(|| store.cancel(scope, run))
            .await?;
        if !found.state.is_settled() {
            live::cancel(store, run);
        }
        Ok(found)
    }

    /// Approvals, newest first.
    pub async fn approvals(
        &self,
        filter: &ApprovalFilter,
        after: Option<PageToken>,
    ) -> Result<Listing<Approval>> {
        let ScopedStore { store, scope, .. } = &self.home;
        store.approvals(scope, filter, after, PAGE).await
    }

    /// Answers an approval. The tool runs when the run is resumed:
    /// [`Agent::resume`](crate::Agent::resume).
    pub async fn answer(&self, answer: &Answer) -> Result<Approval> {
        let ScopedStore { store, scope, .. } = &self.home;
        self.home
            .retry_until_known(|| store.answer(scope, answer))
            .await
    }

    /// Answers an approval with the arguments that it showed.
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
    /// Reads the thread again, to see changes by other handles and processes.
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

    /// The tokens of the history in the store: the sum of the counts that each item got when it was
    /// stored. One small read, however long the history is.
    ///
    /// Counts are estimates that are the same for every vendor, see
    /// [`tokens`](crate::model::tokens). Compaction does not change them, because it does not
    /// change what is stored. The total of a fork includes what it shares with its origin.
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

    /// Hands the history over to another owner. Refused while a run is running, parked or
    /// interrupted.
    ///
    /// To a service: the next call sends the whole history once, later ones only what is new. From
    /// a service to our store: the history is the record of everything that went through us.
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

    /// Sets when runs on this thread move its history, overriding their agents. A run that has
    /// begun ends in the mode in which it began; `None` removes the override.
    ///
    /// ```
    /// use throughline::thread::Persistence;
    /// use throughline::{Agent, Demo, Thread};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(Demo::new()).build()?;
    /// let thread = Thread::new();
    /// // Here every model call becomes history as soon as it is answered.
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

    /// Adds the service of another upstream to those that keep the history, so that agents of
    /// several services take turns on the thread. On its turn, a service is sent what it has not
    /// seen. Returns false if the service is one of them already.
    ///
    /// A thread that no service keeps is handed over: the first call of the service sends the whole
    /// history. Refused while a run is running, parked or interrupted.
    ///
    /// ```
    /// use throughline::Thread;
    /// use throughline::thread::Owner;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let thread = Thread::new();
    /// thread.set_owner(Owner::service("openai")).await?;
    /// assert!(thread.add_service("foundry").await?);
    /// assert!(!thread.add_service("openai").await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn add_service(&self, upstream: &str) -> Result<bool, OwnerError> {
        let mut settings = self.shared.settings();
        let owner = match &settings.owner {
            Owner::Services(services) if services.contains(upstream) => return Ok(false),
            Owner::Services(services) => Owner::Services(services.clone().with(upstream)),
            Owner::Local | Owner::External { .. } => Owner::service(upstream),
        };
        settings.owner = owner;
        self.change(settings).await?;
        Ok(true)
    }

    async fn change(&self, settings: ThreadSettings) -> Result<(), OwnerError> {
        if self.shared.change_seed(&settings) {
            return Ok(());
        }
        self.check_settled().await?;
        Ok(self.shared.write_settings(settings).await?)
    }

    /// Refuse if a run on the thread is running, parked or interrupted.
    pub(crate) async fn check_settled(&self) -> Result<(), OwnerError> {
        if self.shared.is_new() {
            return Ok(());
        }
        let ScopedStore { store, scope, .. } = &self.shared.home;
        let at = At::Thread(self.shared.id.clone());
        let opened = store.open(scope, &at, 0).await?;
        match opened.unsettled {
            Some(run) => Err(OwnerError::Unsettled {
                thread: run.thread,
                run: run.id,
                state: run.state,
            }),
            None => Ok(()),
        }
    }

    /// Add messages that a service has more than our record, and note that it has them.
    pub(crate) async fn add_read_back(
        &self,
        mut messages: Vec<Message>,
        upstream: &str,
        id: &str,
    ) -> Result<()> {
        let ScopedStore { store, scope, .. } = &self.shared.home;
        let opened = store
            .open(scope, &At::Thread(self.shared.id.clone()), 0)
            .await?;
        let run = store.ids().run();
        let mut no = 1;
        for message in &mut messages {
            message.id = Some(ItemRef { run, no }.message_id());
            no += NewItem::of(std::slice::from_ref(message)).len() as u32;
        }
        let mut state = opened.state;
        let mut services = state.services().iter();
        let service = services.find(|one| one.upstream == upstream && one.id == id);
        if let (Some(service), Some(last)) = (service.cloned(), messages.last()) {
            note_service(service, last.id.as_ref(), &mut state);
        }
        let append = Append {
            run,
            thread: self.shared.id.clone(),
            expected: Some(opened.thread.version),
            items: NewItem::of(&messages),
            state: Some(state),
            key: None,
        };
        store.append(scope, &append).await?;
        self.refresh().await
    }
}
