//! Threads, messages, nodes and runs.

use throughline::thread::Redacted;
use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson};
use throughline_store::{
    Entry, Execution, Journal, Listing, MovedBy, NodeId, Run, RunKind, StepRecord, Thread, Tip,
    TreeNode,
};

/// Write an object.
pub fn object(write: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    write(&mut object);
    object.end();
    out
}

/// Write an array of what `write` makes of each value.
pub fn array<T>(out: &mut String, values: &[T], write: impl Fn(&mut String, &T)) {
    let mut array = ArrayWriter::new(out);
    for value in values {
        write(array.slot(), value);
    }
    array.end();
}

/// A text, or null.
pub fn opt_str(object: &mut ObjectWriter<'_>, key: &str, text: Option<&str>) {
    match text {
        Some(text) => object.str(key, text),
        None => object.raw(key, "null"),
    };
}

/// JSON as it is, or null.
pub fn opt_raw(object: &mut ObjectWriter<'_>, key: &str, raw: Option<&RawJson>) {
    object.raw(key, raw.map_or("null", RawJson::get));
}

/// A number, or null.
pub fn opt_number(object: &mut ObjectWriter<'_>, key: &str, number: Option<u64>) {
    match number {
        Some(number) => object.number(key, number),
        None => object.raw(key, "null"),
    };
}

/// The id of a node, or null.
pub fn opt_node(object: &mut ObjectWriter<'_>, key: &str, node: Option<NodeId>) {
    opt_str(object, key, node.map(|node| node.to_string()).as_deref());
}

/// A thread: its names, settings, head and times.
pub fn thread(out: &mut String, thread: &Thread) {
    let mut object = ObjectWriter::new(out);
    object.str("id", thread.id.as_str());
    opt_str(&mut object, "title", thread.title.as_deref());
    array(object.key("aliases"), &thread.aliases, |out, alias| {
        let mut object = ObjectWriter::new(out);
        object.str("kind", &alias.kind).str("name", &alias.name);
        object.end();
    });
    opt_raw(&mut object, "meta", thread.meta.as_ref());
    opt_raw(&mut object, "settings", thread.settings.as_ref());
    object.str("moved_by", moved_by(thread.moved_by));
    opt_number(&mut object, "keep", thread.keep);
    tip(object.key("head"), thread.head.as_ref());
    object.number("tokens", thread.tokens());
    object.number("version", thread.version.0);
    object.number("created", thread.created);
    object.number("touched", thread.touched);
    object.end();
}

/// The word for what moves the head of a thread.
pub const fn moved_by(moved_by: MovedBy) -> &'static str {
    match moved_by {
        MovedBy::AnyRun => "any_run",
        MovedBy::LeasedRuns => "leased_runs",
    }
}

/// Where a branch ends, or null.
pub fn tip(out: &mut String, tip: Option<&Tip>) {
    let Some(tip) = tip else {
        out.push_str("null");
        return;
    };
    let mut object = ObjectWriter::new(out);
    object.str("node", &tip.node.to_string());
    object.number("last", tip.last);
    object.number("tokens", tip.tokens);
    object.bool("open", tip.open);
    object.bool("unsent", tip.unsent);
    object.end();
}

/// A message with its place; one that is only in a journal has no position.
pub fn entry(out: &mut String, entry: &Entry) {
    let mut object = ObjectWriter::new(out);
    // What is only in the journal has no position.
    opt_number(&mut object, "first", Some(entry.first).filter(|at| *at > 0));
    opt_number(&mut object, "last", Some(entry.last).filter(|at| *at > 0));
    object.str("run", &entry.at.run.to_string());
    object.number("no", u64::from(entry.at.no));
    object.number("tokens", u64::from(entry.tokens));
    match &entry.redacted {
        Some(redaction) => {
            let mut inner = ObjectWriter::new(object.key("redacted"));
            inner.str("by", &redaction.by).number("at", redaction.at);
            inner.end();
        }
        None => {
            object.raw("redacted", "null");
        }
    }
    entry.message.write_json(object.key("message"));
    object.end();
}

