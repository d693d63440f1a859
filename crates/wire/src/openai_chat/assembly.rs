//! Putting the chunks of a stream together to the body that was not streamed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use throughline_model::json::{self, ArrayWriter, Value};

use super::merge::{MergeRule, MergedObject, MergedValue, TokenWriter, push_token};
use crate::read::{member, number_of, text_of};

/// An index beyond this is not used for the order of calls.
const MANY_CALLS: u64 = 1 << 20;

fn body_rules(key: &str) -> MergeRule {
    match key {
        "choices" => MergeRule::Placeholder,
        _ => MergeRule::Last,
    }
}

fn choice_rules(key: &str) -> MergeRule {
    match key {
        "delta" | "message" => MergeRule::Placeholder,
        "logprobs" => MergeRule::Object(|_| MergeRule::Append),
        _ => MergeRule::Last,
    }
}

fn message_rules(key: &str) -> MergeRule {
    match key {
        "content" | "refusal" | "reasoning_content" | "reasoning" | "annotations" => {
            MergeRule::Append
        }
        "audio" => MergeRule::Object(|key| match key {
            "data" | "transcript" => MergeRule::Append,
            _ => MergeRule::Last,
        }),
        "function_call" => MergeRule::Object(function_rules),
        "tool_calls" => MergeRule::Placeholder,
        "role" => MergeRule::Repeated,
        _ => MergeRule::Last,
    }
}

fn call_rules(key: &str) -> MergeRule {
    match key {
        "index" => MergeRule::Skip,
        "id" | "type" => MergeRule::Repeated,
        "function" | "custom" => MergeRule::Object(function_rules),
        _ => MergeRule::Last,
    }
}

fn function_rules(key: &str) -> MergeRule {
    match key {
        "name" => MergeRule::Repeated,
        "arguments" | "input" => MergeRule::Append,
        _ => MergeRule::Last,
    }
}

/// One call so far.
#[derive(Default)]
struct Call {
    /// Its place among the calls: its index, where no other call has taken that.
    part: usize,
    members: MergedObject,
}

impl Call {
    fn id(&self) -> &str {
        self.members.token("id")
    }

    /// The member with name and arguments.
    fn called(&self) -> Option<&MergedObject> {
        ["function", "custom"]
            .iter()
            .find_map(|key| match self.members.get(key) {
                Some(MergedValue::Object(members)) => Some(members),
                _ => None,
            })
    }

    fn name(&self) -> &str {
        self.called().map_or("", |called| called.token("name"))
    }

    fn arguments(&self) -> &str {
        let Some(called) = self.called() else {
            return "";
        };
        match called.token("arguments") {
            "" => called.token("input"),
            arguments => arguments,
        }
    }
}

/// What a fragment of a call did.
pub(super) struct Fragment {
    /// Which call it belongs to, in the order of arrival.
    pub(super) call: usize,
    /// The place of that call among the calls.
    pub(super) part: usize,
    /// Whether the call began with it.
    pub(super) is_first: bool,
}

/// One alternative so far.
#[derive(Default)]
pub(super) struct Choice {
    members: MergedObject,
    message: MergedObject,
    calls: Vec<Call>,
    /// The newest call of each id and of each index.
    ids: HashMap<String, usize>,
    indexes: HashMap<u64, usize>,
    /// The places that are taken.
    parts: BTreeSet<usize>,
    /// The call that the last fragment belonged to.
    open: Option<usize>,
}

impl Choice {
    /// Take the members of this alternative from a chunk, except its calls.
    fn take(&mut self, choice: &Value<'_>) {
        self.members.take(choice, choice_rules);
        if let Some(delta) = delta(choice) {
            self.message.take(delta, message_rules);
        }
    }

