//! Histories in memory, by the run that they end with.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_model::Message;
use throughline_store::{NodeId, RunId, TenantScope};

use super::opened_at::CachedNode;
use crate::prompt::View;

/// The largest history that is copied when it is taken: copying is cheaper than reading it again,
/// and most branches begin at the beginning of a conversation.
const COPIED: usize = 16 << 10;

/// The largest history whose rendering is dropped: rendering it again costs no more than copying it
/// for every branch, and it is most of the size of a short view.
const RENDERED_AGAIN: usize = 6 << 10;

/// The size of an entry in the two maps, without what it refers to.
const ENTRY: usize = (size_of::<(RunId, Entry)>() + size_of::<(u64, RunId)>()) * 3 / 2;

/// Caches histories, for hosts in which every turn has its own handle. Nodes never change, so an
/// entry stays valid; the least recently used ones are evicted.
///
/// A run takes the history of its base node and leaves that of the node that it made. A later run
/// that continues from the older node reads it again, unless it is short enough that a copy stayed.
///
/// ```
/// use throughline::thread::HistoryCache;
/// use throughline::Threads;
/// use throughline::store::Store;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Store::open("memory:").await?;
/// let threads = Threads::of(&store).with_history_cache(HistoryCache::new(64 << 20));
/// # let _ = threads;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HistoryCache {
    kept: Arc<Mutex<Entries>>,
    /// How many bytes may be held.
    most: usize,
}

#[derive(Default)]
struct Entries {
    by_run: HashMap<RunId, Entry>,
    by_age: BTreeMap<u64, RunId>,
    bytes: usize,
    tick: u64,
}

struct Entry {
    node: NodeId,
    held: CachedHistory,
    /// The state and settings at the node, if a run may begin there without a read.
    known: Option<CachedNode>,
    bytes: usize,
    age: u64,
}

/// A cached history.
pub(super) struct CachedHistory {
    pub(super) view: View,
    /// The same messages as handles show them, passed from one handle to the next: a new list for
    /// each handle would touch every message of a long history in every turn.
    pub(super) shown: MessageList,
}

/// A list of messages that handles share.
pub(super) type MessageList = Arc<Vec<Arc<Message>>>;

impl CachedHistory {
    /// A history that no handle has shown yet.
    pub(super) fn new(view: View) -> Self {
        let shown = Arc::new(view.messages().to_vec());
        Self { view, shown }
    }

    fn held_bytes(&mut self) -> usize {
        let shown = self.shown.capacity() * size_of::<Arc<Message>>();
        self.view.held_bytes() + shown
    }

    fn fork(&self) -> Self {
        Self {
            view: self.view.fork(),
            shown: Arc::clone(&self.shown),
        }
    }
}

