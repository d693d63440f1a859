//! `throughline threads show`.

use std::collections::HashMap;
use std::process::ExitCode;

use throughline::thread::{Owner, VendorCopy};
use throughline_model::json::ArrayWriter;
use throughline_server::api::native::forms::ShownThread;
use throughline_store::{At, Entry, NodeId, NodeRef, Opened, Span, Store, TreeNode};

use super::{Context, IfMissing, json_form, text};
use crate::args::Show;
use crate::failure::Failure;
use crate::output;

/// Nodes that are listed at once.
const PAGE: usize = 256;

pub(super) async fn show(context: &Context<'_>, args: &Show) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let window = match (args.tree, args.after) {
        (false, None) => args.limit,
        (true, _) | (false, Some(_)) => 0,
    };
    let (at, opened) = context.find(&store, &args.name, window).await?;
    if args.tree {
        return tree(context, &store, &opened).await;
    }
    let (entries, more) = match args.after {
        None => {
            let first = opened.entries.first().map_or(1, |entry| entry.first);
            (opened.entries.clone(), first > 1)
        }
        Some(after) => {
            let span = Span::After(after);
            let page = store.read(&context.scope, &at, span, args.limit).await;
            let page = page.map_err(|error| context.failure(&error))?;
            (page.entries, page.more)
        }
    };
    let kept = Keeping::of(context, &store, &opened).await?;
    if context.json {
        let shown = ShownThread {
            opened: &opened,
            entries: &entries,
            more,
            owner: &kept.owner,
            copies: &kept.copies,
        };
        output::document(&shown.to_json(), false)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&text::thread(&opened.thread))?;
    kept.print()?;
    if let (At::Node(_), Some(tip)) = (&at, opened.tip) {
        output::line(&format!(
            "at {}, {}, {}",
            tip.node,
            text::counted(tip.last, "item"),
            text::counted(tip.tokens, "token")
        ))?;
    }
    if more && args.after.is_none() {
        output::line("… earlier messages: raise --limit, or start with --after 0")?;
    }
    for entry in &entries {
        output::line(&text::entry(entry))?;
    }
    if let (true, Some(after), Some(last)) = (more, args.after, entries.last()) {
        let last = last.last.max(after);
        output::line(&format!("… more: --after {last}"))?;
    }
    for entry in &opened.unsent {
        output::line(&format!("not sent yet, {}", text::entry(entry)))?;
    }
    if let Some(run) = &opened.unsettled {
        output::line(&format!("to be settled: {}", text::run(run)))?;
    }
    if opened.queued > 0 {
        let waiting = text::counted(opened.queued, "message");
        output::line(&format!("{waiting} in the queue"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Who keeps a thread, and what vendors have of it.
struct Keeping {
    owner: Owner,
    copies: Vec<VendorCopy>,
}

impl Keeping {
    async fn of(context: &Context<'_>, store: &Store, opened: &Opened) -> Result<Self, Failure> {
        let (threads, id) = (context.threads(store), &opened.thread.id);
        let failure = |error| context.failure(&error);
        Ok(Self {
            owner: threads.owner_of(id).await.map_err(failure)?,
            copies: threads.vendor_copies(id).await.map_err(failure)?,
        })
    }

    /// What is not as with most threads.
    fn print(&self) -> Result<(), Failure> {
        if self.owner != Owner::Local {
            output::line(&format!("kept by {}", text::owner(&self.owner)))?;
        }
        let mut copies = self.copies.iter();
        copies.try_for_each(|copy| output::line(&text::vendor_copy(copy)))
    }
}

/// The nodes of a thread: those that follow each other under each other, branches indented.
async fn tree(context: &Context<'_>, store: &Store, opened: &Opened) -> Result<ExitCode, Failure> {
    let thread = &opened.thread;
    let head = thread.head.map(|head| head.node);
    let nodes = nodes(context, store, opened).await?;
    if context.json {
        let form = json_form::object(|object| {
            json_form::thread(object.key("thread"), thread);
            let mut array = ArrayWriter::new(object.key("nodes"));
            for node in &nodes {
                json_form::tree_node(array.slot(), node, head);
            }
            array.end();
        });
        output::document(&form, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&text::thread(thread))?;
    let mut depths: HashMap<NodeId, usize> = HashMap::new();
    let mut before = None;
    for node in &nodes {
        let around = node.parent.and_then(|parent| depths.get(&parent)).copied();
        let depth = match (around, node.parent) {
            (Some(depth), Some(_)) if node.parent == before => depth,
            (Some(depth), Some(parent)) => {
                let indent = "  ".repeat(depth + 1);
                output::line(&format!("{indent}from {parent}:"))?;
                depth + 1
            }
            _ => 0,
        };
        depths.insert(node.node, depth);
        before = Some(node.node);
        let mut line = format!("{}{}  #{}", "  ".repeat(depth), node.node, node.first);
        if node.last > node.first {
            line.push_str(&format!("-{}", node.last));
        }
        for (flag, word) in [(node.open, "open"), (head == Some(node.node), "head")] {
            if flag {
                line.push_str("  ");
                line.push_str(word);
            }
        }
        output::line(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn nodes(
    context: &Context<'_>,
    store: &Store,
    opened: &Opened,
) -> Result<Vec<TreeNode>, Failure> {
    let mut nodes: Vec<TreeNode> = Vec::new();
    loop {
        let after = nodes.last().map(|node| node.node);
        let page = store
            .tree(&context.scope, &opened.thread.id, after, PAGE)
            .await
            .map_err(|error| context.failure(&error))?;
        let last = page.len() < PAGE;
        nodes.extend(page);
        if last {
            return Ok(nodes);
        }
    }
}

/// The results of a run's last node that were never sent.
pub(super) async fn unsent(
    context: &Context<'_>,
    store: &Store,
    node: NodeId,
) -> Result<Vec<Entry>, Failure> {
    let at = At::Node(NodeRef::Node(node));
    let opened = store.open(&context.scope, &at, 0).await;
    Ok(opened.map_err(|error| context.failure(&error))?.unsent)
}