    /// Take a fragment of a call. Servers break the rule of indexes in every way: a known id wins,
    /// a new id on a taken index is a new call, and what has neither continues the open call.
    pub(super) fn fragment(&mut self, fragment: &Value<'_>) -> Fragment {
        let found = self.find(fragment);
        let call = found.unwrap_or_else(|| self.begin(fragment));
        self.open = Some(call);
        let part = self.calls.get_mut(call).map_or(0, |known| {
            known.members.take(fragment, call_rules);
            if !known.id().is_empty() {
                self.ids.insert(known.id().to_owned(), call);
            }
            known.part
        });
        Fragment {
            call,
            part,
            is_first: found.is_none(),
        }
    }

    /// A new call. Its place is its index if that is free, else behind all others.
    fn begin(&mut self, fragment: &Value<'_>) -> usize {
        let call = self.calls.len();
        let index = number_of(fragment, &["index"]);
        if let Some(index) = index {
            self.indexes.insert(index, call);
        }
        let wanted = index.filter(|index| *index < MANY_CALLS);
        let wanted = wanted.map(|index| index as usize);
        let part = wanted
            .filter(|part| !self.parts.contains(part))
            .unwrap_or_else(|| self.parts.last().map_or(0, |last| last + 1));
        self.parts.insert(part);
        self.calls.push(Call {
            part,
            members: MergedObject::default(),
        });
        call
    }

    /// The places of the calls, in order.
    pub(super) fn parts(&self) -> Vec<usize> {
        self.parts.iter().copied().collect()
    }

    fn find(&self, fragment: &Value<'_>) -> Option<usize> {
        let index = number_of(fragment, &["index"]);
        let at_index = index.and_then(|index| self.indexes.get(&index).copied());
        let name = called(fragment, "name");
        let id = fragment.get("id").and_then(Value::as_text);
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            if let Some(known) = self.ids.get(id.token()).copied() {
                // The same id beside a name and an index of its own: ids do repeat.
                let apart = index.is_some() && at_index.is_none() && !name.is_empty();
                return (!apart).then_some(known);
            }
            // The id may come after the first fragment.
            return at_index.filter(|at| {
                let call = self.calls.get(*at);
                call.is_some_and(|call| {
                    call.id().is_empty() && (name.is_empty() || call.name().is_empty())
                })
            });
        }
        let open = match index {
            Some(_) => at_index,
            None => self.open,
        };
        open.filter(|at| {
            self.calls
                .get(*at)
                .is_some_and(|call| continues(call, fragment))
        })
    }

    fn write(&self, out: &mut String) {
        let mut object = TokenWriter::new(out);
        self.members.write_members(&mut object, |key, out| {
            if key == "message" {
                self.write_message(out);
            }
            key == "message"
        });
        // A filter may end an answer before its first delta.
        if self.members.get("message").is_none() {
            self.write_message(object.key("message"));
        }
        object.end();
    }

    fn write_message(&self, out: &mut String) {
        let mut object = TokenWriter::new(out);
        // Servers that leave out the role mean the only one there is.
        let role = "\"assistant\"";
        if self.message.get("role").is_none() {
            object.key("role").push_str(role);
        }
        self.message
            .write_members(&mut object, |key, out| match key {
                "role" if self.message.get("role").is_some_and(MergedValue::is_null) => {
                    out.push_str(role);
                    true
                }
                "tool_calls" if !self.calls.is_empty() => {
                    self.write_calls(out);
                    true
                }
                _ => false,
            });
        if self.message.get("tool_calls").is_none() && !self.calls.is_empty() {
            self.write_calls(object.key("tool_calls"));
        }
        object.end();
    }

    fn write_calls(&self, out: &mut String) {
        let mut calls: Vec<&Call> = self.calls.iter().collect();
        calls.sort_by_key(|call| call.part);
        let mut array = ArrayWriter::new(out);
        for call in calls {
            call.members.write(array.slot(), |_, _| false);
        }
        array.end();
    }
}

