//! Unnatural histories: several vendors mixed, cut, shuffled and damaged.

use throughline_model::json::{self, RawJson, Value};
use throughline_model::{
    Body, CallId, Content, Form, Message, Output, Role, Runner, Status, ToolResult,
};
use throughline_testkit::generate::Json;
use throughline_testkit::mutate::insert_unknown_field;
use throughline_testkit::{Rng, messages};
use throughline_wire::{Codec, Losses, Wire, codec};

use crate::common::{Entry, decode, entries};

/// What histories are made of.
pub(crate) struct Histories {
    entries: Vec<Entry>,
    codecs: Vec<&'static Codec>,
}

impl Histories {
    pub(crate) fn new() -> Self {
        Self {
            entries: entries(),
            codecs: Wire::KNOWN.iter().filter_map(codec).collect(),
        }
    }

    /// A history in which vendors are mixed, one of them more than the others: neutral turns,
    /// turns as one of the vendors said them, with its thoughts, examples of the catalogue, whole
    /// or damaged; and then damage to the whole.
    pub(crate) fn any(&self, rng: &mut Rng, size: usize, most: &Wire) -> Vec<Message> {
        let mut history = Vec::new();
        for number in 0..rng.range(1..=3) {
            let mut part = messages::history(rng, size.min(5));
            if rng.chance(0.6) {
                let codec = self.codec(rng, most);
                part = self.said_by(codec, &part);
                if rng.chance(0.4) {
                    think(rng, codec, &mut part, number);
                }
            }
            history.extend(part);
            for _ in 0..rng.below(3) {
                history.extend(self.example(rng, most));
            }
        }
        if rng.chance(0.1) {
            let at = rng.below(history.len() + 1);
            history.insert(at, messages::anything(rng, size));
        }
        for _ in 0..rng.below(6) {
            damage(rng, &mut history);
        }
        history
    }

    fn codec(&self, rng: &mut Rng, most: &Wire) -> &'static Codec {
        match codec(most) {
            Some(codec) if rng.bool() => codec,
            _ => self.codecs[rng.below(self.codecs.len())],
        }
    }

    /// The same as a vendor would have said it.
    fn said_by(&self, codec: &Codec, part: &[Message]) -> Vec<Message> {
        let array = codec.encode_messages(part, &mut Losses::default());
        decode(codec, &array).unwrap()
    }

    /// An example of the catalogue; sometimes with a member that is gone or of another type, as
    /// far as it can still be read.
    fn example(&self, rng: &mut Rng, most: &Wire) -> Vec<Message> {
        let wire = self.codec(rng, most).wire();
        let mut entry = rng.pick(&self.entries);
        while entry.wire != wire {
            entry = rng.pick(&self.entries);
        }
        let whole = format!("[{}]", entry.wrapped());
        if rng.chance(0.4) {
            let message = match rng.below(5) {
                0 => insert_unknown_field(&entry.wrapped(), rng).unwrap(),
                _ => entry.wrap(&maimed(entry.example.get(), rng)),
            };
            let array = format!("[{message}]");
            if let Ok(found) = decode(entry.codec(), &array) {
                return found;
            }
        }
        decode(entry.codec(), &whole).unwrap()
    }
}

