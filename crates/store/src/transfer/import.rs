//! Taking the lines of an export.

use std::collections::HashMap;

use super::format::{EndLine, ItemLine, Line, NodeLine, ThreadLine, What, digest};
use super::parse::{self, Fault};
use super::{ImportOptions, Imported};
use crate::{
    Error, Import, ImportItem, ImportNode, ItemContent, ItemNo, NodeId, Position, Result, RunId,
    Store, TenantScope, ThreadId,
};

/// An import on its way: hand it bytes, then finish it.
///
/// Nothing is seen before [`Importer::finish`]. After an error everything is forgotten again; an
/// importer that is dropped leaves something behind that is not visible and is swept away later.
/// Memory: one node with its items, and a few dozen bytes for each node before.
pub struct Importer {
    store: Store,
    scope: TenantScope,
    options: ImportOptions,
    /// The start of a line whose end has not come.
    partial: Vec<u8>,
    /// The number of the line that is read.
    line_no: u64,
    hasher: blake3::Hasher,
    stage: Stage,
    /// The thread, once it is open.
    thread: Option<ThreadId>,
    /// The version that the header names.
    version: u32,
    /// The number of the thread's line.
    thread_line: u64,
    head: Option<NodeId>,
    /// Tokens of all items up to the head, as the export says.
    tokens: Option<u64>,
    touched: u64,
    nodes: HashMap<NodeId, Ends>,
    runs: HashMap<RunId, Known>,
    imported: Counts,
}

/// What is known at the end of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    /// The position of its last item.
    last: Position,
    /// Tokens of all items up to there.
    tokens: u64,
}

/// What is known of a run of the export.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Its id here.
    id: RunId,
    next_item: ItemNo,
    last_step: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    nodes: u64,
    items: u64,
    aliases_left_out: u64,
}

#[derive(Debug)]
enum Stage {
    Header,
    Thread,
    /// A node or the end.
    Nodes,
    /// Items of a node.
    Items(Box<Open>),
    /// The end was read.
    Over,
}

/// A node whose items are being read.
#[derive(Debug)]
struct Open {
    line: NodeLine,
    /// The line it stands on.
    at: u64,
    node: ImportNode,
}

impl Importer {
    /// Begin.
    pub fn new(store: &Store, scope: &TenantScope, options: ImportOptions) -> Self {
        Self {
            store: store.clone(),
            scope: scope.clone(),
            options,
            partial: Vec::new(),
            line_no: 0,
            hasher: blake3::Hasher::new(),
            stage: Stage::Header,
            thread: None,
            version: 0,
            thread_line: 0,
            head: None,
            tokens: None,
            touched: 0,
            nodes: HashMap::new(),
            runs: HashMap::new(),
            imported: Counts::default(),
        }
    }

