//! A step that arrives in pieces.

use throughline_model::json::{self, RawJson, Value, push_compact_with, push_string};

use super::types::{ARGUMENTS, CONTENT, MODEL_OUTPUT, RESULT, THOUGHT};
use crate::message_writer::array;
use crate::read::{member, text_of};
use crate::template::{TemplateValue, restore};

/// A step so far: how it began, and what the deltas brought.
pub(super) struct StreamedStep {
    start: RawJson,
    content: StreamedList,
    summary: StreamedList,
    /// The text of the arguments.
    arguments: String,
    /// Members that a delta set, as JSON text.
    set: Vec<(String, String)>,
}

/// A list that grows.
#[derive(Default)]
struct StreamedList {
    pieces: Vec<StreamedPart>,
    changed: bool,
}

enum StreamedPart {
    /// A text that grows: the part without it, and the text as a token.
    Text {
        part: RawJson,
        token: String,
        annotations: Vec<String>,
    },
    Whole(RawJson),
}

/// What a delta did, for those who watch.
pub(super) enum StepChange {
    /// A part of the content began; `text` is what it begins with.
    Opened {
        part: usize,
        content: RawJson,
        text: Option<String>,
    },
    /// Text was added to a part of the content.
    Text { part: usize, text: String },
    /// Text was added to the step itself: to its arguments.
    StepText(String),
    /// Text was added to a part of the summary.
    SummaryText { part: usize, text: String },
    /// Something that is not text.
    Other,
    /// The delta is of a kind that is newer than this code.
    Unknown,
}

impl StreamedStep {
    /// A step as it begins.
    pub(super) fn begin(step: &Value<'_>) -> Self {
        Self {
            start: RawJson::of(step),
            content: StreamedList::of(step.get(CONTENT)),
            summary: StreamedList::of(step.get("summary")),
            arguments: String::new(),
            set: Vec::new(),
        }
    }

    /// The step that a delta belongs to whose beginning was never sent; none if the delta does not
    /// name its step.
    pub(super) fn of_delta(kind: &str) -> Option<Self> {
        let tag = match kind {
            "text" | "text_annotation_delta" | "image" | "audio" | "video" | "document" => {
                MODEL_OUTPUT
            }
            "thought_signature" | "thought_summary" => THOUGHT,
            _ => return None,
        };
        let start = RawJson::object(|object| {
            object.str("type", tag);
        });
        Some(Self::begin(&start.value()))
    }

    /// Take one delta.
    pub(super) fn apply(&mut self, delta: &Value<'_>) -> StepChange {
        let kind = text_of(delta, "type").unwrap_or_default();
        match kind.as_str() {
            "text" => match delta.get("text").and_then(Value::as_text) {
                Some(text) => {
                    let (part, new) = self.content.add_text(text.token());
                    let text = text.to_str().into_owned();
                    match new {
                        Some(content) => StepChange::Opened {
                            part,
                            content,
                            text: Some(text),
                        },
                        None => StepChange::Text { part, text },
                    }
                }
                None => StepChange::Unknown,
            },
            "text_annotation_delta" => match delta.get("annotations").and_then(Value::as_array) {
                Some(list) => {
                    self.content.annotate(list);
                    StepChange::Other
                }
                None => StepChange::Other,
            },
            "image" | "audio" | "video" | "document" => {
                let content = RawJson::of(delta);
                let part = self.content.push(content.clone());
                StepChange::Opened {
                    part,
                    content,
                    text: None,
                }
            }
            "thought_summary" => match member(delta, "content") {
                Some(content) => match content.get("text").and_then(Value::as_text) {
                    Some(text) if content.get("type").is_some_and(|tag| tag.is_str("text")) => {
                        self.summary.add_text(text.token());
                        StepChange::SummaryText {
                            part: self.summary.texts().saturating_sub(1),
                            text: text.to_str().into_owned(),
                        }
                    }
                    _ => {
                        self.summary.push(RawJson::of(content));
                        StepChange::Other
                    }
                },
                None => StepChange::Other,
            },
            "thought_signature" => {
                self.members(delta);
                StepChange::Other
            }
            "arguments_delta" => match text_of(delta, ARGUMENTS) {
                Some(text) => {
                    self.arguments.push_str(&text);
                    StepChange::StepText(text)
                }
                None => StepChange::Other,
            },
            // The deltas of calls and results have the tag of their step and bring its members.
            other
                if self
                    .start
                    .value()
                    .get("type")
                    .is_some_and(|tag| tag.is_str(other)) =>
            {
                self.members(delta);
                StepChange::Other
            }
            _ => StepChange::Unknown,
        }
    }

    /// Set the members that a delta brings; a result grows.
    fn members(&mut self, delta: &Value<'_>) {
        for found in delta.members() {
            let key = found.key.to_str();
            if key == "type" || found.value.is_null() {
                continue;
            }
            let mut text = RawJson::of(&found.value).get().to_owned();
            if key == RESULT {
                let before = self.set.iter().find(|(set, _)| *set == key);
                let before = match before {
                    Some((_, json)) => RawJson::new(json).ok(),
                    None => self.start.value().get(RESULT).map(RawJson::of),
                };
                if let Some(grown) =
                    before.and_then(|before| appended(&before.value(), &found.value))
                {
                    text = grown;
                }
            }
            match self.set.iter_mut().find(|(set, _)| *set == key) {
                Some((_, json)) => *json = text,
                None => self.set.push((key.into_owned(), text)),
            }
        }
    }

