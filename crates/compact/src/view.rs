//! What a model is shown: a function of the record and an epoch.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use throughline_model::{Body, Content, Message, Output, Role, Source, ToolResult};

use crate::epoch::Epoch;
use crate::facts::outcome::mark;
use crate::group::{ContentDisplay, ContentGroup, MessageGroups};
use crate::record::{Entry, Record};
use crate::shorten::shorten;
use crate::text;
use crate::tokens;
use crate::trials::planted;

/// Messages as they are shown, and their size.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) units: u64,
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
    /// Units that results of a message may have, by its place.
    pub(crate) shortened: BTreeMap<usize, u64>,
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
        let shortened = epoch.shortened.iter();
        let shortened = shortened
            .filter_map(|one| Some((record.exactly(one.seq)?, one.cap)))
            .collect();
        Self {
            cut: record.place(epoch.cut_seq),
            upto: record.place(epoch.upto_seq.saturating_add(1)),
            kept,
            shortened,
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

    pub(crate) fn add(&mut self, message: Arc<Message>, units: u64) {
        self.units += units;
        self.messages.push(message);
    }

    /// A group that is shown in full though it is old.
    fn add_kept(&mut self, record: &Record, at: usize, frame: &Frame) {
        let group = &record.groups()[at];
        for member in &group.members {
            if member.place >= frame.upto {
                continue;
            }
            let entry = &record.entries()[member.place];
            let units = match &member.contents {
                None => {
                    self.add(Arc::clone(&entry.message), entry.units.into());
                    u64::from(entry.units)
                }
                Some(contents) => {
                    let contents = contents.iter();
                    let contents = contents.filter_map(|at| entry.message.contents.get(*at));
                    let mut message = bare(&entry.message);
                    message.contents = contents.cloned().collect();
                    let units = tokens::units(&message).into();
                    self.add(Arc::new(message), units);
                    units
                }
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
        if (folded && !planted("compact-result-alone")) || results_over(entry, cap(place, frame)) {
            return false;
        }
        self.add(Arc::clone(&entry.message), entry.units.into());
        true
    }

    fn add_parts(&mut self, record: &Record, place: usize, frame: &Frame) {
        let entry = &record.entries()[place];
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
                    quoted.push(quote(
                        result,
                        "Result without a call",
                        entry.seq,
                        frame.single,
                    ));
                }
                (ContentDisplay::Plain, Some(result)) if folded => {
                    quoted.push(quote(result, "Late result", entry.seq, frame.single));
                }
                (ContentDisplay::Plain, Some(result)) => {
                    let mut content = content.clone();
                    if let Some(short) = shorter(result, cap(place, frame), entry.seq) {
                        content.body = Body::ToolResult(short);
                        // The vendor's own form would still have all of it.
                        content.vendor = None;
                    }
                    shown.contents.push(content);
                }
                (ContentDisplay::Plain | ContentDisplay::Orphan, None) => {
                    shown.contents.push(content.clone());
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

fn cap(place: usize, frame: &Frame) -> u64 {
    let own = frame.shortened.get(&place).copied();
    own.map_or(frame.single, |own| own.min(frame.single))
}

/// Whether a result of the message is larger than the cap.
fn results_over(entry: &Entry, cap: u64) -> bool {
    if u64::from(entry.units) <= cap {
        return false;
    }
    let results = entry.message.contents.iter();
    results
        .filter_map(Content::as_tool_result)
        .any(|result| over(result, cap).is_some())
}

/// The text of a result, if it can be shown in part: media must stay beside its text.
fn divisible(result: &ToolResult) -> Option<Cow<'_, str>> {
    let only_text = match &result.output {
        Output::None => false,
        Output::Text(_) | Output::Json(_) => true,
        Output::Parts(parts) => parts.iter().all(|part| part.as_text().is_some()),
    };
    only_text.then(|| text::of_output(&result.output))
}

/// Units of the text of a result that can be shown in part.
pub(crate) fn text_size(result: &ToolResult) -> Option<u64> {
    divisible(result).map(|text| tokens::text_units(&text).into())
}

/// The text of a result that is larger than a cap.
fn over(result: &ToolResult, cap: u64) -> Option<Cow<'_, str>> {
    let text = divisible(result)?;
    // A token has at least one byte.
    (text.len() as u64 > cap && u64::from(tokens::text_units(&text)) > cap).then_some(text)
}

fn shorter(result: &ToolResult, cap: u64, seq: u64) -> Option<ToolResult> {
    let text = over(result, cap)?;
    let short = shorten(&text, cap, seq, result.outcome);
    let mut result = result.clone();
    result.output = Output::Text(short);
    Some(result)
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
