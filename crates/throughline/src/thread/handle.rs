//! The handle on a thread of a store.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_store::{
    Append, At, DamageSite, Expects, Ids, Leasing, NewItem, NewThread, NodeId, Opened, Options,
    Result, Run, RunId, RunState, ServiceId, State, Store, SystemClock, TenantScope, ThreadId,
    Version,
};

use super::cache::{CachedHistory, MessageList};
use super::journal::{Calls, Pending};
use super::mailbox::{LeftCounter, Mailbox};
use super::opened_at::{CachedNode, End, OpenedAt};
use super::owner::{Owner, ThreadSettings};
use super::scoped_store::ScopedStore;
use crate::prompt::View;

/// A conversation: its id, and the point at which runs continue.
///
/// A thread of a shared store is just its id: any process that opens it gets the same history,
/// state and waiting run. A thread that was made with [`Thread::new`] has its own in-memory store,
/// which is dropped with it.
///
/// ```
/// use throughline::{Agent, Demo, Thread};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder(Demo::new()).build()?;
/// let thread = Thread::new();
/// agent.run_on(&thread, "The tide is at four.").await?;
/// agent.run_on(&thread, "What did I say first?").await?;
/// assert_eq!(thread.history().len(), 4);
/// # Ok(())
/// # }
/// ```
pub struct Thread {
    pub(super) shared: Arc<Shared>,
}

/// State that a thread's handle shares with its runs.
pub(crate) struct Shared {
    pub(crate) home: ScopedStore,
    pub(crate) id: ThreadId,
    /// Whether the store belongs to this handle alone.
    pub(super) private: bool,
    pub(super) left: LeftCounter,
    seen: Mutex<HandleState>,
}

/// What is known of the thread; always committed state.
struct HandleState {
    place: Position,
    /// The node that the history ends with.
    head: Option<NodeId>,
    /// A failed run whose journal the next run begins with.
    failed: Option<RunId>,
    /// The point that was read when the thread was opened, until a run uses it.
    found: Option<Box<OpenedAt>>,
    /// What the last read returned, unless a run has continued here since.
    looked: Option<LastRead>,
    /// A history and its renderings. Nodes never change, so it is valid as long as runs continue at
    /// its node.
    cached: Option<Cached>,
    shown: MessageList,
    pending: Vec<Pending>,
    state: State,
    settings: ThreadSettings,
    /// The stored form of the settings.
    stored: Option<RawJson>,
}

/// What a read of the thread returned.
#[derive(Clone)]
pub(crate) struct LastRead {
    pub(crate) version: Version,
    pub(crate) unsettled: Option<Run>,
}

impl LastRead {
    fn at(found: &OpenedAt) -> Self {
        Self {
            version: found.version,
            unsettled: found.unsettled.clone(),
        }
    }
}

/// Where runs continue.
#[derive(Clone)]
pub(super) enum Position {
    /// Nothing is stored yet.
    New(Box<Seed>),
    /// At the head, wherever it is.
    Head,
    /// At a node, without moving a head that is elsewhere.
    Node(NodeId),
}

/// The initial contents of a thread.
#[derive(Clone)]
pub(crate) struct Seed {
    pub(crate) thread: NewThread,
    pub(crate) messages: Vec<Message>,
    pub(crate) state: State,
    /// Whether its first run takes a lease.
    pub(crate) leasing: Leasing,
}

struct Cached {
    node: Option<NodeId>,
    view: View,
}

/// A thread as a run finds it.
pub(crate) struct Loaded {
    /// `None` if nothing is stored yet.
    pub(crate) found: Option<Box<OpenedAt>>,
    /// The initial contents, if nothing is stored yet.
    pub(crate) seed: Option<Box<Seed>>,
    /// The node at which it continues, unless at the head.
    pub(crate) at_node: Option<NodeId>,
    /// A failed run whose journal this run begins with.
    pub(crate) failed: Option<RunId>,
    pub(crate) view: View,
    pub(crate) settings: ThreadSettings,
}

