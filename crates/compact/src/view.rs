//! What a model is shown: a function of the record and an epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use throughline_model::{
    Body, Content, Message, Outcome, Output, Pairing, Role, Source, ToolResult,
};

use crate::epoch::{Epoch, LeftOut, Shortened};
use crate::facts::outcome::mark;
use crate::group::{ContentDisplay, ContentGroup, MessageGroups};
use crate::read_back::{LATE_RESULT, RESULT_ALONE};
use crate::record::{Entry, Record};
use crate::result_text::{is_over, over, shorter};
use crate::shorten::shorten;
use crate::text;
use crate::tokens;
use crate::trials::planted;

/// About how large the result is that rendering adds for a call without one.
pub(crate) const MISSING_RESULT: u64 = 28;

/// About what rendering adds for a result without output that is not `ok`.
const NAMED_OUTCOME: u64 = 16;

/// Messages as they are shown, and their size.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) messages: Vec<Arc<Message>>,
    /// Units of the messages.
    units: u64,
    /// Units of what rendering adds.
    added: u64,
    /// How many messages stand before the tail.
    pub(crate) head: usize,
    /// Units of tool history, blocks included.
    pub(crate) tool_units: u64,
}

/// What decides how a message of the tail is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// The first place of the tail.
    pub(crate) cut: usize,
    /// The places before this one were there when the epoch was made.
    pub(crate) upto: usize,
    /// Groups that are shown in full though they began before the cut.
    pub(crate) kept: BTreeSet<usize>,
    /// Results that these groups do not show, by the place of their message.
    pub(crate) left_out: BTreeMap<usize, Vec<LeftOut>>,
    /// Units that results of a message may have, by its place.
    pub(crate) shortened: BTreeMap<usize, u64>,
    /// Units that texts of a request may have, by its place.
    pub(crate) requests: BTreeMap<usize, u64>,
    /// Units that any result may have.
    pub(crate) single: u64,
}

impl Frame {
    /// The frame of an epoch; of none, everything is tail.
    pub(crate) fn of(record: &Record, epoch: Option<&Epoch>, single: u64) -> Self {
        let Some(epoch) = epoch else {
            return Self {
                single,
                ..Self::default()
            };
        };
        let kept = epoch.blocks.iter().flat_map(|block| &block.kept);
        let kept = kept.flat_map(|seq| groups_from(record, *seq)).collect();
        let mut left_out: BTreeMap<usize, Vec<LeftOut>> = BTreeMap::new();
        for one in epoch.blocks.iter().flat_map(|block| &block.left_out) {
            if let Some(place) = record.exactly(one.seq) {
                left_out.entry(place).or_default().push(*one);
            }
        }
        let by_place = |all: &[Shortened]| {
            let places = all
                .iter()
                .map(|one| Some((record.exactly(one.seq)?, one.cap)));
            places.flatten().collect()
        };
        Self {
            cut: record.place(epoch.cut_seq),
            upto: record.place(epoch.upto_seq.saturating_add(1)),
            kept,
            left_out,
            shortened: by_place(&epoch.shortened),
            requests: by_place(&epoch.shortened_requests),
            single,
        }
    }
}

/// The groups that begin in a message.
pub(crate) fn groups_from(record: &Record, seq: u64) -> Vec<usize> {
    let Some(place) = record.exactly(seq) else {
        return Vec::new();
    };
    let mut groups = record.groups_of(place);
    groups.retain(|group| record.groups()[*group].first() == place);
    groups
}

impl View {
    /// The view of a whole record.
    pub(crate) fn of(record: &Record, epoch: Option<&Epoch>, frame: &Frame) -> Self {
        let mut view = Self::default();
        for block in epoch.iter().flat_map(|epoch| &epoch.blocks) {
            for group in block.kept.iter().flat_map(|seq| groups_from(record, *seq)) {
                view.add_kept(record, group, frame);
            }
            if let Some(message) = block.message() {
                view.tool_units += block.units;
                view.add(Arc::new(message), block.units);
            }
        }
        view.head = view.messages.len();
        for place in frame.cut..record.len() {
            view.add_tail(record, place, frame);
        }
        view
    }

