//! `throughline threads tree`.

use std::process::ExitCode;

use throughline_model::json::ArrayWriter;
use throughline_store::{NodeId, TreeNode};

use super::{Context, IfMissing, json_form, text};
use crate::args::Tree;
use crate::failure::Failure;
use crate::output;

pub(super) async fn tree(context: &Context<'_>, args: &Tree) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let opened = context
        .find_whole(&store, &args.name, "show the branches of")
        .await?;
    let thread = &opened.thread;
    // One more than asked for tells whether there are more.
    let wanted = args.limit.saturating_add(1);
    let mut nodes: Vec<TreeNode> = Vec::new();
    while nodes.len() < wanted {
        let after = nodes.last().map(|node| node.node).or(args.after);
        let left = wanted - nodes.len();
        let page = store.tree(&context.scope, &thread.id, after, left).await;
        let page = page.map_err(|error| context.failure(&error))?;
        if page.is_empty() {
            break;
        }
        nodes.extend(page);
    }
    let more = nodes.len() > args.limit;
    nodes.truncate(args.limit);
    let next = nodes.last().map(|node| node.node).filter(|_| more);
    let head = thread.head.map(|head| head.node);
    if context.json {
        let form = json_form::object(|object| {
            json_form::thread(object.key("thread"), thread);
            let mut array = ArrayWriter::new(object.key("nodes"));
            for node in &nodes {
                json_form::tree_node(array.slot(), node, head);
            }
            array.end();
            json_form::opt_node(object, "next", next);
        });
        output::document(&form, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&text::thread(thread))?;
    for node in &nodes {
        output::line(&line(node, head))?;
    }
    match next {
        Some(next) => output::line(&format!("… more: --after {next}"))?,
        None if nodes.is_empty() => output::line("no nodes")?,
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// A node: its name, the response, the node that it continues, and what is in it.
fn line(node: &TreeNode, head: Option<NodeId>) -> String {
    let mut line = format!("{}  resp_{}", node.node, node.node.run.to_hex());
    if let Some(parent) = node.parent {
        line.push_str(&format!("  after {parent}"));
    }
    line.push_str(&format!("  #{}", node.first));
    if node.last > node.first {
        line.push_str(&format!("-{}", node.last));
    }
    line.push_str(&format!("  {}", text::counted(node.messages, "message")));
    for (flag, word) in [(node.open, "open"), (head == Some(node.node), "head")] {
        if flag {
            line.push_str("  ");
            line.push_str(word);
        }
    }
    line
}