/// Thoughts of a vendor before some of what its model said: sealed or not, with an id that is new
/// or not.
fn think(rng: &mut Rng, codec: &Codec, part: &mut [Message], number: usize) {
    for (index, message) in part.iter_mut().enumerate() {
        if message.role != Role::Assistant || rng.chance(0.4) {
            continue;
        }
        let id = if rng.chance(0.1) {
            0
        } else {
            100 * number + index
        };
        let sealed = rng.chance(0.8);
        let seal = |key: &str| match sealed {
            true => format!(r#","{key}":"c2VhbGVk{id:04}""#),
            false => String::new(),
        };
        let thought = match codec.wire() {
            Wire::OpenAiResponses | Wire::Foundry => format!(
                r#"{{"type":"reasoning","id":"rs_{id}","summary":[]{}}}"#,
                seal("encrypted_content")
            ),
            Wire::Anthropic => format!(
                r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"so"{}}}]}}"#,
                seal("signature")
            ),
            Wire::Gemini => format!(
                r#"{{"role":"model","parts":[{{"text":"so","thought":true{}}}]}}"#,
                seal("thoughtSignature")
            ),
            Wire::GeminiInteractions => {
                format!(r#"{{"type":"thought","summary":[]{}}}"#, seal("signature"))
            }
            Wire::OpenAiChat | Wire::Other(_) => return,
        };
        let thought = decode(codec, &format!("[{thought}]")).unwrap().remove(0);
        message.contents.splice(0..0, thought.contents);
    }
}

/// A JSON object with one member, here or further in, that is missing, null, empty or of another
/// type.
fn maimed(text: &str, rng: &mut Rng) -> String {
    let value = json::parse(text).unwrap();
    let mut at = &value;
    loop {
        let inner: Vec<&Value<'_>> = match at.as_array() {
            Some(elements) => elements.iter().collect(),
            None => at.members().iter().map(|member| &member.value).collect(),
        };
        if inner.is_empty() {
            return text.to_owned();
        }
        let chosen = *rng.pick(&inner);
        let deeper =
            chosen.as_array().is_some_and(|list| !list.is_empty()) || !chosen.members().is_empty();
        if deeper && rng.bool() {
            at = chosen;
            continue;
        }
        // Any other word would be a type that is newer than the validator, and go back as it came.
        let tag = at.get("type").is_some_and(|tag| std::ptr::eq(tag, chosen));
        let changed = match rng.below(if tag { 7 } else { 9 }) {
            0 | 1 if at.as_object().is_some() => {
                let rest = RawJson::object(|object| {
                    let others = at.members().iter();
                    for member in others.filter(|member| !std::ptr::eq(&member.value, chosen)) {
                        json::push_compact(object.key_token(&member.key), &member.value);
                    }
                });
                return RawJson::of_with(&value, &[(at, rest.get())])
                    .get()
                    .to_owned();
            }
            2 => "null".to_owned(),
            3 => "\"\"".to_owned(),
            4 => "[]".to_owned(),
            5 => "{}".to_owned(),
            6 => "7".to_owned(),
            _ => Json::default().document(rng, 2),
        };
        return RawJson::of_with(&value, &[(chosen, &changed)])
            .get()
            .to_owned();
    }
}

/// One more thing that goes wrong.
fn damage(rng: &mut Rng, history: &mut Vec<Message>) {
    if history.is_empty() {
        return;
    }
    let at = rng.below(history.len());
    let other = rng.below(history.len());
    match rng.below(16) {
        0 => {
            history.remove(at);
        }
        // Results before their calls, calls after everything.
        1 | 2 => {
            let message = history.remove(at);
            let to = rng.below(history.len() + 1);
            history.insert(to, message);
        }
        3 => history.swap(at, other),
        // A message that was stored twice.
        4 => history.insert(other, history[at].clone()),
        5 => {
            let contents = &mut history[at].contents;
            rng.shuffle(contents);
        }
        6 => {
            let contents = &mut history[at].contents;
            if !contents.is_empty() {
                contents.remove(rng.below(contents.len()));
            }
        }
        7 => {
            let contents = &mut history[at].contents;
            if !contents.is_empty() {
                let content = contents[rng.below(contents.len())].clone();
                let to = rng.below(history[other].contents.len() + 1);
                history[other].contents.insert(to, content);
            }
        }
        8 | 9 => rename(rng, history),
        10 => hush(rng, &mut history[at]),
        11 => {
            let words = ["incomplete", "in_progress", "failed", "completed", "odd"];
            history[at].status = Some(Status::named(rng.pick::<&str>(&words)));
        }
        12 => {
            let role = rng.pick(&[Role::System, Role::Developer]).clone();
            let text = *rng.pick(&["Mind the tide.", "", "  "]);
            history.insert(at, Message::new(role, vec![Content::text(text)]));
        }
        13 => history[at].role = any_role(rng),
        14 => reopen(rng, &mut history[at]),
        _ => {
            if let Some(content) = pick_content(rng, &mut history[at]) {
                let mut raw = content.vendor.as_mut().map(|vendor| &mut vendor.form);
                if let Some(Form::Item(raw) | Form::Part(raw)) = &mut raw {
                    *raw = RawJson::new(&maimed(raw.get(), rng)).unwrap();
                }
            }
        }
    }
}

