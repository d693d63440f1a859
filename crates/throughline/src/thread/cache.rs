//! Histories that are kept in memory, by the run that they end with.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_model::Message;
use throughline_store::{NodeId, RunId, TenantScope};

use super::found::RememberedNode;
use crate::prompt::View;

/// A view of at most so many bytes is copied when it is taken: copying is cheaper than reading, and
/// the beginnings of conversations are what most branches begin at.
const COPIED: usize = 16 << 10;

/// What was rendered of a view of at most so many bytes is not kept: rendering it again is no more
/// work than copying it for every branch, and it is most of what a short view takes.
const RENDERED_AGAIN: usize = 6 << 10;

/// What an entry takes in the two maps, beside what it refers to.
const ENTRY: usize = (size_of::<(RunId, Entry)>() + size_of::<(u64, RunId)>()) * 3 / 2;

/// Views of histories, for hosts where every turn comes through a handle of its own. Nodes never
/// change, so what was read and rendered once holds; what was not used for longest goes first.
///
/// A run takes the view of its node and leaves that of the node it made. Somebody who goes on from
/// the older node once more reads it again, unless it is so short that a copy stayed.
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
    /// What else somebody has to know who goes on there.
    known: Option<RememberedNode>,
    bytes: usize,
    age: u64,
}

/// A history in memory.
pub(super) struct CachedHistory {
    pub(super) view: View,
    /// The same messages as handles show them, handed on from one to the next: a list of its own for
    /// each would touch every message of a long history for every turn.
    pub(super) shown: Shown,
}

/// A list of messages that handles share.
pub(super) type Shown = Arc<Vec<Arc<Message>>>;

impl CachedHistory {
    /// A view that nobody has shown yet.
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
    /// Histories of at most so many bytes in memory, with what is known and rendered of them.
    pub fn new(most: usize) -> Self {
        Self {
            kept: Arc::default(),
            most,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Entries> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many views are kept.
    pub fn len(&self) -> usize {
        self.kept().by_run.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes are held: messages, rendered text, what renderers and tool histories know, and the
    /// lists in which they are kept.
    pub fn held_bytes(&self) -> usize {
        self.kept().bytes
    }

    /// How many bytes may be held.
    pub fn most_bytes(&self) -> usize {
        self.most
    }

    /// Keep none of them any longer, as after threads were erased. Handles that took one still have
    /// it.
    pub fn clear(&self) {
        let mut kept = self.kept();
        let tick = kept.tick;
        *kept = Entries {
            tick,
            ..Entries::default()
        };
    }

    /// Whether the view of a run's node is here, as far as one can know beforehand.
    pub(super) fn has(&self, run: RunId) -> bool {
        self.kept().by_run.contains_key(&run)
    }

    /// Where a run ended and what is known of that place, if nobody has to read it.
    pub(super) fn known(
        &self,
        scope: &TenantScope,
        run: RunId,
    ) -> Option<(NodeId, RememberedNode)> {
        let kept = self.kept();
        let one = kept.by_run.get(&run)?;
        let known = one.known.as_ref().filter(|known| known.scope == *scope)?;
        Some((one.node, known.clone()))
    }

    /// Take the history of a node, or a copy of it.
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

    /// Keep the history of a node.
    pub(super) fn put(&self, node: NodeId, mut held: CachedHistory, known: Option<RememberedNode>) {
        if held.view.message_bytes() <= RENDERED_AGAIN {
            held.view.forget_rendered();
        }
        let known_bytes = known.as_ref().map_or(0, RememberedNode::held_bytes);
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
    /// It was used just now.
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
        let views = HistoryCache::new(1 << 20);
        let other = NodeId { step: 3, ..node(1) };
        for (text, stays) in [("short".to_owned(), true), ("x".repeat(COPIED), false)] {
            views.put(node(1), said(&text), None);
            assert!(views.take(other).is_none());
            assert!(views.has(node(1).run));
            let taken = views.take(node(1)).map(|held| held.view.messages().len());
            assert_eq!(taken, Some(1));
            assert_eq!(views.take(node(1)).is_some(), stays);
            assert_eq!(views.is_empty(), !stays);
        }
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let one = ENTRY + said(&"x".repeat(1_000)).held_bytes();
        let views = HistoryCache::new(2 * one);
        for no in 1..=3 {
            views.put(node(no), said(&"x".repeat(1_000)), None);
        }
        assert_eq!(views.len(), 2);
        assert!(views.take(node(1)).is_none());
        assert!(
            views.take(node(2)).is_some(),
            "which was used, so that 3 is the oldest"
        );
        views.put(node(4), said(&"x".repeat(1_000)), None);
        assert!(views.take(node(3)).is_none());
        assert!(views.take(node(4)).is_some());
        views.put(node(5), said(&"x".repeat(10_000)), None);
        assert!(
            !views.has(node(5).run),
            "one that is larger than all is not kept"
        );
    }
}