impl Loaded {
    pub(crate) fn state(&self) -> State {
        match (&self.found, &self.seed) {
            (Some(found), _) => found.state.clone(),
            (None, Some(seed)) => seed.state.clone(),
            (None, None) => State::default(),
        }
    }

    /// The node at which it continues.
    pub(crate) fn end(&self) -> Option<End> {
        self.found.as_ref()?.end
    }

    /// What the store must check when a run begins here, because it was not read.
    pub(crate) fn expects(&self) -> Option<Expects> {
        self.found.as_ref()?.expects.clone()
    }

    pub(crate) fn version(&self) -> Version {
        let found = self.found.as_ref();
        found.map_or_else(Version::default, |found| found.version)
    }
}

/// What a run leaves for the next one.
pub(crate) struct Leaving {
    /// The node at which to continue.
    pub(crate) node: Option<NodeId>,
    pub(crate) view: View,
    /// The state there, if the run changed it.
    pub(crate) state: Option<State>,
    pub(crate) pending: Vec<Pending>,
    /// Whether the node has neither open calls nor unsent results.
    pub(crate) closed: bool,
}

impl Thread {
    /// A new thread with its own in-memory store.
    pub fn new() -> Self {
        Self::with_id(Ids::new(Arc::new(SystemClock)).thread())
    }

    /// A new thread with a given id and its own in-memory store.
    pub fn with_id(id: ThreadId) -> Self {
        Self::of(id, Vec::new())
    }

    /// A new thread with a history and its own in-memory store.
    pub fn of(id: ThreadId, history: Vec<Message>) -> Self {
        Self::seeded(Seed {
            thread: NewThread::new(id),
            messages: history,
            state: State::default(),
            leasing: Leasing::Thread,
        })
    }

    pub(super) fn seeded(seed: Seed) -> Self {
        let ids = Arc::new(Ids::new(Arc::new(SystemClock)));
        let engine = throughline_store::Memory::new(Options::default(), &ids);
        let home = ScopedStore {
            store: Store::on(Arc::new(engine), ids),
            scope: TenantScope::local(),
            history_cache: None,
        };
        Self::made(home, true, seed)
    }

    /// A thread that is created in the store with its first run.
    pub(super) fn made(home: ScopedStore, private: bool, seed: Seed) -> Self {
        let shown = seed.messages.iter().cloned().map(Arc::new);
        let shown = Arc::new(shown.collect());
        let state = seed.state.clone();
        let id = seed.thread.id.clone();
        // These settings were written by this library just now.
        let settings = ThreadSettings::read(seed.thread.settings.as_ref()).unwrap_or_default();
        let seen = HandleState {
            place: Position::New(Box::new(seed)),
            head: None,
            failed: None,
            found: None,
            looked: None,
            cached: None,
            shown,
            pending: Vec::new(),
            state,
            stored: settings.to_json(),
            settings,
        };
        Self {
            shared: Arc::new(Shared {
                home,
                id,
                private,
                left: LeftCounter::default(),
                seen: Mutex::new(seen),
            }),
        }
    }

    /// A thread that was opened.
    ///
    /// `cached` is the history up to its node, if its messages were not read.
    pub(super) fn opened(
        home: ScopedStore,
        at: &At,
        mut opened: Opened,
        cached: Option<CachedHistory>,
    ) -> Result<Self> {
        let id = opened.thread.id.clone();
        let settings = settings(&opened)?;
        let place = match (at, opened.tip) {
            (At::Node(_), Some(tip)) => Position::Node(tip.node),
            _ => Position::Head,
        };
        let entries = std::mem::take(&mut opened.entries);
        let held = cached.unwrap_or_else(|| {
            let view = View::new(messages(entries)).with_redactions(opened.redactions);
            CachedHistory::new(view)
        });
        let stored = opened.thread.settings.clone();
        let settings = (settings, stored);
        let held = Some(held);
        Ok(Self::stored(home, id, place, opened.into(), held, settings))
    }

