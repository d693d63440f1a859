//! What a process remembers between operations. None of it is trusted: statements carry their own
//! guards, and whatever does not fit is looked up again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::digest::Digest;
use crate::engines::sqlite::events::OwnedRun;
use crate::{NodeId, Position, RunId, State, Tenant, ThreadId};

/// Lock, also after a panic elsewhere: everything behind these locks is only a cache.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A map of bounded size: when it is full, the half that was not used lately goes.
pub(super) struct Bounded<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half: usize,
}

impl<K: Hash + Eq + Clone, V: Clone> Bounded<K, V> {
    pub(super) fn new(size: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            half: (size / 2).max(1),
        }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let value = self.old.remove(key)?;
        self.insert(key.clone(), value.clone());
        Some(value)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }
}

/// The state that a node has.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateAt {
    pub(super) run: i64,
    pub(super) step: u32,
    pub(super) digest: Digest,
    /// That of what is left of it, if something was taken out.
    pub(super) left: Option<Digest>,
}

/// A node as something to go on from.
#[derive(Clone, Copy, Debug)]
pub(super) struct BaseNode {
    pub(super) id: NodeId,
    pub(super) tl: i64,
    pub(super) first: Position,
    pub(super) last: Position,
    /// Whether the timeline belongs to the thread that goes on.
    pub(super) own: bool,
    pub(super) tokens: u64,
    pub(super) state: Option<StateAt>,
    pub(super) digest: Digest,
}

/// What is known of a stored item when a node is made of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemSummary {
    pub(super) no: u32,
    pub(super) tokens: u32,
    pub(super) digest: Digest,
}

/// A run that this process works on.
#[derive(Clone, Debug)]
pub(super) struct CachedRun {
    pub(super) row: i64,
    pub(super) id: RunId,
    pub(super) tenant: Tenant,
    pub(super) thread: i64,
    pub(super) thread_id: ThreadId,
    pub(super) flags: u32,
    pub(super) epoch: u32,
    pub(super) version: u64,
    pub(super) inputs: u32,
    pub(super) next_step: u32,
    pub(super) next_item: u32,
    /// At least: flushes are not counted here, the event log knows them.
    pub(super) next_event: u64,
    /// What its next node goes on from: its own node before, or the node it started from.
    pub(super) base: Option<BaseNode>,
    /// Its own last node: timeline, first position, step.
    pub(super) published: Option<(i64, Position, u32)>,
    /// The first item of its next node.
    pub(super) from: u32,
    /// Stored items from there on, by number.
    pub(super) summaries: Vec<ItemSummary>,
    /// Whether it ever made a call.
    pub(super) calls: bool,
}

impl CachedRun {
    /// A run of the first epoch that has nothing stored.
    pub(super) fn new(tenant: &Tenant, (row, id): (i64, RunId), of: (i64, ThreadId)) -> Self {
        Self {
            row,
            id,
            tenant: tenant.clone(),
            thread: of.0,
            thread_id: of.1,
            flags: 0,
            epoch: 1,
            version: 0,
            inputs: 0,
            next_step: 0,
            next_item: 1,
            next_event: 0,
            base: None,
            published: None,
            from: 1,
            summaries: Vec::new(),
            calls: false,
        }
    }

    /// The run as its events know it.
    pub(super) fn owned(&self) -> OwnedRun {
        OwnedRun {
            row: self.row,
            id: self.id,
            epoch: self.epoch,
        }
    }

    /// Put a stored item to the others.
    pub(super) fn add_summary(&mut self, summary: ItemSummary) {
        match self
            .summaries
            .binary_search_by_key(&summary.no, |known| known.no)
        {
            Ok(place) => self.summaries[place] = summary,
            Err(place) => self.summaries.insert(place, summary),
        }
    }

    pub(super) fn summary_of(&self, no: u32) -> Option<&ItemSummary> {
        let place = self
            .summaries
            .binary_search_by_key(&no, |known| known.no)
            .ok()?;
        Some(&self.summaries[place])
    }
}

/// A thread at its head, as it was when it was last read.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedHead {
    pub(super) thread: i64,
    pub(super) version: u64,
    pub(super) base: Option<BaseNode>,
}

/// The last node of a run as something to go on from, as it was when it was written or last
/// looked.
#[derive(Clone, Debug)]
pub(super) struct EndedRun {
    pub(super) run: i64,
    pub(super) thread: i64,
    pub(super) thread_id: ThreadId,
    pub(super) base: BaseNode,
}

/// How a timeline hangs on others. What is written here never changes.
#[derive(Debug)]
pub(super) struct TimelineChain {
    pub(super) tl: i64,
    pub(super) thread: i64,
    /// Positions up to this one are the parent's.
    pub(super) fork: Position,
    pub(super) parent: Option<Arc<TimelineChain>>,
}

impl Drop for TimelineChain {
    fn drop(&mut self) {
        // A long chain of forks must not be dropped by recursion.
        let mut next = self.parent.take();
        while let Some(chain) = next {
            match Arc::try_unwrap(chain) {
                Ok(mut chain) => next = chain.parent.take(),
                Err(_) => break,
            }
        }
    }
}

/// How much of a node was checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verified {
    /// Its own digest: it has the items that it should have.
    NodeAlone,
    /// All of its items too.
    WithItems,
}

pub(super) struct Caches {
    pub(super) tenants: Mutex<HashMap<Tenant, i64>>,
    pub(super) live: Mutex<Bounded<RunId, Arc<CachedRun>>>,
    pub(super) heads: Mutex<Bounded<(i64, ThreadId), CachedHead>>,
    /// By the number of the tenant.
    pub(super) ended: Mutex<Bounded<(i64, RunId), EndedRun>>,
    pub(super) chains: Mutex<Bounded<i64, Arc<TimelineChain>>>,
    pub(super) checked: Mutex<Bounded<Digest, Verified>>,
    /// Long ones, which would be read and parsed in every turn.
    pub(super) states: Mutex<Bounded<Digest, State>>,
}

impl Caches {
    pub(super) fn new() -> Self {
        Self {
            tenants: Mutex::new(HashMap::new()),
            live: Mutex::new(Bounded::new(16_384)),
            heads: Mutex::new(Bounded::new(32_768)),
            ended: Mutex::new(Bounded::new(32_768)),
            chains: Mutex::new(Bounded::new(32_768)),
            checked: Mutex::new(Bounded::new(262_144)),
            states: Mutex::new(Bounded::new(16)),
        }
    }
}