/// A role that a message may have been given by mistake.
fn any_role(rng: &mut Rng) -> Role {
    let roles = [
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::System,
        Role::Developer,
        Role::Other("critic".into()),
    ];
    rng.pick(&roles).clone()
}

/// What the vendor says of the message as a whole: a member too many, gone or of another type.
fn reopen(rng: &mut Rng, message: &mut Message) {
    let vendors = message.contents.iter_mut();
    let vendors = vendors.filter_map(|content| content.vendor.as_mut());
    for envelope in vendors.filter_map(|vendor| vendor.envelope.as_mut()) {
        let changed = match rng.below(2) {
            0 => insert_unknown_field(envelope.get(), rng).unwrap(),
            _ => maimed(envelope.get(), rng),
        };
        *envelope = RawJson::new(&changed).unwrap();
    }
}

fn pick_content<'m>(rng: &mut Rng, message: &'m mut Message) -> Option<&'m mut Content> {
    let at = rng.below(message.contents.len());
    message.contents.get_mut(at)
}

/// Some calls and results get an id of a small set, so that ids repeat, do not fit, or meet where
/// they should not.
fn rename(rng: &mut Rng, history: &mut [Message]) {
    let long = "call_".repeat(20);
    let ids = [
        "call_0", "call_1", "call_2", "a b", "käse", "x.y:z", "-", &long,
    ];
    let found = history.iter_mut().flat_map(|message| &mut message.contents);
    let mut found: Vec<&mut Content> = found
        .filter(|content| matches!(content.body, Body::ToolCall(_) | Body::ToolResult(_)))
        .collect();
    for _ in 0..rng.range(1..=3) {
        if found.is_empty() {
            return;
        }
        let at = rng.below(found.len());
        let content = &mut *found[at];
        let id = CallId::natural(rng.pick::<&str>(&ids)).unwrap();
        match &mut content.body {
            Body::ToolCall(call) => call.call = id,
            Body::ToolResult(result) if rng.chance(0.9) => *result = result.renamed(id),
            Body::ToolResult(result) => {
                let free = ToolResult::standalone(id, result.family.clone(), result.output.clone());
                *result = free;
            }
            _ => {}
        }
        // What the vendor's form says would no longer be what the content says.
        if rng.bool() {
            content.vendor = None;
        }
    }
}

/// Texts that say nothing, outputs that are not there, calls of the other side.
fn hush(rng: &mut Rng, message: &mut Message) {
    let said = (*rng.pick(&["", " ", "\n\n"])).to_owned();
    match pick_content(rng, message).map(|content| &mut content.body) {
        Some(Body::Text(text) | Body::Refusal(text)) => text.text = said,
        Some(Body::ToolCall(call)) => {
            if rng.bool() {
                call.name = said;
            } else {
                call.runner = Runner::Vendor;
            }
        }
        Some(Body::ToolResult(result)) => match rng.below(4) {
            0 => result.output = Output::Text(said),
            1 => result.output = Output::Parts(vec![Content::text(said)]),
            2 => result.output = Output::Parts(Vec::new()),
            _ => result.runner = Runner::Vendor,
        },
        Some(Body::Reasoning(reasoning)) => reasoning.sealed = rng.bool(),
        _ => {}
    }
}