/// Whether a fragment without an id continues a call. One that names a function again may be the
/// next call of a server that numbers nothing.
fn continues(call: &Call, fragment: &Value<'_>) -> bool {
    let name = called(fragment, "name");
    if name.is_empty() || call.name().is_empty() || call.arguments().is_empty() {
        return true;
    }
    if name != call.name() {
        return false;
    }
    let more = format!(
        "{}{}",
        called(fragment, "arguments"),
        called(fragment, "input")
    );
    more.is_empty() || !is_whole(call.arguments())
}

/// A string of the member with name and arguments: its token.
fn called<'a>(fragment: &Value<'a>, key: &str) -> &'a str {
    ["function", "custom"]
        .iter()
        .find_map(|place| fragment.at(&[place, key]))
        .and_then(Value::as_text)
        .map_or("", |text| text.token())
}

/// Whether a token holds JSON that is not cut short.
fn is_whole(token: &str) -> bool {
    let mut quoted = String::with_capacity(token.len() + 2);
    push_token(&mut quoted, token);
    let text = json::parse(&quoted)
        .ok()
        .and_then(|value| value.as_str().map(std::borrow::Cow::into_owned));
    text.is_some_and(|text| json::parse(&text).is_ok())
}

/// What a chunk brings of a message. A server that cannot stream sends the message whole.
pub(super) fn delta<'v, 'a>(choice: &'v Value<'a>) -> Option<&'v Value<'a>> {
    member(choice, "delta").or_else(|| member(choice, "message"))
}

/// The body so far.
#[derive(Default)]
pub(super) struct Assembly {
    body: MergedObject,
    // In boxes: there is one, mostly, and a node of the map has room for eleven.
    choices: BTreeMap<u64, Box<Choice>>,
}

impl Assembly {
    /// Take the members of a chunk itself.
    pub(super) fn take(&mut self, chunk: &Value<'_>) {
        self.body.take(chunk, body_rules);
    }

    /// Take the members of the alternative `index` from a chunk, except its calls.
    pub(super) fn take_choice(&mut self, index: u64, choice: &Value<'_>) {
        self.choice(index).take(choice);
    }

    /// The alternative `index`.
    pub(super) fn choice(&mut self, index: u64) -> &mut Choice {
        self.choices.entry(index).or_default()
    }

    /// The alternatives that came, in order.
    pub(super) fn indexes(&self) -> Vec<u64> {
        self.choices.keys().copied().collect()
    }

    /// Whether every alternative has a finish reason.
    pub(super) fn is_finished(&self) -> bool {
        let finished = |choice: &Choice| {
            let reason = choice.members.get("finish_reason");
            // An empty reason is none.
            matches!(reason, Some(MergedValue::Json(reason)) if reason != "null" && reason != "\"\"")
        };
        !self.choices.is_empty() && self.choices.values().all(|choice| finished(choice))
    }

    /// The body as JSON text.
    pub(super) fn write(&self) -> String {
        let mut out = String::new();
        self.body.write(&mut out, |key, out| {
            let object = self.body.get("object");
            match (key, object) {
                ("choices", _) => {
                    let mut array = ArrayWriter::new(out);
                    for choice in self.choices.values() {
                        choice.write(array.slot());
                    }
                    array.end();
                    true
                }
                ("object", Some(MergedValue::Json(name)))
                    if name == "\"chat.completion.chunk\"" =>
                {
                    out.push_str("\"chat.completion\"");
                    true
                }
                _ => false,
            }
        });
        out
    }
}

/// The index of an alternative; a server with only one may leave it out.
pub(super) fn choice_index(choice: &Value<'_>, place: usize) -> u64 {
    number_of(choice, &["index"]).unwrap_or(place as u64)
}

/// Whether a frame is a chunk at all.
pub(super) fn is_chunk(value: &Value<'_>) -> bool {
    member(value, "choices").is_some()
        || member(value, "usage").is_some()
        || text_of(value, "object").is_some_and(|object| object.starts_with("chat.completion"))
}