impl HistoryCache {
    /// A cache of at most this many bytes of memory, counting messages, renderings and compaction.
    pub fn new(most: usize) -> Self {
        Self {
            kept: Arc::default(),
            most,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Entries> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of cached histories.
    pub fn len(&self) -> usize {
        self.kept().by_run.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The held bytes: messages, rendered text, the state of renderers and tool histories, and the
    /// lists that hold them.
    pub fn held_bytes(&self) -> usize {
        self.kept().bytes
    }

    /// How many bytes may be held.
    pub fn most_bytes(&self) -> usize {
        self.most
    }

    /// Removes all histories, for example after threads were erased. Handles keep those that they
    /// have taken.
    pub fn clear(&self) {
        let mut kept = self.kept();
        let tick = kept.tick;
        *kept = Entries {
            tick,
            ..Entries::default()
        };
    }

    /// Whether there is a history for a run. It may be of another node of the run.
    pub(super) fn has(&self, run: RunId) -> bool {
        self.kept().by_run.contains_key(&run)
    }

    /// The node, state and settings where a run ended, if a run may begin there without a read.
    pub(super) fn known(&self, scope: &TenantScope, run: RunId) -> Option<(NodeId, CachedNode)> {
        let kept = self.kept();
        let one = kept.by_run.get(&run)?;
        let known = one.known.as_ref().filter(|known| known.scope == *scope)?;
        Some((one.node, known.clone()))
    }

    /// Takes the history of a node, or a copy of it.
    pub(super) fn take(&self, node: NodeId) -> Option<CachedHistory> {
        let mut kept = self.kept();
        let one = kept.by_run.get(&node.run)?;
        if one.node != node {
            return None;
        }
        if one.bytes <= COPIED {
            let held = one.held.fork();
            kept.touch(node.run);
            return Some(held);
        }
        kept.remove(node.run).map(|one| one.held)
    }

    /// Stores the history of a node.
    pub(super) fn put(&self, node: NodeId, mut held: CachedHistory, known: Option<CachedNode>) {
        if held.view.message_bytes() <= RENDERED_AGAIN {
            held.view.forget_rendered();
        }
        let known_bytes = known.as_ref().map_or(0, CachedNode::held_bytes);
        let bytes = ENTRY + held.held_bytes() + known_bytes;
        if bytes > self.most {
            return;
        }
        let mut kept = self.kept();
        kept.remove(node.run);
        kept.tick += 1;
        let age = kept.tick;
        kept.bytes += bytes;
        kept.by_age.insert(age, node.run);
        kept.by_run.insert(
            node.run,
            Entry {
                node,
                held,
                known,
                bytes,
                age,
            },
        );
        while kept.bytes > self.most {
            let Some((_, oldest)) = kept.by_age.pop_first() else {
                break;
            };
            kept.remove(oldest);
        }
    }
}

impl Entries {
    /// Marks an entry as just used.
    fn touch(&mut self, run: RunId) {
        self.tick += 1;
        if let Some(one) = self.by_run.get_mut(&run) {
            self.by_age.remove(&one.age);
            one.age = self.tick;
            self.by_age.insert(one.age, run);
        }
    }

    fn remove(&mut self, run: RunId) -> Option<Entry> {
        let one = self.by_run.remove(&run)?;
        self.by_age.remove(&one.age);
        self.bytes -= one.bytes;
        Some(one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(no: u8) -> NodeId {
        NodeId {
            run: RunId::from_bytes([no; 16]),
            step: 0,
        }
    }

    fn said(text: &str) -> CachedHistory {
        CachedHistory::new(View::new([Message::user(text)]))
    }

    #[test]
    fn a_view_is_taken_only_for_its_node_and_once_unless_it_is_short() {
        let cache = HistoryCache::new(1 << 20);
        let other = NodeId { step: 3, ..node(1) };
        for (text, stays) in [("short".to_owned(), true), ("x".repeat(COPIED), false)] {
            cache.put(node(1), said(&text), None);
            assert!(cache.take(other).is_none());
            assert!(cache.has(node(1).run));
            let taken = cache.take(node(1)).map(|held| held.view.messages().len());
            assert_eq!(taken, Some(1));
            assert_eq!(cache.take(node(1)).is_some(), stays);
            assert_eq!(cache.is_empty(), !stays);
        }
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let one = ENTRY + said(&"x".repeat(1_000)).held_bytes();
        let cache = HistoryCache::new(2 * one);
        for no in 1..=3 {
            cache.put(node(no), said(&"x".repeat(1_000)), None);
        }
        assert_eq!(cache.len(), 2);
        assert!(cache.take(node(1)).is_none());
        assert!(
            cache.take(node(2)).is_some(),
            "which was used, so that 3 is the oldest"
        );
        cache.put(node(4), said(&"x".repeat(1_000)), None);
        assert!(cache.take(node(3)).is_none());
        assert!(cache.take(node(4)).is_some());
        cache.put(node(5), said(&"x".repeat(10_000)), None);
        assert!(
            !cache.has(node(5).run),
            "one that is larger than all is not kept"
        );
    }
}