    /// A thread at the node that a run left, if everything is cached. The begin of the next run
    /// checks that it still exists.
    pub(super) fn from_cache(home: &ScopedStore, run: RunId) -> Option<Self> {
        let history_cache = home.history_cache.as_ref()?;
        let (node, known) = history_cache.known(&home.scope, run)?;
        let settings = ThreadSettings::read(known.settings.as_ref()).ok()?;
        let held = history_cache.take(node)?;
        let id = known.thread.clone();
        let settings = (settings, known.settings.clone());
        let found = OpenedAt::known(node, known, held.view.redactions());
        let place = Position::Node(node);
        Some(Self::stored(
            home.clone(),
            id,
            place,
            found,
            Some(held),
            settings,
        ))
    }

    fn stored(
        home: ScopedStore,
        id: ThreadId,
        place: Position,
        found: OpenedAt,
        held: Option<CachedHistory>,
        (settings, stored): (ThreadSettings, Option<RawJson>),
    ) -> Self {
        let node = found.node();
        let (view, shown) = held.map(|held| (held.view, held.shown)).unzip();
        let seen = HandleState {
            place,
            head: node,
            cached: view.map(|view| Cached { node, view }),
            shown: shown.unwrap_or_default(),
            failed: None,
            pending: Vec::new(),
            state: found.state.clone(),
            settings,
            stored,
            looked: Some(LastRead::at(&found)).filter(|_| found.expects.is_none()),
            found: Some(Box::new(found)),
        };
        Self {
            shared: Arc::new(Shared {
                home,
                id,
                private: false,
                left: LeftCounter::default(),
                seen: Mutex::new(seen),
            }),
        }
    }

    /// The id of the thread: the public one, which is also its key in the store.
    pub fn id(&self) -> &ThreadId {
        &self.shared.id
    }

    /// The published messages as this handle last read them, oldest first. Runs through this handle
    /// and [`Thread::refresh`] update them.
    pub fn history(&self) -> Vec<Arc<Message>> {
        Vec::clone(&self.snapshot())
    }

    /// The shared list of [`Thread::history`]: the cost does not depend on its length.
    pub fn snapshot(&self) -> Arc<Vec<Arc<Message>>> {
        Arc::clone(&self.shared.seen().shown)
    }

    /// The waiting calls as this handle last read them: those of a parked run, or of a node that is
    /// marked open. [`Run::approve`](crate::agent::Run::approve) and the other answers take them.
    pub fn pending(&self) -> Vec<Pending> {
        self.shared.seen().pending.clone()
    }

    /// The failed run whose journal the next run begins with, see
    /// [`Threads::open_after`](crate::Threads::open_after).
    pub fn follows_failed(&self) -> Option<RunId> {
        self.shared.seen().failed
    }

    /// The owner of the history.
    pub fn owner(&self) -> Owner {
        self.shared.seen().settings.owner.clone()
    }

    /// The ids under which services store this conversation, as this handle last read them.
    pub fn service_ids(&self) -> Vec<ServiceId> {
        self.shared.seen().state.services().to_vec()
    }

    /// The state at the end of the history, as this handle last read it.
    pub fn state(&self) -> State {
        self.shared.seen().state.clone()
    }

    /// The queue of messages for runs.
    pub fn mailbox(&self) -> Mailbox {
        Mailbox(Arc::clone(&self.shared))
    }

    /// The node that the history ends with, as this handle last saw it; `None` while it is empty.
    pub fn head(&self) -> Option<NodeId> {
        self.shared.seen().head
    }

    /// Whether runs continue from the head of the thread, and not from an earlier node.
    pub(crate) fn is_at_head(&self) -> bool {
        matches!(self.shared.place(), Position::Head | Position::New(_))
    }

