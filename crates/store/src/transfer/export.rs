//! Making the lines of an export.

use super::format::{
    EndLine, Header, ItemLine, Line, NodeLine, ThreadLine, VERSION, What, digest, ended,
};
use super::plan::{Follow, Plan, Walk, plan};
use super::{Exported, Extent, write};
use crate::{
    At, Error, Item, ItemKind, ItemNo, ItemRef, NewThread, Position, Progress, Result, Store,
    TenantScope, Thread, Tip, TreeNode, rules,
};

/// Items that are read at once.
const PAGE: usize = 64;

/// An export on its way: ask for lines until there are none.
///
/// The head, and which nodes are in it, are fixed at the start; nodes never change. So threads can
/// be written to meanwhile.
pub struct Export {
    store: Store,
    scope: TenantScope,
    thread: Thread,
    tip: Option<Tip>,
    extent: Extent,
    plan: Plan,
    walk: Walk,
    follow: Follow,
    stage: Stage,
    hasher: blake3::Hasher,
    exported: Exported,
}

#[derive(Debug)]
enum Stage {
    /// Nothing was written.
    Start,
    /// The next node comes.
    Nodes,
    /// Items of a node from this number on.
    Items(Box<TreeNode>, ItemNo),
    /// Everything was written.
    Over,
}

impl Export {
    /// Begin. `at` names the thread, or for [`Extent::Branch`] the node where the branch ends.
    pub async fn start(
        store: &Store,
        scope: &TenantScope,
        at: &At,
        extent: Extent,
    ) -> Result<Self> {
        let opened = store.open(scope, at, 0).await?;
        let tip = match extent {
            Extent::Tree => opened.thread.head,
            Extent::Branch => opened.tip,
        };
        let plan = plan(store, scope, &opened.thread.id, extent, tip).await?;
        Ok(Self {
            store: store.clone(),
            scope: scope.clone(),
            thread: opened.thread,
            tip,
            extent,
            plan,
            walk: Walk::default(),
            follow: Follow::default(),
            stage: Stage::Start,
            hasher: blake3::Hasher::new(),
            exported: Exported {
                tokens: tip.map_or(0, |tip| tip.tokens),
                ..Exported::default()
            },
        })
    }

    /// The thread that is exported.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// What was made so far.
    pub fn exported(&self) -> Exported {
        self.exported
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress {
            done: self.exported.items,
            total: self.plan.items,
            unit: "items",
        }
    }

    /// The next lines, whole ones; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<String>> {
        let made = self.lines().await;
        made.map_err(|damage| rules::in_thread(damage, &self.thread.id))
    }

    async fn lines(&mut self) -> Result<Option<String>> {
        let mut lines = String::new();
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Start => {
                let header = Header {
                    version: VERSION,
                    extent: self.extent,
                };
                write::line(&mut lines, &Line::Header(header));
                write::line(&mut lines, &self.thread_line());
                self.stage = Stage::Nodes;
            }
            Stage::Nodes => match self.next_node().await? {
                Some(node) => self.items(&mut lines, node, 0).await?,
                None => self.end(&mut lines),
            },
            Stage::Items(node, from) => self.items(&mut lines, *node, from).await?,
            Stage::Over => return Ok(None),
        }
        self.hasher.update(lines.as_bytes());
        self.exported.bytes += lines.len() as u64;
        Ok(Some(lines))
    }

    fn thread_line(&self) -> Line {
        let thread = self.thread.clone();
        Line::Thread(Box::new(ThreadLine {
            created: thread.created,
            touched: thread.touched,
            head: self.tip.map(|tip| tip.node),
            tokens: Some(self.exported.tokens),
            thread: NewThread {
                id: thread.id,
                aliases: thread.aliases,
                title: thread.title,
                meta: thread.meta,
                settings: thread.settings,
                moved_by: thread.moved_by,
                keep: thread.keep,
            },
        }))
    }

    async fn next_node(&mut self) -> Result<Option<TreeNode>> {
        let (store, scope, thread) = (&self.store, &self.scope, &self.thread.id);
        while let Some(node) = self.walk.next(store, scope, thread).await? {
            if self.follow.takes(&self.plan, &node) {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    /// Write items of a node; before the first of them the node itself.
    async fn items(&mut self, lines: &mut String, node: TreeNode, from: ItemNo) -> Result<()> {
        let record = self.store.node(&self.scope, node.node, from, PAGE).await?;
        let first_item = node.first_item;
        if from == 0 {
            let count = (node.last + 1).saturating_sub(node.first);
            let items = u32::try_from(count).map_err(|_| damaged(&node, "it has no end"))?;
            let line = NodeLine {
                node: node.node,
                parent: node.parent,
                first: node.first,
                first_item,
                items,
                open: node.open,
                hidden: record.hidden,
                created: node.created,
                kind: record.kind,
                mode: record.mode,
                ended: ended(record.run),
                begun: record.begun,
                note: record.note,
                state: record.state,
            };
            write::line(lines, &Line::Node(Box::new(line)));
            self.exported.nodes += 1;
        }
        let mut next = from.max(first_item);
        for item in &record.items {
            if item.at.no != next {
                return Err(missing(&node, next));
            }
            let position = node.first + u64::from(next - first_item);
            write::line(lines, &Line::Item(Box::new(item_line(item, position)?)));
            self.exported.items += 1;
            next += 1;
        }
        let complete = node.first + u64::from(next - first_item) > node.last;
        self.stage = match (complete, record.more && !record.items.is_empty()) {
            (true, false) => Stage::Nodes,
            (false, true) => Stage::Items(Box::new(node), next),
            (false, false) => return Err(missing(&node, next)),
            (true, true) => {
                let detail = "it has another number of items than positions";
                return Err(damaged(&node, detail));
            }
        };
        Ok(())
    }

    fn end(&mut self, lines: &mut String) {
        let end = EndLine {
            nodes: self.exported.nodes,
            items: self.exported.items,
            digest: digest(&self.hasher),
        };
        write::line(lines, &Line::End(end));
    }
}

/// Damage in a node that starts at a position.
fn damaged(node: &TreeNode, detail: &str) -> Error {
    Error::corrupt(node.node, detail).at_position(node.first)
}

/// An item that a node should have.
fn missing(node: &TreeNode, no: ItemNo) -> Error {
    let item = ItemRef {
        run: node.node.run,
        no,
    };
    let position = node.first + u64::from(no.saturating_sub(node.first_item));
    Error::corrupt(item, "it is missing").at_position(position)
}

fn item_line(item: &Item, position: Position) -> Result<ItemLine> {
    let what = match (item.kind, &item.body) {
        (ItemKind::Gap, _) => What::Gap,
        (kind, Err(redaction)) => What::Redacted {
            kind,
            source: item.source(),
            redaction: redaction.clone(),
        },
        (kind, Ok(_)) => {
            let mut message = item.message().map_err(|error| {
                Error::corrupt(item.at, error.to_string()).at_position(position)
            })?;
            // The place that it has its id from stays behind.
            if let (Some(again), None) = (item.again, &message.id) {
                message.id = Some(again.message_id());
            }
            What::Message {
                kind,
                message: Box::new(message),
                again: item.again,
            }
        }
    };
    Ok(ItemLine {
        no: item.at.no,
        position,
        tokens: (item.kind != ItemKind::Gap).then_some(item.tokens),
        what,
    })
}
