//! Messages of the model.

use throughline_model::json::{ArrayWriter, ObjectWriter, Value};
use throughline_model::{Body, Citation, Content, Form, Wire};

use super::{Dialect, ItemBuilder, ItemStatus};

/// One text of the model, with what it cites.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MessageDraft {
    pub(crate) text: String,
    pub(crate) refusal: bool,
    /// Each as JSON.
    pub(crate) annotations: Vec<String>,
    /// A JSON array.
    pub(crate) logprobs: Option<String>,
    pub(crate) phase: Option<String>,
}

impl ItemBuilder<'_> {
    /// The text of a content; none if there is nothing to read.
    pub(crate) fn message_draft(
        &self,
        content: &Content,
        phase: Option<&str>,
    ) -> Option<MessageDraft> {
        let (text, refusal) = match &content.body {
            Body::Text(text) => (text, false),
            Body::Refusal(text) => (text, true),
            _ => return None,
        };
        // An empty message could not be distinguished from a missing one.
        if text.text.is_empty() {
            return None;
        }
        let vendor = content.vendor.as_ref();
        let own = vendor.filter(|vendor| vendor.wire == Wire::OpenAiResponses);
        let mut said = MessageDraft {
            text: text.text.clone(),
            refusal,
            phase: phase.map(Into::into),
            ..MessageDraft::default()
        };
        match own.map(|vendor| &vendor.form) {
            Some(Form::Part(part)) => {
                let part = part.value();
                let list = part.get("annotations").and_then(Value::as_array);
                let known = list.unwrap_or_default().iter().filter(|annotation| {
                    self.dialect == Dialect::OpenAi || is_url_citation(annotation)
                });
                said.annotations = known
                    .map(|annotation| annotation.raw().to_owned())
                    .collect();
                let logprobs = part
                    .get("logprobs")
                    .filter(|list| list.as_array().is_some());
                said.logprobs = logprobs
                    .filter(|_| self.logprobs)
                    .map(|list| list.raw().to_owned());
            }
            _ => {
                let cited = text.citations.iter();
                said.annotations = cited
                    .filter_map(|one| annotation(one, self.dialect))
                    .collect();
            }
        }
        Some(said)
    }
}

fn is_url_citation(annotation: &Value<'_>) -> bool {
    annotation
        .get("type")
        .is_some_and(|tag| tag.is_str("url_citation"))
}

fn annotation(citation: &Citation, dialect: Dialect) -> Option<String> {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    match (&citation.url, &citation.file) {
        (Some(url), _) => {
            object
                .str("type", "url_citation")
                .str("url", url)
                .str("title", citation.title.as_deref().unwrap_or(url))
                .number("start_index", citation.start.unwrap_or(0))
                .number("end_index", citation.end.unwrap_or(0));
        }
        (None, Some(file)) if dialect == Dialect::OpenAi => {
            object
                .str("type", "file_citation")
                .str("file_id", file)
                .str("filename", citation.title.as_deref().unwrap_or(file))
                .number("index", citation.end.unwrap_or(0));
        }
        (None, _) => return None,
    }
    object.end();
    Some(out)
}

/// Note the phase of a vendor's message when its first content comes. It holds for the other parts
/// of that message and for nothing else.
pub(crate) fn track_phase(content: &Content, phase: &mut Option<String>) {
    let vendor = content.vendor.as_ref();
    let own = vendor.filter(|vendor| vendor.wire == Wire::OpenAiResponses);
    match own.map(|vendor| (&vendor.envelope, &vendor.form)) {
        Some((Some(envelope), _)) => {
            let value = envelope.value();
            let found = value.get("phase").and_then(Value::as_str);
            *phase = found.map(Into::into);
        }
        Some((None, Form::Part(_))) => {}
        Some((None, _)) | None => *phase = None,
    }
}

impl MessageDraft {
    /// The part of the message that is the text.
    pub(crate) fn part(&self) -> String {
        let mut out = String::with_capacity(self.text.len() + self.text.len() / 8 + 96);
        let mut object = ObjectWriter::new(&mut out);
        if self.refusal {
            object.str("type", "refusal").str("refusal", &self.text);
            object.end();
            return out;
        }
        object.str("type", "output_text").str("text", &self.text);
        let mut list = ArrayWriter::new(object.key("annotations"));
        for annotation in &self.annotations {
            list.raw(annotation);
        }
        list.end();
        object.raw("logprobs", self.logprobs.as_deref().unwrap_or("[]"));
        object.end();
        out
    }

    /// The part before anything of it came.
    pub(crate) fn empty(refusal: bool) -> Self {
        Self {
            refusal,
            ..Self::default()
        }
    }

    /// The message.
    pub(crate) fn item(&self, id: &str, state: ItemStatus) -> String {
        self.write_item(id, state, Some(&self.part()))
    }

    /// The message before its part.
    pub(crate) fn in_progress(id: &str) -> String {
        Self::default().write_item(id, ItemStatus::InProgress, None)
    }

    fn write_item(&self, id: &str, state: ItemStatus, part: Option<&str>) -> String {
        let mut out = String::with_capacity(part.map_or(0, str::len) + id.len() + 96);
        let mut object = ObjectWriter::new(&mut out);
        object
            .str("id", id)
            .str("type", "message")
            .str("status", state.as_str())
            .str("role", "assistant");
        if let Some(phase) = &self.phase {
            object.str("phase", phase);
        }
        let mut list = ArrayWriter::new(object.key("content"));
        if let Some(part) = part {
            list.raw(part);
        }
        list.end();
        object.end();
        out
    }
}