    /// Set the owner of a thread that is not stored yet.
    pub(crate) fn set_first_owner(&self, owner: Owner) {
        let mut settings = self.shared.settings();
        settings.owner = owner;
        self.shared.change_seed(&settings);
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

/// The messages of entries, without empty ones and what was taken out of the conversation.
pub(crate) fn messages(entries: Vec<throughline_store::Entry>) -> Vec<Arc<Message>> {
    let whole = |entry: &throughline_store::Entry| {
        entry.redacted.is_none() || !entry.message.contents.is_empty()
    };
    let kept = throughline_store::visible(entries)
        .into_iter()
        .filter(whole);
    kept.map(|entry| Arc::new(entry.message)).collect()
}

pub(super) fn settings(opened: &Opened) -> Result<ThreadSettings> {
    let stored = opened.thread.settings.as_ref();
    ThreadSettings::read(stored).map_err(|error| {
        let site = DamageSite::from("the settings").in_thread(&opened.thread.id);
        throughline_store::Error::corrupt(site, error.to_string())
    })
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, HandleState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_new(&self) -> bool {
        matches!(self.seen().place, Position::New(_))
    }

    pub(super) fn place(&self) -> Position {
        self.seen().place.clone()
    }

    /// Creates the thread in the store, with its initial contents, if it does not exist.
    pub(crate) async fn create(&self) -> Result<()> {
        let Position::New(seed) = self.place() else {
            return Ok(());
        };
        let ScopedStore { store, scope, .. } = &self.home;
        let opened = store.open_or_create(scope, &seed.thread, 0).await?;
        let brings = !seed.messages.is_empty() || !seed.state.is_empty();
        if brings && opened.tip.is_some() {
            return Err(throughline_store::Error::Exists {
                what: "thread",
                id: self.id.to_string(),
            });
        }
        if !seed.messages.is_empty() {
            let append = Append {
                run: store.ids().run(),
                thread: self.id.clone(),
                expected: Some(opened.thread.version),
                items: NewItem::of(&seed.messages),
                state: (!seed.state.is_empty()).then(|| seed.state.clone()),
                key: None,
            };
            store.append(scope, &append).await?;
        }
        self.seen().place = Position::Head;
        Ok(())
    }

    /// Reads the thread in one round trip, or in none if it is new. What is known already is not
    /// read again.
    pub(crate) async fn load(&self) -> Result<Loaded> {
        let (place, failed, found, cached, settings) = {
            let mut seen = self.seen();
            let place = seen.place.clone();
            let (found, cached) = (seen.found.take(), seen.cached.take());
            (place, seen.failed, found, cached, seen.settings.clone())
        };
        if let Position::New(seed) = place {
            if seed.messages.is_empty() {
                let settings = ThreadSettings::read(seed.thread.settings.as_ref());
                return Ok(Loaded {
                    found: None,
                    seed: Some(seed),
                    at_node: None,
                    failed,
                    view: View::default(),
                    settings: settings.unwrap_or_default(),
                });
            }
            self.create().await?;
            return Box::pin(self.load()).await;
        }
        let at = match place {
            Position::Node(node) => At::Node(throughline_store::NodeRef::Node(node)),
            Position::New(_) | Position::Head => At::Thread(self.id.clone()),
        };
        let left = match (&self.home.history_cache, &place) {
            (Some(history_cache), Position::Node(node)) => {
                history_cache.take(*node).map(|held| Cached {
                    node: Some(*node),
                    view: held.view,
                })
            }
            _ => None,
        };
        let cached = cached.or(left);
        let window = match cached {
            Some(_) => 0,
            None => usize::MAX,
        };
        let (found, settings, entries) = match found {
            Some(found) => (found, settings, Vec::new()),
            None => {
                let ScopedStore { store, scope, .. } = &self.home;
                let mut opened = store.open(scope, &at, window).await?;
                let entries = std::mem::take(&mut opened.entries);
                let settings = self::settings(&opened)?;
                {
                    let mut seen = self.seen();
                    seen.settings = settings.clone();
                    seen.stored.clone_from(&opened.thread.settings);
                }
                let found = Box::new(OpenedAt::from(opened));
                self.seen().looked = Some(LastRead::at(&found));
                (found, settings, entries)
            }
        };
        let node = found.node();
        let view = match cached {
            Some(cached) if cached.node == node && cached.view.redactions() == found.redactions => {
                cached.view
            }
            _ => View::new(self.whole(entries, node).await?).with_redactions(found.redactions),
        };
        Ok(Loaded {
            found: Some(found),
            seed: None,
            at_node: match place {
                Position::Node(node) => Some(node),
                Position::New(_) | Position::Head => None,
            },
            failed,
            view,
            settings,
        })
    }

    /// All messages up to a node; `entries` are the last ones.
    async fn whole(
        &self,
        mut entries: Vec<throughline_store::Entry>,
        node: Option<NodeId>,
    ) -> Result<Vec<Arc<Message>>> {
        let Some(node) = node else {
            return Ok(Vec::new());
        };
        let at = At::Node(throughline_store::NodeRef::Node(node));
        let ScopedStore { store, scope, .. } = &self.home;
        loop {
            let span = match entries.first() {
                Some(first) if first.first <= 1 => break,
                Some(first) => throughline_store::Span::Before(first.first),
                None => throughline_store::Span::Tail,
            };
            let page = store.read(scope, &at, span, usize::MAX).await?;
            if page.entries.is_empty() {
                break;
            }
            let mut older = page.entries;
            older.append(&mut entries);
            entries = older;
            if !page.more {
                break;
            }
        }
        Ok(messages(entries))
    }

    /// Stores what a run left, at which the next one continues.
    pub(crate) fn keep(&self, left: Leaving) {
        let mut seen = self.seen();
        seen.failed = None;
        let free = match &seen.place {
            Position::New(seed) => seed.leasing == Leasing::Free,
            Position::Node(_) => true,
            Position::Head => false,
        };
        if let (true, Some(node)) = (free, left.node) {
            seen.place = Position::Node(node);
        } else if matches!(seen.place, Position::New(_)) {
            seen.place = Position::Head;
        }
        seen.head = left.node;
        let shown = left.view.messages();
        // By address: a message that was read again may have been redacted.
        let mut pairs = seen.shown.iter().zip(shown);
        let same =
            seen.shown.len() <= shown.len() && pairs.all(|(one, other)| Arc::ptr_eq(one, other));
        if same {
            let known = seen.shown.len();
            Arc::make_mut(&mut seen.shown).extend(shown[known..].iter().cloned());
        } else {
            seen.shown = Arc::new(shown.to_vec());
        }
        seen.pending = left.pending;
        if let Some(state) = left.state {
            seen.state = state;
        }
        seen.cached = match (&self.home.history_cache, left.node) {
            (Some(history_cache), Some(node)) => {
                let known = left.closed.then(|| CachedNode {
                    scope: self.home.scope.clone(),
                    thread: self.id.clone(),
                    state: seen.state.clone(),
                    settings: seen.stored.clone(),
                });
                let held = CachedHistory {
                    view: left.view,
                    shown: Arc::clone(&seen.shown),
                };
                history_cache.put(node, held, known);
                None
            }
            (_, node) => Some(Cached {
                node,
                view: left.view,
            }),
        };
        seen.found = None;
        seen.looked = None;
    }

    /// The run did not begin: what was read can be used by the next one.
    pub(crate) fn put_back(&self, loaded: Loaded) {
        let Some(found) = loaded.found else {
            return;
        };
        let node = found.node();
        match (&self.home.history_cache, node) {
            (Some(history_cache), Some(node)) => {
                history_cache.put(node, CachedHistory::new(loaded.view), None);
            }
            _ => {
                self.seen().cached = Some(Cached {
                    node,
                    view: loaded.view,
                });
            }
        }
    }

    /// Makes the next run begin with the journal of a failed run.
    pub(super) fn after_failed(&self, run: RunId) {
        self.seen().failed = Some(run);
    }

    /// The history up to a node.
    pub(crate) async fn view_at(&self, node: Option<NodeId>) -> Result<View> {
        Ok(View::new(self.whole(Vec::new(), node).await?))
    }

    /// The calls for which the parked run, or the node that is marked open, waits.
    pub(super) async fn waiting(&self, found: Option<&OpenedAt>) -> Result<Vec<Pending>> {
        let Some(run) = found.and_then(OpenedAt::waits) else {
            return Ok(Vec::new());
        };
        let journal = self.home.store.journal(&self.home.scope, run).await?;
        let waits = match journal.run.state {
            RunState::Parked | RunState::Committed | RunState::Cancelled => true,
            // The next run closes the calls of a failed run; runs in the other states have not
            // ended.
            RunState::Failed
            | RunState::Running
            | RunState::Interrupted
            | RunState::Held
            | RunState::Unpublished
            | RunState::Discarded => false,
        };
        if !waits {
            return Ok(Vec::new());
        }
        let calls = Calls::of(&self.home, &journal).await?;
        Ok(super::journal::pending_of(&journal, &calls))
    }

    /// Reads which calls wait where the thread was opened: one more read, if any do.
    pub(super) async fn find_pending(&self) -> Result<()> {
        let waits = {
            let seen = self.seen();
            seen.found.as_ref().and_then(|found| found.waits())
        };
        if waits.is_none() {
            return Ok(());
        }
        let found = self.seen().found.take();
        let pending = self.waiting(found.as_deref()).await;
        let mut seen = self.seen();
        seen.found = found;
        seen.pending = pending?;
        Ok(())
    }

    /// Makes the next load read a point that is only cached, because no run begins that would check
    /// it.
    pub(crate) fn distrust(&self) {
        let mut seen = self.seen();
        seen.found = seen.found.take().filter(|found| found.expects.is_none());
    }

    /// Makes the next load read the thread again.
    pub(super) fn forget_found(&self) {
        self.seen().found = None;
    }

    /// What the last read returned.
    pub(crate) fn looked(&self) -> Option<LastRead> {
        self.seen().looked.clone()
    }

    /// Marks the thread as stored.
    pub(crate) fn exists(&self) {
        let mut seen = self.seen();
        if matches!(seen.place, Position::New(_)) {
            seen.place = Position::Head;
        }
    }

    pub(crate) fn set_settings(&self, settings: ThreadSettings) {
        let mut seen = self.seen();
        let stored = settings.to_json();
        if let Some(found) = &mut seen.found
            && let Some(expects) = &mut found.expects
        {
            expects.settings.clone_from(&stored);
        }
        seen.settings = settings;
        seen.stored = stored;
    }

    pub(crate) fn settings(&self) -> ThreadSettings {
        self.seen().settings.clone()
    }

    /// Changes the settings of a thread that is not stored yet; false if it is stored.
    pub(super) fn change_seed(&self, settings: &ThreadSettings) -> bool {
        let mut seen = self.seen();
        let Position::New(seed) = &mut seen.place else {
            return false;
        };
        seed.thread.settings = settings.to_json();
        seen.stored = settings.to_json();
        seen.settings = settings.clone();
        true
    }

    pub(super) fn show(&self, loaded: Loaded, pending: Vec<Pending>) {
        let state = loaded.state();
        let node = loaded.found.as_ref().and_then(|found| found.node());
        let mut seen = self.seen();
        seen.head = node;
        seen.shown = Arc::new(loaded.view.messages().to_vec());
        seen.pending = pending;
        seen.state = state;
        seen.settings = loaded.settings;
        seen.cached = Some(Cached {
            node,
            view: loaded.view,
        });
    }
}

impl Default for Thread {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.shared.seen();
        f.debug_struct("Thread")
            .field("id", &self.shared.id)
            .field("history", &seen.shown.len())
            .field("pending", &seen.pending.len())
            .finish()
    }
}
