//! The lines that a digest can have about a group: computed once, used as far as there is room.

pub(crate) mod call;
mod digest_call;
pub(crate) mod errors;
mod line;
pub(crate) mod outcome;
mod result;
mod successes;

use throughline_model::{Body, Content, Message, ToolCall, occurrence_in};

use crate::arguments::Args;
use crate::category::{Annotations, Category, classify};
use crate::group::{Group, GroupKind};
use crate::names::NameIndex;
use crate::policy::Policy;
use crate::read_back::is_read_back;
use crate::record::Record;
use crate::text;

pub use digest_call::{Digest, DigestCall};
pub(crate) use line::{Line, LineKind};
pub(crate) use outcome::CallEnd;
pub(crate) use successes::Successes;

/// What is known of one group.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    pub(crate) lines: Vec<Line>,
}

/// What is needed to read a group.
pub(crate) struct FactReader<'a> {
    pub(crate) record: &'a Record,
    pub(crate) name_index: &'a NameIndex,
    pub(crate) policy: &'a Policy,
    pub(crate) tools: &'a [Annotations],
    pub(crate) digests: &'a [std::sync::Arc<dyn Digest>],
}

/// A content of a group and its position.
#[derive(Clone, Copy)]
struct ContentRef<'a> {
    /// The place of the message in the record.
    place: usize,
    /// The index of the content in the message.
    index: usize,
    seq: u64,
    content: &'a Content,
    message: &'a Message,
}