    /// The step with everything that came.
    pub(super) fn to_json(&self) -> String {
        let mut values: Vec<(&str, String)> = Vec::new();
        for (key, list) in [(CONTENT, &self.content), ("summary", &self.summary)] {
            if list.changed {
                values.push((key, list.to_json()));
            }
        }
        if !self.arguments.is_empty() {
            values.push((ARGUMENTS, arguments(&self.arguments)));
        }
        for (key, json) in &self.set {
            values.push((key, json.clone()));
        }
        let keys: Vec<[&str; 1]> = values.iter().map(|(key, _)| [*key]).collect();
        let fills: Vec<(&[&str], TemplateValue<'_>)> = keys
            .iter()
            .zip(&values)
            .map(|(key, (_, json))| (key.as_slice(), TemplateValue::Replace(json)))
            .collect();
        let mut out = String::new();
        restore(&mut out, &self.start, &fills);
        out
    }
}

/// The arguments as an object; as the text that came if it is none, so that nothing is made up.
fn arguments(text: &str) -> String {
    match json::parse(text) {
        Ok(value) if value.as_object().is_some() => RawJson::of(&value).get().to_owned(),
        _ => {
            let mut out = String::with_capacity(text.len() + 2);
            push_string(&mut out, text);
            out
        }
    }
}

/// Texts and lists append; anything else is replaced.
fn appended(before: &Value<'_>, more: &Value<'_>) -> Option<String> {
    if let (Some(before), Some(more)) = (before.as_text(), more.as_text()) {
        return Some(format!("\"{}{}\"", before.token(), more.token()));
    }
    let all = before.as_array()?.iter().chain(more.as_array()?);
    let all: Vec<_> = all.map(|it| RawJson::of(it).get().to_owned()).collect();
    Some(array(&all))
}

impl StreamedList {
    fn of(list: Option<&Value<'_>>) -> Self {
        let mut grown = Self::default();
        match list.and_then(Value::as_text) {
            // A bare string is a text that may go on.
            Some(text) => {
                grown.add_text(text.token());
            }
            None => {
                let parts = list.and_then(Value::as_array).unwrap_or_default();
                grown.pieces = parts.iter().map(StreamedPart::of).collect();
            }
        }
        grown.changed = false;
        grown
    }

    /// How many texts there are.
    fn texts(&self) -> usize {
        let texts = self.pieces.iter();
        texts
            .filter(|piece| matches!(piece, StreamedPart::Text { .. }))
            .count()
    }

    /// Append text to the last text, or begin one. Gives its place, and the part if it is new.
    fn add_text(&mut self, token: &str) -> (usize, Option<RawJson>) {
        self.changed = true;
        let place = self.pieces.len();
        if let Some(StreamedPart::Text { token: before, .. }) = self.pieces.last_mut() {
            before.push_str(token);
            return (place - 1, None);
        }
        let part = RawJson::object(|object| {
            object.str("type", "text").str("text", "");
        });
        self.pieces.push(StreamedPart::Text {
            part: part.clone(),
            token: token.to_owned(),
            annotations: Vec::new(),
        });
        (place, Some(part))
    }

    /// Annotations of the text that is being written.
    fn annotate(&mut self, list: &[Value<'_>]) {
        if !matches!(self.pieces.last(), Some(StreamedPart::Text { .. })) {
            self.add_text("");
        }
        self.changed = true;
        if let Some(StreamedPart::Text { annotations, .. }) = self.pieces.last_mut() {
            annotations.extend(list.iter().map(|it| RawJson::of(it).get().to_owned()));
        }
    }

    fn push(&mut self, part: RawJson) -> usize {
        self.changed = true;
        self.pieces.push(StreamedPart::Whole(part));
        self.pieces.len() - 1
    }

    fn to_json(&self) -> String {
        let parts: Vec<String> = self.pieces.iter().map(StreamedPart::to_json).collect();
        array(&parts)
    }
}

impl StreamedPart {
    fn of(part: &Value<'_>) -> Self {
        let is_text = part.get("type").is_some_and(|tag| tag.is_str("text"));
        match part.get("text") {
            Some(text) if is_text && !part.has_duplicate_keys() => match text.as_text() {
                Some(found) => Self::Text {
                    part: RawJson::of_with(part, &[(text, "\"\"")]),
                    token: found.token().to_owned(),
                    annotations: Vec::new(),
                },
                None => Self::Whole(RawJson::of(part)),
            },
            _ => Self::Whole(RawJson::of(part)),
        }
    }

    fn to_json(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Whole(part) => out.push_str(part.get()),
            Self::Text {
                part,
                token,
                annotations,
            } => {
                let value = part.value();
                let token = format!("\"{token}\"");
                let Some(text) = value.get("text") else {
                    return part.get().to_owned();
                };
                push_compact_with(&mut out, &value, &[(text, &token)]);
                if annotations.is_empty() {
                    return out;
                }
                let before = value.get("annotations").and_then(Value::as_array);
                let before = before.unwrap_or_default().iter();
                let mut all: Vec<_> = before.map(|it| RawJson::of(it).get().to_owned()).collect();
                all.extend(annotations.iter().cloned());
                let all = array(&all);
                if let Ok(part) = RawJson::new(&out) {
                    out.clear();
                    restore(
                        &mut out,
                        &part,
                        &[(&["annotations"], TemplateValue::Replace(&all))],
                    );
                }
            }
        }
        out
    }
}