    /// The hash of everything before the tail.
    pub(crate) fn prefix(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut text = String::new();
        for message in self.messages.iter().take(self.head) {
            text.clear();
            message.write_json(&mut text);
            hasher.update(text.as_bytes()).update(b"\n");
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Units of all that is sent: the messages and what rendering adds.
    pub(crate) fn size(&self) -> u64 {
        self.units + self.added
    }

    pub(crate) fn add(&mut self, message: Arc<Message>, units: u64) {
        self.units += units;
        for content in &message.contents {
            match &content.body {
                Body::ToolCall(_) if !planted("compact-placeholders-uncounted") => {
                    self.added += MISSING_RESULT;
                }
                Body::ToolResult(result) => {
                    if result.pairing() == Pairing::Answers {
                        self.added = self.added.saturating_sub(MISSING_RESULT);
                    }
                    if result.output == Output::None && result.outcome != Outcome::Ok {
                        self.added += NAMED_OUTCOME;
                    }
                }
                _ => {}
            }
        }
        self.messages.push(message);
    }

    /// A group that is shown though it is old.
    fn add_kept(&mut self, record: &Record, at: usize, frame: &Frame) {
        let group = &record.groups()[at];
        for member in &group.members {
            if member.place >= frame.upto {
                continue;
            }
            let entry = &record.entries()[member.place];
            let caps = MessageCaps::of(member.place, frame);
            let left_out = frame.left_out.get(&member.place);
            let in_part = left_out.is_some() || caps.shorten(entry);
            let units = if member.contents.is_none() && !in_part {
                self.add(Arc::clone(&entry.message), entry.units.into());
                u64::from(entry.units)
            } else {
                let contents = &entry.message.contents;
                let shown = |at: usize| {
                    let content = contents.get(at)?;
                    let mut left_out = left_out.into_iter().flatten();
                    let is_left_out = left_out.any(|one| one.content == at as u64);
                    let mark = is_left_out.then(|| without_output(content, entry.seq));
                    Some(mark.unwrap_or_else(|| caps.content(content, entry.seq)))
                };
                let mut message = bare(&entry.message);
                message.contents = match &member.contents {
                    None => (0..contents.len()).filter_map(shown).collect(),
                    Some(some) => some.iter().copied().filter_map(shown).collect(),
                };
                let units = tokens::units(&message).into();
                self.add(Arc::new(message), units);
                units
            };
            if group.is_tools() {
                self.tool_units += units;
            }
        }
    }

    /// One message of the tail.
    pub(crate) fn add_tail(&mut self, record: &Record, place: usize, frame: &Frame) {
        let entry = &record.entries()[place];
        let before = self.units;
        if !self.add_plain(record, place, frame) {
            self.add_parts(record, place, frame);
        }
        if record.groups()[entry.placed.main()].is_tools() {
            self.tool_units += self.units - before;
        }
    }

    /// The message as it is, if nothing of it has to change.
    fn add_plain(&mut self, record: &Record, place: usize, frame: &Frame) -> bool {
        let entry = &record.entries()[place];
        let MessageGroups::Whole(group) = entry.placed else {
            return false;
        };
        let folded = record.groups()[group].first() < frame.cut;
        let shortens = MessageCaps::of(place, frame).shorten(entry);
        if (folded && !planted("compact-result-alone")) || shortens {
            return false;
        }
        self.add(Arc::clone(&entry.message), entry.units.into());
        true
    }

    fn add_parts(&mut self, record: &Record, place: usize, frame: &Frame) {
        let entry = &record.entries()[place];
        let caps = MessageCaps::of(place, frame);
        let mut shown = bare(&entry.message);
        let mut quoted = Vec::new();
        for (at, content) in entry.message.contents.iter().enumerate() {
            let ContentGroup { group, display } = match &entry.placed {
                MessageGroups::Whole(group) => ContentGroup {
                    group: *group,
                    display: ContentDisplay::Plain,
                },
                MessageGroups::Each(all) => all[at],
            };
            let folded = record.groups()[group].first() < frame.cut && !frame.kept.contains(&group);
            let old = record.groups()[group].first() < frame.cut && place < frame.upto;
            match (display, content.as_tool_result()) {
                (ContentDisplay::Duplicate, _) => {}
                // A block or a kept group has it already.
                (ContentDisplay::Plain | ContentDisplay::Orphan, _) if old => {}
                (ContentDisplay::Orphan, Some(result)) => {
                    quoted.push(quote(result, RESULT_ALONE, entry.seq, frame.single));
                }
                (ContentDisplay::Plain, Some(result)) if folded => {
                    quoted.push(quote(result, LATE_RESULT, entry.seq, frame.single));
                }
                (ContentDisplay::Plain, _) | (ContentDisplay::Orphan, None) => {
                    shown.contents.push(caps.content(content, entry.seq));
                }
            }
        }
        if !shown.contents.is_empty() {
            let units = tokens::units(&shown).into();
            self.add(Arc::new(shown), units);
        }
        if !quoted.is_empty() {
            let mut message = Message::new(Role::User, quoted);
            message.source = Some(Source::Tool);
            let units = tokens::units(&message).into();
            self.add(Arc::new(message), units);
        }
    }
}

/// The message without its contents.
fn bare(message: &Message) -> Message {
    Message {
        id: message.id.clone(),
        role: message.role.clone(),
        contents: Vec::new(),
        author: message.author.clone(),
        created: message.created,
        source: message.source.clone(),
        status: message.status.clone(),
        usage: message.usage.clone(),
        meta: message.meta.clone(),
        extra: message.extra.clone(),
    }
}

/// Units that parts of one message may have.
#[derive(Clone, Copy)]
struct MessageCaps {
    /// Each result.
    result: u64,
    /// Each text, if it is a request that gives way.
    request: Option<u64>,
}

impl MessageCaps {
    fn of(place: usize, frame: &Frame) -> Self {
        let own = frame.shortened.get(&place).copied();
        Self {
            result: own.map_or(frame.single, |own| own.min(frame.single)),
            request: frame.requests.get(&place).copied(),
        }
    }

    /// Whether a part of the message is larger.
    fn shorten(&self, entry: &Entry) -> bool {
        let least = self.request.map_or(self.result, |own| own.min(self.result));
        if u64::from(entry.units) <= least {
            return false;
        }
        let contents = entry.message.contents.iter();
        contents.into_iter().any(|content| match &content.body {
            Body::ToolResult(result) => over(result, self.result).is_some(),
            Body::Text(text) => self.request.is_some_and(|cap| is_over(&text.text, cap)),
            _ => false,
        })
    }

    /// A content, in part if it is larger.
    fn content(&self, content: &Content, seq: u64) -> Content {
        let body = match (&content.body, self.request) {
            (Body::ToolResult(result), _) => {
                shorter(result, self.result, seq).map(Body::ToolResult)
            }
            (Body::Text(text), Some(cap)) if is_over(&text.text, cap) => {
                let mut text = text.clone();
                text.text = shorten(&text.text, cap, seq, Outcome::Ok);
                Some(Body::Text(text))
            }
            _ => None,
        };
        let mut content = content.clone();
        if let Some(body) = body {
            content.body = body;
            // The vendor's own form would still have all of it.
            content.vendor = None;
        }
        content
    }
}

/// A result with a mark in place of its output.
fn without_output(content: &Content, seq: u64) -> Content {
    let mut content = content.clone();
    if let Body::ToolResult(result) = &mut content.body {
        let ended = mark(result.outcome);
        result.output = Output::Text(format!("[left out, all of it is #{seq}{ended}]"));
        // The vendor's own form would still have all of it.
        content.vendor = None;
    }
    content
}

/// A result as text that no vendor takes for one, with its outcome unless that is `ok`.
fn quote(result: &ToolResult, what: &str, seq: u64, cap: u64) -> Content {
    let name = result.name.as_deref().unwrap_or(result.family.as_str());
    let name = text::one_line(name, 80);
    let output = text::of_output(&result.output);
    let output = if u64::from(tokens::text_units(&output)) > cap {
        shorten(&output, cap, seq, result.outcome)
    } else {
        output.into_owned()
    };
    let ended = mark(result.outcome);
    Content::text(format!("[{what} of {name}{ended} #{seq}]\n{output}"))
}