/// A node of a thread's tree.
pub fn tree_node(out: &mut String, node: &TreeNode, head: Option<NodeId>) {
    let mut object = ObjectWriter::new(out);
    object.str("node", &node.node.to_string());
    opt_node(&mut object, "parent", node.parent);
    object.number("first", node.first);
    object.number("last", node.last);
    object.number("first_item", u64::from(node.first_item));
    object.str("run", &node.node.run.to_string());
    object.str("response", &format!("resp_{}", node.node.run.to_hex()));
    object.number("messages", node.messages);
    object.bool("open", node.open);
    object.bool("head", head == Some(node.node));
    object.number("created", node.created);
    object.end();
}

/// `{"thread","position","items","by","at"}`, each item with `run` and `no`.
pub fn redacted(out: &mut String, redacted: &Redacted) {
    let mut object = ObjectWriter::new(out);
    object.str("thread", redacted.thread.as_str());
    object.number("position", redacted.position);
    array(object.key("items"), &redacted.items, |out, item| {
        let mut object = ObjectWriter::new(out);
        object.str("run", &item.run.to_string());
        object.number("no", u64::from(item.no));
        object.end();
    });
    object.str("by", &redacted.by).number("at", redacted.at);
    object.end();
}

/// The word for the kind of a run.
pub const fn run_kind(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Turn => "turn",
        RunKind::Append => "append",
    }
}

/// A run, without its journal.
pub fn run(out: &mut String, run: &Run) {
    let mut object = ObjectWriter::new(out);
    object.str("id", &run.id.to_string());
    object.str("thread", run.thread.as_str());
    object.str("kind", run_kind(run.kind));
    object.str("mode", run.mode.as_str());
    object.str("state", run.state.as_str());
    object.bool("leased", run.leased);
    object.number("epoch", u64::from(run.epoch));
    object.number("attempt", u64::from(run.attempt));
    opt_node(&mut object, "base", run.base);
    opt_node(&mut object, "published", run.published);
    object.bool("cancelling", run.cancelling);
    object.number("created", run.created);
    object.number("progress", run.progress);
    opt_str(&mut object, "key", run.key.as_deref());
    opt_raw(&mut object, "note", run.note.as_ref());
    object.end();
}

/// A step of a journal.
pub fn step(out: &mut String, step: &StepRecord) {
    let mut object = ObjectWriter::new(out);
    object.number("no", u64::from(step.no));
    object.number("first", u64::from(step.first));
    object.number("items", u64::from(step.items));
    opt_node(&mut object, "node", step.node);
    opt_raw(&mut object, "note", step.note.as_ref());
    object.end();
}

/// A tool call of a journal.
pub fn call(out: &mut String, call: &Execution) {
    let mut object = ObjectWriter::new(out);
    object.number("step", u64::from(call.at.step));
    object.number("position", u64::from(call.at.position));
    object.str("call", &call.call);
    object.str("tool", &call.tool);
    object.str("effect", call.effect.as_str());
    object.str("state", call.state.as_str());
    object.str("key", &call.key);
    object.number("result", u64::from(call.result));
    let approval = call.approval.map(|id| id.to_string());
    opt_str(&mut object, "approval", approval.as_deref());
    let taken_by = call.taken_by.map(|id| id.to_string());
    opt_str(&mut object, "taken_by", taken_by.as_deref());
    object.end();
}

/// `{"run","request","inputs","entries","steps","calls","unsent"}`: a run with everything that is
/// journaled of it, and the results of its last node that were never sent.
pub fn journal(journal: &Journal, unsent: &[Entry]) -> String {
    object(|object| {
        run(object.key("run"), &journal.run);
        opt_raw(object, "request", journal.request.as_ref());
        object.number("inputs", u64::from(journal.inputs));
        array(object.key("entries"), &journal.entries, entry);
        array(object.key("steps"), &journal.steps, step);
        array(object.key("calls"), &journal.calls, call);
        array(object.key("unsent"), unsent, entry);
    })
}

/// A page of a list: `{KEY: […], "next"}`.
pub fn listing<T>(key: &str, listing: &Listing<T>, write: impl Fn(&mut String, &T)) -> String {
    object(|object| {
        array(object.key(key), &listing.found, write);
        let next = listing.next.map(|next| next.to_string());
        opt_str(object, "next", next.as_deref());
    })
}
