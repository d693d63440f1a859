//! Names that a conversation has shown: paths, files, identifiers, ids.
//!
//! Later calls are made of such names, so they are what a digest must keep. A text is scanned once;
//! nothing here knows a language or a project.

mod entry;
mod hash;
mod line_number;
mod salient;
mod scan;
mod worth;

use std::collections::HashMap;

use throughline_model::{Body, Content, HeapSize, Role};

use crate::arguments::Args;
use crate::record::Record;
use crate::text;
use hash::Seeded;
use line_number::LineCounter;
use scan::Found;

pub(crate) use entry::{NameEntry, NameUse};
pub(crate) use salient::salient;
pub(crate) use scan::{Kind, scan};
pub(crate) use worth::worth;

/// All names of a record, up to the place that was scanned.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameIndex {
    ids: HashMap<Box<str>, u32, Seeded>,
    list: Vec<NameEntry>,
    /// Names by place and content.
    by_place: Vec<Box<[Box<[NameUse]>]>>,
    /// Calls made so far.
    pub(crate) calls: u32,
    stamp: u32,
}

/// Where a name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameSource {
    User,
    Prose,
    Arguments,
    Result,
}

impl HeapSize for NameIndex {
    fn heap_size(&self) -> usize {
        self.ids.heap_size() + self.list.heap_size() + self.by_place.heap_size()
    }
}

impl NameIndex {
    /// Read the messages that were not read before.
    pub(crate) fn extend(&mut self, record: &Record) {
        for place in self.by_place.len()..record.len() {
            let message = &record.entries()[place].message;
            let contents = message.contents.iter();
            let names = contents
                .map(|content| self.content(content, &message.role, place))
                .collect();
            self.by_place.push(names);
        }
    }

    /// The names of one content, each once, in the order of the text.
    pub(crate) fn names(&self, place: usize, content: usize) -> &[NameUse] {
        let contents = self.by_place.get(place);
        let names = contents.and_then(|contents| contents.get(content));
        names.map_or(&[], |names| names)
    }

    /// How many contents a message has.
    pub(crate) fn contents(&self, place: usize) -> usize {
        self.by_place
            .get(place)
            .map_or(0, |contents| contents.len())
    }

    /// The id of a name that was seen before.
    pub(crate) fn known(&self, key: &str) -> Option<u32> {
        self.ids.get(key).copied()
    }

    pub(crate) fn get(&self, id: u32) -> Option<&NameEntry> {
        self.list.get(id as usize)
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    fn content(&mut self, content: &Content, role: &Role, place: usize) -> Box<[NameUse]> {
        self.stamp += 1;
        let mut names = Vec::new();
        match &content.body {
            Body::Text(text) | Body::Refusal(text) => {
                let at = match role {
                    Role::Assistant => NameSource::Prose,
                    Role::Tool => NameSource::Result,
                    Role::User | Role::System | Role::Developer | Role::Other(_) => {
                        NameSource::User
                    }
                };
                self.take(&text.text, place, at, false, &mut names);
            }
            Body::Reasoning(reasoning) => {
                for text in reasoning.text.iter().chain(&reasoning.summary) {
                    self.take(text, place, NameSource::Prose, false, &mut names);
                }
            }
            Body::ToolCall(call) => {
                self.calls += 1;
                let args = Args::of(&call.arguments);
                args.each_text(|text, body| {
                    let at = if body {
                        NameSource::Result
                    } else {
                        NameSource::Arguments
                    };
                    self.take(text, place, at, body, &mut names);
                });
            }
            Body::ToolResult(result) => {
                let text = text::of_output(&result.output);
                self.take(&text, place, NameSource::Result, false, &mut names);
            }
            Body::Error(fault) => {
                self.take(&fault.message, place, NameSource::Result, false, &mut names);
            }
            Body::Media(_)
            | Body::ApprovalRequest(_)
            | Body::ApprovalResponse(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => {}
        }
        names.into()
    }

    fn take(
        &mut self,
        text: &str,
        place: usize,
        at: NameSource,
        body: bool,
        names: &mut Vec<NameUse>,
    ) {
        let (stamp, calls) = (self.stamp, self.calls);
        let mut counter = LineCounter::new(text);
        scan(text, |found| {
            let id = self.id(&found);
            let Some(entry) = self.list.get_mut(id as usize) else {
                return;
            };
            entry.defined |= found.defined;
            match at {
                NameSource::User => entry.in_user = true,
                NameSource::Prose => entry.in_prose = entry.in_prose.saturating_add(1),
                NameSource::Arguments => entry.in_arguments = entry.in_arguments.saturating_add(1),
                NameSource::Result => {}
            }
            if entry.messages == 0 || entry.last != place {
                entry.messages += 1;
                entry.last = place;
                entry.last_call = calls;
            }
            if entry.stamp.0 == stamp {
                if let Some(name) = names.get_mut(entry.stamp.1 as usize) {
                    name.times = name.times.saturating_add(1);
                    if found.defined && !name.defined && at == NameSource::Result && !body {
                        (name.line, name.numbered) = counter.line_of(&found);
                    }
                    name.defined |= found.defined;
                    name.body &= body;
                }
                return;
            }
            let slot = u32::try_from(names.len()).unwrap_or(u32::MAX);
            entry.stamp = (stamp, slot);
            let (line, numbered) = match at {
                NameSource::Result if !body => counter.line_of(&found),
                _ => (0, false),
            };
            names.push(NameUse {
                id,
                defined: found.defined,
                times: 1,
                body,
                line,
                numbered,
            });
        });
    }

    fn id(&mut self, name: &Found<'_>) -> u32 {
        if let Some(id) = self.ids.get(name.key) {
            return *id;
        }
        let id = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(NameEntry {
            shown: name.shown.into(),
            kind: name.kind,
            messages: 0,
            last: 0,
            last_call: 0,
            in_arguments: 0,
            in_prose: 0,
            in_user: false,
            defined: false,
            stamp: (0, 0),
        });
        self.ids.insert(name.key.into(), id);
        id
    }
}