impl FactReader<'_> {
    /// All that is known of a group.
    pub(crate) fn facts(&self, group: &Group) -> Facts {
        let contents = self.contents(group);
        let mut facts = Facts::default();
        match group.kind {
            // Users may come with results of unknown calls; those are quoted like any other.
            GroupKind::User | GroupKind::Digest | GroupKind::System | GroupKind::Other => {
                self.text_lines(&contents, LineKind::Request, &mut facts);
            }
            GroupKind::Assistant => self.text_lines(&contents, LineKind::Statement, &mut facts),
            GroupKind::Tools => {
                self.text_lines(&contents, LineKind::Statement, &mut facts);
                self.calls(&contents, &mut facts);
            }
            GroupKind::Result => self.orphan_results(&contents, &mut facts),
        }
        facts
    }

    fn contents(&self, group: &Group) -> Vec<ContentRef<'_>> {
        let mut contents = Vec::new();
        for member in &group.members {
            let Some(entry) = self.record.entries().get(member.place) else {
                continue;
            };
            let at = |index: usize| {
                Some(ContentRef {
                    place: member.place,
                    index,
                    seq: entry.seq,
                    content: entry.message.contents.get(index)?,
                    message: &entry.message,
                })
            };
            match &member.contents {
                None => contents.extend((0..entry.message.contents.len()).filter_map(at)),
                Some(some) => contents.extend(some.iter().copied().filter_map(at)),
            }
        }
        contents
    }

    /// Lines for the texts of users and the model.
    fn text_lines(&self, contents: &[ContentRef<'_>], kind: LineKind, facts: &mut Facts) {
        let mut line: Option<Line> = None;
        let mut text = String::new();
        for at in contents {
            let words = match &at.content.body {
                Body::Text(text) | Body::Refusal(text) => text.text.as_str(),
                Body::Error(fault) => fault.message.as_str(),
                _ => continue,
            };
            let line = line.get_or_insert_with(|| Line::new(at.seq, kind));
            line.names
                .extend_from_slice(self.name_index.names(at.place, at.index));
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(words);
        }
        let Some(mut line) = line else { return };
        let caps = &self.policy.caps;
        line.head = match kind {
            LineKind::Request => {
                let user = |at: &ContentRef<'_>| match is_read_back(at.message) {
                    true => "Digest".to_owned(),
                    false => at.message.author.as_deref().unwrap_or("User").to_owned(),
                };
                let who = contents.first().map_or_else(|| "User".to_owned(), user);
                format!(
                    "{}: {}",
                    text::one_line(&who, 40),
                    both_ends(&text, caps.user)
                )
            }
            LineKind::Statement | LineKind::Call(_) => {
                format!("Said: {}", text::one_line(&text, caps.prose))
            }
        };
        facts.lines.push(line);
    }

    /// The calls of a group, each with its result.
    fn calls(&self, contents: &[ContentRef<'_>], facts: &mut Facts) {
        // Results in the order of the record answer the calls of their id in that order, unless
        // they name their occurrence.
        let mut results: Vec<ContentRef<'_>> = contents
            .iter()
            .filter(|at| at.content.as_tool_result().is_some())
            .copied()
            .collect();
        results.reverse();
        for at in contents {
            let Some(call) = at.content.as_tool_call() else {
                continue;
            };
            let occurrence = occurrence_in(at.message, at.index);
            let answers = |one: &ContentRef<'_>| {
                one.content.as_tool_result().is_some_and(|result| {
                    result.call().value() == call.call.value()
                        && result.occurrence().is_none_or(|named| named == occurrence)
                })
            };
            let found = results.iter().rposition(answers);
            let answer = found.map(|place| results.remove(place));
            facts.lines.push(self.call_line(call, at, answer.as_ref()));
        }
    }

    fn call_line(
        &self,
        call: &ToolCall,
        at: &ContentRef<'_>,
        answer: Option<&ContentRef<'_>>,
    ) -> Line {
        let args = Args::of(&call.arguments);
        let category = classify(call, &args, &self.policy.categories, self.tools);
        let called = DigestCall {
            seq: answer.map_or(at.seq, |answer| answer.seq),
            call,
            result: answer.and_then(|answer| answer.content.as_tool_result()),
            category,
        };
        let mut line = call::line(&called, &args, &self.policy.caps);
        for digest in self.digests {
            if let Some(own) = digest.line(&called) {
                line.head = text::one_line(&own, 2 * self.policy.caps.user);
                line.size = String::new();
                line.rest = String::new();
                line.own = true;
                break;
            }
        }
        line.names = self.name_index.names(at.place, at.index).to_vec();
        if let Some(answer) = answer {
            let names = self.name_index.names(answer.place, answer.index);
            line.names.extend_from_slice(names);
        }
        line.result = answer.map(|answer| (answer.place, answer.index));
        number_names(&mut line);
        line
    }

    /// Results without calls.
    fn orphan_results(&self, contents: &[ContentRef<'_>], facts: &mut Facts) {
        for at in contents {
            let Some(result) = at.content.as_tool_result() else {
                continue;
            };
            let mut line = Line::new(at.seq, LineKind::Call(Category::Other));
            let name = result.name.as_deref().unwrap_or(result.family.as_str());
            let text = text::of_output(&result.output);
            line.head = format!("Result of {} without a call", text::one_line(name, 80));
            line.ended = Some(CallEnd::with_outcome(result.outcome));
            let text = text::one_line(&text, self.policy.caps.other);
            if !text.is_empty() {
                let joint = if line.is_ok() { " →" } else { ":" };
                line.rest = format!("{joint} {text}");
            }
            line.names = self.name_index.names(at.place, at.index).to_vec();
            facts.lines.push(line);
        }
        self.text_lines(contents, LineKind::Statement, facts);
    }
}

/// Names have the lines of their files: of what was read the lines count from where the reading began,
/// of anything else only those count that the text itself gives.
fn number_names(line: &mut Line) {
    let first = match (line.kind, line.range) {
        (LineKind::Call(Category::Read), Some((from, _))) => u32::try_from(from).ok(),
        (LineKind::Call(Category::Read), None) => Some(1),
        _ => None,
    };
    for name in line
        .names
        .iter_mut()
        .filter(|name| !name.numbered && name.line > 0)
    {
        name.line = first.map_or(0, |first| (name.line - 1).saturating_add(first));
    }
}

/// A text as one line; of a long one the start and the end.
fn both_ends(text: &str, most: usize) -> String {
    if text.len() <= most || text.chars().take(most + 1).count() <= most {
        return text::one_line(text, most);
    }
    let head = text::one_line(text::start(text, most * 28), most * 7 / 10);
    let tail = text::one_line(text::end(text, most / 4), most / 4);
    format!("{head} {tail}")
}
