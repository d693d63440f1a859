//! A reference tree: what a store must return, in the simplest implementation.

use throughline_model::Message;
use throughline_store::{
    Anchor, Append, At, End, ErrorKind, Fork, Mode, NewItem, NewThread, NodeId, NodeRef, Span,
    Stopped, Store, TenantScope, ThreadId, Version,
};

use super::turn::{Turn, begin, shorts, user};
use crate::Rng;

/// A node: its parent and its text.
#[derive(Debug)]
struct Node {
    name: NodeRef,
    parent: Option<usize>,
    texts: Vec<String>,
    thread: usize,
}

/// A thread and its head.
#[derive(Debug)]
struct Thread {
    id: ThreadId,
    head: Option<usize>,
    version: u64,
    deleted: bool,
}

/// Threads and nodes, as they must be.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    threads: Vec<Thread>,
    said: usize,
}

impl Tree {
    /// Grows a random tree in a store, and records it.
    pub async fn grow(
        store: &Store,
        scope: &TenantScope,
        rng: &mut Rng,
        steps: usize,
    ) -> Result<Self, String> {
        let mut tree = Self::default();
        tree.new_thread(store, scope).await?;
        for _ in 0..steps {
            tree.step(store, scope, rng).await?;
        }
        Ok(tree)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    async fn step(
        &mut self,
        store: &Store,
        scope: &TenantScope,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let live: Vec<usize> = (0..self.threads.len())
            .filter(|thread| !self.threads[*thread].deleted)
            .collect();
        let Some(thread) = (!live.is_empty()).then(|| *rng.pick(&live)) else {
            return self.new_thread(store, scope).await;
        };
        match rng.below(20) {
            0 => self.new_thread(store, scope).await,
            1 if live.len() > 1 => self.delete(store, scope, thread).await,
            2 | 3 => self.fork(store, scope, rng, thread).await,
            4 | 5 => self.append(store, scope, rng, thread).await,
            6 => self.fail(store, scope, rng, thread).await,
            7..=12 => {
                let turn = self.turn(rng);
                let at = Anchor::Head {
                    thread: self.threads[thread].id.clone(),
                    expected: Version(self.threads[thread].version),
                };
                let head = self.threads[thread].head;
                self.run(store, scope, &turn, at, thread, head).await
            }
            _ => {
                let nodes: Vec<usize> = (0..self.nodes.len())
                    .filter(|node| !self.threads[self.nodes[*node].thread].deleted)
                    .collect();
                if nodes.is_empty() {
                    return Ok(());
                }
                let base = *rng.pick(&nodes);
                let turn = self.turn(rng);
                let at = Anchor::Node(self.nodes[base].name);
                let owner = self.nodes[base].thread;
                self.run(store, scope, &turn, at, owner, Some(base)).await
            }
        }
    }

    fn word(&mut self) -> String {
        self.said += 1;
        format!("m{}", self.said)
    }

    fn turn(&mut self, rng: &mut Rng) -> Turn {
        let rounds = if rng.chance(0.5) { 0 } else { rng.range(1..=2) };
        Turn {
            input: (0..rng.range(1..=2)).map(|_| self.word()).collect(),
            rounds: (0..rounds)
                .map(|_| (0..rng.range(1..=3)).map(|_| self.word()).collect())
                .collect(),
            answer: self.word(),
            mode: if rng.bool() {
                Mode::PerRun
            } else {
                Mode::PerCall
            },
        }
    }

    async fn new_thread(&mut self, store: &Store, scope: &TenantScope) -> Result<(), String> {
        let id = store.ids().thread();
        let new = NewThread::new(id.clone());
        let opened = store.open_or_create(scope, &new, 1).await.map_err(said)?;
        if opened.tip.is_some() {
            return Err(format!("{id} is new and has a head"));
        }
        self.threads.push(Thread {
            id,
            head: None,
            version: 0,
            deleted: false,
        });
        Ok(())
    }

    async fn delete(
        &mut self,
        store: &Store,
        scope: &TenantScope,
        thread: usize,
    ) -> Result<(), String> {
        let id = self.threads[thread].id.clone();
        store.delete(scope, &id).await.map_err(said)?;
        self.threads[thread].deleted = true;
        Ok(())
    }

    async fn fork(
        &mut self,
        store: &Store,
        scope: &TenantScope,
        rng: &mut Rng,
        thread: usize,
    ) -> Result<(), String> {
        let own: Vec<usize> = (0..self.nodes.len())
            .filter(|node| self.nodes[*node].thread == thread)
            .collect();
        let (from, head) = if own.is_empty() || rng.bool() {
            let id = self.threads[thread].id.clone();
            (At::Thread(id), self.threads[thread].head)
        } else {
            let node = *rng.pick(&own);
            (At::Node(self.nodes[node].name), Some(node))
        };
        let fork = Fork {
            from,
            thread: NewThread::new(store.ids().thread()),
        };
        let made = store.fork(scope, &fork).await.map_err(said)?;
        self.threads.push(Thread {
            id: made.id,
            head,
            version: 0,
            deleted: false,
        });
        Ok(())
    }

    async fn append(
        &mut self,
        store: &Store,
        scope: &TenantScope,
        rng: &mut Rng,
        thread: usize,
    ) -> Result<(), String> {
        let texts: Vec<String> = (0..rng.range(1..=3)).map(|_| self.word()).collect();
        let messages: Vec<Message> = texts.iter().map(|text| user(text)).collect();
        let append = Append {
            run: store.ids().run(),
            thread: self.threads[thread].id.clone(),
            expected: None,
            items: NewItem::of(&messages),
            state: None,
            key: None,
        };
        store.append(scope, &append).await.map_err(said)?;
        let parent = self.threads[thread].head;
        self.node(NodeRef::Run(append.run), parent, texts, thread);
        self.move_head(thread);
        Ok(())
    }

    /// A failed run leaves nothing that a reader can see.
    async fn fail(
        &mut self,
        store: &Store,
        scope: &TenantScope,
        rng: &mut Rng,
        thread: usize,
    ) -> Result<(), String> {
        let turn = Turn {
            mode: Mode::PerRun,
            ..self.turn(rng)
        };
        let at = Anchor::Head {
            thread: self.threads[thread].id.clone(),
            expected: Version(self.threads[thread].version),
        };
        let value = turn.begin(store.ids().run(), at);
        let lease = begin(store, scope, &value).await.map_err(said)?.lease;
        if !turn.rounds.is_empty() {
            store
                .step(scope, lease, &turn.step(0))
                .await
                .map_err(said)?;
        }
        let how = if rng.bool() {
            Stopped::Failed
        } else {
            Stopped::Discarded
        };
        let end = End {
            how,
            note: None,
            events: None,
        };
        store.end(scope, lease, &end).await.map_err(said)
    }

    async fn run(
        &mut self,
        store: &Store,
        scope: &TenantScope,
        turn: &Turn,
        at: Anchor,
        thread: usize,
        base: Option<usize>,
    ) -> Result<(), String> {
        let leased = matches!(at, Anchor::Head { .. });
        let run = store.ids().run();
        let mut inner = Vec::new();
        let published = turn
            .run(store, scope, run, at, |step, published| {
                inner.push((step, *published));
            })
            .await
            .map_err(said)?;
        let mut parent = base;
        let mut shown = 0;
        let mut add = |tree: &mut Self, name, texts: Vec<String>, moved: bool| {
            let moves = leased || tree.threads[thread].head == parent;
            let added = texts[shown..].to_vec();
            shown = texts.len();
            tree.node(name, parent, added, thread);
            parent = Some(tree.nodes.len() - 1);
            if moves {
                tree.move_head(thread);
            }
            (moves == moved)
                .then_some(())
                .ok_or_else(|| format!("{name:?} moved the head: {moved}, expected {moves}"))
        };
        for (step, published) in inner {
            let name = NodeRef::Node(NodeId {
                run,
                step: u32::try_from(step).unwrap_or(u32::MAX),
            });
            add(self, name, turn.texts_after(step), published.moved)?;
        }
        add(self, NodeRef::Run(run), turn.texts(), published.moved)
    }

    fn node(&mut self, name: NodeRef, parent: Option<usize>, texts: Vec<String>, thread: usize) {
        self.nodes.push(Node {
            name,
            parent,
            texts,
            thread,
        });
    }

    /// Moves the head of a thread to the newest node.
    fn move_head(&mut self, thread: usize) {
        self.threads[thread].head = Some(self.nodes.len() - 1);
        self.threads[thread].version += 1;
    }

    /// The texts on the path to a node.
    fn path(&self, node: Option<usize>) -> Vec<String> {
        let mut parts = Vec::new();
        let mut at = node;
        while let Some(node) = at {
            parts.push(&self.nodes[node].texts);
            at = self.nodes[node].parent;
        }
        parts.into_iter().rev().flatten().cloned().collect()
    }

    /// Compares every node and every thread with the store; returns how many there were.
    pub async fn compare(
        &self,
        store: &Store,
        scope: &TenantScope,
        rng: &mut Rng,
    ) -> Result<usize, String> {
        let mut compared = 0;
        for (place, node) in self.nodes.iter().enumerate() {
            let at = At::Node(node.name);
            if self.threads[node.thread].deleted {
                match store.open(scope, &at, 1).await {
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    other => return Err(format!("{:?} of a deleted thread: {other:?}", node.name)),
                }
            }
            let expected = self.path(Some(place));
            let found = read(store, scope, &at, rng).await?;
            if found != expected {
                return Err(format!("{:?}: {found:?}, expected {expected:?}", node.name));
            }
            totals(store, scope, &at).await?;
            compared += 1;
        }
        for thread in &self.threads {
            let at = At::Thread(thread.id.clone());
            let opened = store.open(scope, &at, 10_000).await;
            if thread.deleted {
                match opened {
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    other => return Err(format!("deleted {}: {other:?}", thread.id)),
                }
            }
            let opened = opened.map_err(said)?;
            let expected = self.path(thread.head);
            let found = shorts(&opened.entries);
            if found != expected || opened.thread.version != Version(thread.version) {
                let version = opened.thread.version;
                return Err(format!(
                    "{}: {version:?} {found:?}, expected {expected:?}",
                    thread.id
                ));
            }
            let sum = totals(store, scope, &at).await?;
            if sum != opened.thread.tokens() {
                let total = opened.thread.tokens();
                return Err(format!("{} has {total} tokens, not {sum}", thread.id));
            }
            compared += 1;
        }
        Ok(compared)
    }
}

/// Compares the total of a branch with the tokens of its messages; returns the sum.
pub async fn totals(store: &Store, scope: &TenantScope, at: &At) -> Result<u64, String> {
    let opened = store.open(scope, at, 0).await.map_err(said)?;
    let page = store.read(scope, at, Span::After(0), 100_000).await;
    let mut sum = 0;
    for entry in page.map_err(said)?.entries {
        let counted = throughline_model::tokens::units(&entry.message);
        if entry.redacted.is_none() && counted != entry.tokens {
            let kept = entry.tokens;
            return Err(format!("{at:?}: {kept} tokens, not {counted}: {entry:?}"));
        }
        sum += u64::from(entry.tokens);
    }
    match opened.tip.map_or(0, |tip| tip.tokens) {
        total if total == sum => Ok(sum),
        total => Err(format!("{at:?} has a total of {total} tokens, not {sum}")),
    }
}

/// Reads a whole branch in one of several ways.
async fn read(
    store: &Store,
    scope: &TenantScope,
    at: &At,
    rng: &mut Rng,
) -> Result<Vec<String>, String> {
    let limit = rng.range(1..=9);
    match rng.below(3) {
        0 => {
            let page = store
                .read(scope, at, Span::Tail, 10_000)
                .await
                .map_err(said)?;
            Ok(shorts(&page.entries))
        }
        1 => {
            let mut texts = Vec::new();
            let mut after = 0;
            loop {
                let page = store
                    .read(scope, at, Span::After(after), limit)
                    .await
                    .map_err(said)?;
                after = page.entries.last().map_or(after, |entry| entry.last);
                texts.extend(shorts(&page.entries));
                if !page.more {
                    return Ok(texts);
                }
            }
        }
        _ => {
            let mut pages = Vec::new();
            let mut before = u64::MAX;
            loop {
                let page = store
                    .read(scope, at, Span::Before(before), limit)
                    .await
                    .map_err(said)?;
                before = page.entries.first().map_or(before, |entry| entry.first);
                pages.push(shorts(&page.entries));
                if !page.more {
                    return Ok(pages.into_iter().rev().flatten().collect());
                }
            }
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn said(error: throughline_store::Error) -> String {
    format!("{error} ({error:?})")
}