    /// Take some bytes, cut anywhere. After an error the import is over.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let done = self.take(bytes).await;
        if done.is_err() {
            self.forget().await;
        }
        done
    }

    /// All bytes were handed over: show the thread.
    pub async fn finish(mut self) -> Result<Imported> {
        let done = self.complete().await;
        if done.is_err() {
            self.forget().await;
        }
        done
    }

    /// Forget it.
    pub async fn abort(mut self) {
        self.forget().await;
    }

    async fn forget(&mut self) {
        if let Some(thread) = self.thread.take() {
            // If this fails too, the sweep finds it.
            let _ = self
                .store
                .import(&self.scope, &Import::Abort { thread })
                .await;
        }
        self.stage = Stage::Over;
    }

    async fn take(&mut self, mut bytes: &[u8]) -> Result<()> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (start, rest) = bytes.split_at(end + 1);
            bytes = rest;
            self.keep(start)?;
            let line = std::mem::take(&mut self.partial);
            self.read(&line).await?;
        }
        self.keep(bytes)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<()> {
        let limit = self.options.line_bytes;
        if self.partial.len() + bytes.len() > limit.saturating_add(1) {
            self.line_no += 1;
            return Err(self.fault(Fault::new("", format!("longer than {limit} bytes"))));
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    async fn complete(&mut self) -> Result<Imported> {
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            self.read(&line).await?;
        }
        let (Stage::Over, Some(thread)) = (&self.stage, self.thread.clone()) else {
            self.line_no += 1;
            let why = "the export ends too early, its last line (\"type\":\"end\") is missing";
            return Err(self.fault(Fault::new("", why)));
        };
        let finish = Import::Finish {
            thread: thread.clone(),
            head: self.head.map(|head| self.renamed(head)),
            touched: self.touched,
        };
        self.step(&finish).await?;
        Ok(Imported {
            thread,
            nodes: self.imported.nodes,
            items: self.imported.items,
            tokens: self.tokens_to_head(),
            aliases_left_out: self.imported.aliases_left_out,
        })
    }

    async fn step(&self, step: &Import) -> Result<()> {
        match self.store.import(&self.scope, step).await {
            Err(Error::Invalid { what, why }) => {
                Err(self.fault(Fault::new("", format!("{what}: {why}"))))
            }
            done => done,
        }
    }

    fn fault(&self, fault: Fault) -> Error {
        Error::Malformed {
            line: self.line_no,
            column: fault.column,
            path: fault.path,
            why: fault.why,
        }
    }

    /// Read a line, with its newline if it has one.
    async fn read(&mut self, bytes: &[u8]) -> Result<()> {
        self.line_no += 1;
        let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = parse::line(text).map_err(|fault| self.fault(fault))?;
        let before = digest(&self.hasher);
        self.hasher.update(bytes);
        let mut done = self.line(line, before).await;
        if let Err(Error::Malformed {
            line, column, path, ..
        }) = &mut done
            && *line == self.line_no
        {
            *column = parse::place(text, path);
        }
        done
    }

    /// Take what a line says. `before` is the digest of all lines before it.
    async fn line(&mut self, line: Line, before: [u8; 16]) -> Result<()> {
        match (std::mem::replace(&mut self.stage, Stage::Over), line) {
            (Stage::Header, Line::Header(header)) => {
                self.version = header.version;
                self.stage = Stage::Thread;
            }
            (Stage::Thread, Line::Thread(thread)) => self.open(*thread).await?,
            (Stage::Nodes, Line::Node(node)) => self.node(*node)?,
            (Stage::Items(open), Line::Item(item)) => self.item(open, *item).await?,
            (Stage::Nodes, Line::End(end)) => self.end(end, before)?,
            (Stage::Items(open), line) => {
                let why = format!(
                    "expected item {} of the node on line {}, found a {} line",
                    open.node.items.len() + 1,
                    open.at,
                    line.kind()
                );
                return Err(self.fault(Fault::new("type", why)));
            }
            (stage, line) => {
                let expected = match stage {
                    Stage::Header => "the header",
                    Stage::Thread => "the thread",
                    Stage::Nodes | Stage::Items(_) => "a node or the end",
                    Stage::Over => "nothing after the end",
                };
                let why = format!("expected {expected}, found a {} line", line.kind());
                return Err(self.fault(Fault::new("type", why)));
            }
        }
        Ok(())
    }

    async fn open(&mut self, line: ThreadLine) -> Result<()> {
        match (self.version, line.tokens) {
            (1, Some(_)) => {
                let why = "unknown member; throughline.export/1 has none of this name";
                return Err(self.fault(Fault::new("tokens", why)));
            }
            (2.., None) => {
                return Err(self.fault(uncounted()));
            }
            (_, tokens) => self.tokens = tokens,
        }
        let mut thread = line.thread;
        if let Some(id) = &self.options.rename {
            thread.id = id.clone();
            // They are names of the thread that the export was made of.
            self.imported.aliases_left_out = std::mem::take(&mut thread.aliases).len() as u64;
        }
        self.touched = line.touched;
        self.head = line.head;
        self.thread_line = self.line_no;
        let id = thread.id.clone();
        let open = Import::Open {
            thread,
            created: line.created,
        };
        self.step(&open).await?;
        self.thread = Some(id);
        self.stage = Stage::Nodes;
        Ok(())
    }

    fn node(&mut self, line: NodeLine) -> Result<()> {
        let bad = |path: &str, why: String| Err(self.fault(Fault::new(path, why)));
        if self.nodes.contains_key(&line.node) {
            return bad("node", format!("{} stands there twice", line.node));
        }
        let before = match line.parent {
            None => Ends::default(),
            Some(parent) => match self.nodes.get(&parent) {
                Some(ends) => *ends,
                None => return bad("parent", format!("{parent} does not stand before it")),
            },
        };
        let expected = (before.last.saturating_add(1), line.first);
        if expected.0 != expected.1 {
            return bad(
                "first",
                format!("expected {}, found {}", expected.0, expected.1),
            );
        }
        let known = self.runs.get(&line.node.run).copied();
        let next_item = known.map_or(1, |known| known.next_item);
        if line.first_item != next_item {
            let found = line.first_item;
            return bad("first_item", format!("expected {next_item}, found {found}"));
        }
        if known.is_some_and(|known| known.last_step >= line.node.step) {
            return bad(
                "node",
                "a later step of its run stands before it".to_owned(),
            );
        }
        let (Some(last), Some(after)) = (
            before.last.checked_add(u64::from(line.items)),
            next_item.checked_add(line.items),
        ) else {
            return bad("items", format!("{} are too many", line.items));
        };
        if line.items == 0 {
            return bad("items", "a node has at least one".to_owned());
        }
        let id = match (known, &self.options.rename) {
            (Some(known), _) => known.id,
            (None, Some(_)) => self.store.ids().run(),
            (None, None) => line.node.run,
        };
        let known = Known {
            id,
            next_item: after,
            last_step: line.node.step,
        };
        self.runs.insert(line.node.run, known);
        let node = ImportNode {
            node: self.renamed(line.node),
            parent: line.parent.map(|parent| self.renamed(parent)),
            items: Vec::new(),
            open: line.open,
            state: line.state.clone(),
            created: line.created,
            kind: line.kind,
            mode: line.mode,
            ended: line.ended,
            begun: line.begun,
            note: line.note.clone(),
            hidden: line.hidden,
        };
        let ends = Ends { last, ..before };
        self.nodes.insert(line.node, ends);
        self.stage = Stage::Items(Box::new(Open {
            line,
            at: self.line_no,
            node,
        }));
        Ok(())
    }

    async fn item(&mut self, mut open: Box<Open>, item: ItemLine) -> Result<()> {
        let place = u32::try_from(open.node.items.len()).unwrap_or(u32::MAX);
        let no = open.line.first_item.saturating_add(place);
        let position = open.line.first.saturating_add(u64::from(place));
        if item.no != no {
            let why = format!("expected {no}, found {}", item.no);
            return Err(self.fault(Fault::new("no", why)));
        }
        if item.position != position {
            let why = format!("expected {position}, found {}", item.position);
            return Err(self.fault(Fault::new("position", why)));
        }
        let tokens = self.tokens_of(&item)?;
        if let Some(ends) = self.nodes.get_mut(&open.line.node) {
            ends.tokens = ends.tokens.saturating_add(u64::from(tokens));
        }
        open.node.items.push(match item.what {
            What::Message { kind, message, .. } => {
                ImportItem::Content(ItemContent::counting(kind, &message, tokens))
            }
            What::Redacted {
                kind,
                source,
                redaction,
            } => {
                let said = ItemContent::bodiless(kind, source.as_ref(), tokens);
                ImportItem::Redacted(said, redaction)
            }
            What::Gap => ImportItem::Gap,
        });
        self.imported.items += 1;
        if place + 1 < open.line.items {
            self.stage = Stage::Items(open);
            return Ok(());
        }
        let Some(thread) = self.thread.clone() else {
            return Err(Error::Closed);
        };
        let node = Box::new(open.node);
        self.step(&Import::Node { thread, node }).await?;
        self.imported.nodes += 1;
        self.stage = Stage::Nodes;
        Ok(())
    }

    /// What an item counts as: what it counted as where it comes from. Version 1 need not say it; the
    /// item is counted here then, unless nothing is left of it.
    fn tokens_of(&self, item: &ItemLine) -> Result<u32> {
        match (item.tokens, &item.what) {
            (Some(tokens), _) => Ok(tokens),
            (None, What::Gap) => Ok(0),
            (None, _) if self.version > 1 => Err(self.fault(uncounted())),
            (None, What::Message { kind, message, .. }) => Ok(crate::item::counted(*kind, message)),
            (None, What::Redacted { .. }) => Ok(0),
        }
    }

    /// Tokens of all items up to the head, added up.
    fn tokens_to_head(&self) -> u64 {
        let ends = self.head.and_then(|head| self.nodes.get(&head));
        ends.map_or(0, |ends| ends.tokens)
    }

    fn end(&self, end: EndLine, digest: [u8; 16]) -> Result<()> {
        let bad = |path: &str, why: String| Err(self.fault(Fault::new(path, why)));
        let Counts { nodes, items, .. } = self.imported;
        if end.nodes != nodes {
            return bad(
                "nodes",
                format!("{} were announced, {nodes} came", end.nodes),
            );
        }
        if end.items != items {
            return bad(
                "items",
                format!("{} were announced, {items} came", end.items),
            );
        }
        if end.digest != digest {
            let why = "the lines before are not those that were exported";
            return bad("digest", why.to_owned());
        }
        let of_thread = |path: &str, why: String| {
            Err(Error::Malformed {
                line: self.thread_line,
                column: 1,
                path: path.into(),
                why,
            })
        };
        if let Some(head) = self.head
            && !self.nodes.contains_key(&head)
        {
            return of_thread("head", format!("the head {head} is not among the nodes"));
        }
        let counted = self.tokens_to_head();
        if let Some(tokens) = self.tokens
            && tokens != counted
        {
            let why = format!("the items up to the head count as {counted}, not as {tokens}");
            return of_thread("tokens", why);
        }
        Ok(())
    }

    /// A node under its id here.
    fn renamed(&self, node: NodeId) -> NodeId {
        let run = self.runs.get(&node.run).map_or(node.run, |known| known.id);
        NodeId { run, ..node }
    }
}

/// A line of version 2 that does not say what it counts as.
fn uncounted() -> Fault {
    Fault::new("tokens", "expected a whole number, found nothing")
}
