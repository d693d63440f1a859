//! Writing lines. Members that say nothing are left out; the order of members is fixed, so that
//! the same thread always gives the same bytes.

use throughline_model::json::{ArrayWriter, ObjectWriter};

use super::format::{EndLine, ItemLine, Line, NAME, NodeLine, ThreadLine, What};
use crate::{ItemKind, MovedBy, RunKind};

/// Append a line with its newline.
pub(super) fn line(out: &mut String, line: &Line) {
    let mut object = ObjectWriter::new(out);
    object.str("type", line.kind());
    match line {
        Line::Header(header) => {
            object.str("format", &format!("{NAME}{}", header.version));
            object.str("extent", header.extent.as_str());
        }
        Line::Thread(thread) => self::thread(&mut object, thread),
        Line::Node(node) => self::node(&mut object, node),
        Line::Item(item) => self::item(&mut object, item),
        Line::End(end) => self::end(&mut object, end),
    }
    object.end();
    out.push('\n');
}

fn thread(object: &mut ObjectWriter<'_>, line: &ThreadLine) {
    let thread = &line.thread;
    object.str("id", thread.id.as_str());
    if let Some(title) = &thread.title {
        object.str("title", title);
    }
    if !thread.aliases.is_empty() {
        let mut aliases = ArrayWriter::new(object.key("aliases"));
        for alias in &thread.aliases {
            let mut one = ObjectWriter::new(aliases.slot());
            one.str("kind", &alias.kind).str("name", &alias.name);
            one.end();
        }
        aliases.end();
    }
    for (key, raw) in [("meta", &thread.meta), ("settings", &thread.settings)] {
        if let Some(raw) = raw {
            object.raw(key, raw.get());
        }
    }
    object.str("moved_by", moved_by(thread.moved_by));
    if let Some(keep) = thread.keep {
        object.number("keep", keep);
    }
    object.number("created", line.created);
    object.number("touched", line.touched);
    if let Some(head) = line.head {
        object.str("head", &head.to_string());
    }
    if let Some(tokens) = line.tokens {
        object.number("tokens", tokens);
    }
}

fn node(object: &mut ObjectWriter<'_>, node: &NodeLine) {
    object.str("node", &node.node.to_string());
    if let Some(parent) = node.parent {
        object.str("parent", &parent.to_string());
    }
    object.number("first", node.first);
    object.number("first_item", u64::from(node.first_item));
    object.number("items", u64::from(node.items));
    for (key, flag) in [("open", node.open), ("hidden", node.hidden)] {
        if flag {
            object.bool(key, true);
        }
    }
    object.number("created", node.created);
    object.str("kind", run_kind(node.kind));
    object.str("mode", node.mode.as_str());
    object.str("ended", node.ended.as_str());
    object.number("begun", node.begun);
    if let Some(note) = &node.note {
        object.raw("note", note.get());
    }
    if let Some(state) = &node.state {
        object.raw("state", &state.to_json());
    }
}

fn item(object: &mut ObjectWriter<'_>, item: &ItemLine) {
    object.number("no", u64::from(item.no));
    object.number("position", item.position);
    let kind = match &item.what {
        What::Message { kind, .. } | What::Redacted { kind, .. } => *kind,
        What::Gap => ItemKind::Gap,
    };
    object.str("kind", item_kind(kind));
    if let Some(tokens) = item.tokens {
        object.number("tokens", u64::from(tokens));
    }
    match &item.what {
        What::Message { message, again, .. } => {
            if let Some(again) = again {
                let mut place = ObjectWriter::new(object.key("again"));
                place.str("run", &again.run.to_string());
                place.number("no", u64::from(again.no));
                place.end();
            }
            message.write_json(object.key("message"));
        }
        What::Redacted {
            source, redaction, ..
        } => {
            if let Some(source) = source {
                object.str("source", source.as_str());
            }
            let mut redacted = ObjectWriter::new(object.key("redacted"));
            redacted.str("by", &redaction.by).number("at", redaction.at);
            if let Some(left) = &redaction.left {
                redacted.raw("left", left.get());
            }
            redacted.end();
        }
        What::Gap => {}
    }
}

fn end(object: &mut ObjectWriter<'_>, end: &EndLine) {
    object.number("nodes", end.nodes);
    object.number("items", end.items);
    object.str("digest", &hex(&end.digest));
}

/// The digest in hex digits.
pub(super) fn hex(digest: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*digest))
}

pub(super) const fn moved_by(moved_by: MovedBy) -> &'static str {
    match moved_by {
        MovedBy::AnyRun => "any_run",
        MovedBy::LeasedRuns => "leased_runs",
    }
}

pub(super) const fn run_kind(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Turn => "turn",
        RunKind::Append => "append",
    }
}

pub(super) const fn item_kind(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Message => "message",
        ItemKind::Part => "part",
        ItemKind::Gap => "gap",
    }
}
