//! The contents of an answer as the message of a completion.

use std::borrow::Cow;

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson};
use throughline_model::{Arguments, Body, Citation, Content, Runner, Stop, ToolCall, Usage};

use crate::api::ignored::Ignored;

/// What the contents of an answer are in a message.
#[derive(Default)]
pub(super) struct AnswerMessage {
    text: Option<String>,
    refusal: Option<String>,
    reasoning: String,
    calls: Vec<String>,
    citations: Vec<Citation>,
    /// Contents that a message has no place for.
    pub(super) omitted: Vec<Ignored>,
}

impl AnswerMessage {
    pub(super) fn of<'c>(contents: impl IntoIterator<Item = &'c Content>) -> Self {
        let mut message = Self::default();
        for content in contents {
            message.add(content);
        }
        message
    }

    fn add(&mut self, content: &Content) {
        match &content.body {
            Body::Text(text) => {
                let before = self.text.as_ref().map_or(0, |text| text.chars().count());
                self.cite(&text.citations, before as u64);
                self.text.get_or_insert_default().push_str(&text.text);
            }
            Body::Refusal(text) => self.refusal.get_or_insert_default().push_str(&text.text),
            Body::Reasoning(_) => self.reasoning.push_str(&reasoning_text(content)),
            Body::ToolCall(call) if call.runner == Runner::Client => {
                self.calls.push(call_json(call));
            }
            _ => self.omitted.extend(omitted(content)),
        }
    }

    fn cite(&mut self, citations: &[Citation], before: u64) {
        self.citations.extend(shifted(citations, before));
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.str("role", "assistant");
        match &self.text {
            Some(text) => object.str("content", text),
            None => object.raw("content", "null"),
        };
        match &self.refusal {
            Some(text) => object.str("refusal", text),
            None => object.raw("refusal", "null"),
        };
        if !self.reasoning.is_empty() {
            object.str("reasoning_content", &self.reasoning);
        }
        if let Some(annotations) = annotations(&self.citations) {
            object.raw("annotations", annotations.as_str());
        }
        if self.has_calls() {
            let mut list = ArrayWriter::new(object.key("tool_calls"));
            for call in &self.calls {
                list.raw(call);
            }
            list.end();
        }
        object.end();
    }
}

/// A content that a message has no place for; none if nothing is lost without it.
pub(super) fn omitted(content: &Content) -> Option<Ignored> {
    let what = match &content.body {
        Body::Media(_) => "a picture, sound or file of the model has no place in a message",
        Body::ToolCall(_) | Body::ToolResult(_) => "the upstream ran a tool of its own",
        Body::ApprovalRequest(_) | Body::ApprovalResponse(_) => {
            "the upstream asked for the approval of a tool of its own"
        }
        Body::Error(_) | Body::Opaque(_) | Body::Unknown(_) => {
            "the upstream sent an item that has no place in a message"
        }
        Body::Text(_) | Body::Refusal(_) | Body::Reasoning(_) => return None,
    };
    Some(Ignored::new("choices[0].message", what))
}

/// The readable part of reasoning.
pub(super) fn reasoning_text(content: &Content) -> String {
    let Body::Reasoning(reasoning) = &content.body else {
        return String::new();
    };
    match reasoning.text.is_empty() {
        true => reasoning.summary.join(SUMMARY_PARTS),
        false => reasoning.text.concat(),
    }
}

/// What stands between the parts of a summary.
pub(super) const SUMMARY_PARTS: &str = "\n\n";

/// Citations of a text that has others before it.
pub(super) fn shifted(citations: &[Citation], before: u64) -> impl Iterator<Item = Citation> {
    citations.iter().map(move |citation| Citation {
        start: citation.start.map(|at| at.saturating_add(before)),
        end: citation.end.map(|at| at.saturating_add(before)),
        ..citation.clone()
    })
}

/// The annotations of a text, as an array.
pub(super) fn annotations(citations: &[Citation]) -> Option<String> {
    let mut out = String::new();
    let mut list = ArrayWriter::new(&mut out);
    let mut is_empty = true;
    for citation in citations {
        let Some(url) = citation.url.as_deref() else {
            continue;
        };
        is_empty = false;
        let mut annotation = ObjectWriter::new(list.slot());
        annotation.str("type", "url_citation");
        let mut inner = ObjectWriter::new(annotation.key("url_citation"));
        inner
            .number("start_index", citation.start.unwrap_or(0))
            .number("end_index", citation.end.unwrap_or(0))
            .str("title", citation.title.as_deref().unwrap_or(url))
            .str("url", url);
        inner.end();
        annotation.end();
    }
    list.end();
    (!is_empty).then_some(out)
}

/// The arguments of a call as the text of a function call.
pub(super) fn arguments_text(call: &ToolCall) -> Cow<'_, str> {
    match &call.arguments {
        Arguments::None => Cow::Borrowed("{}"),
        Arguments::Text(text) => Cow::Borrowed(text),
        Arguments::Json(json) => Cow::Borrowed(json.get()),
        Arguments::Free(text) => Cow::Owned(
            RawJson::object(|object| {
                object.str("input", text);
            })
            .get()
            .to_owned(),
        ),
    }
}

fn call_json(call: &ToolCall) -> String {
    RawJson::object(|object| {
        object.str("id", call.call.value()).str("type", "function");
        let mut function = ObjectWriter::new(object.key("function"));
        function
            .str("name", &call.name)
            .str("arguments", &arguments_text(call));
        function.end();
    })
    .get()
    .to_owned()
}

/// The word for why an answer ended.
pub(super) fn finish_reason(stop: &Stop, has_calls: bool) -> &'static str {
    match stop {
        Stop::Length => "length",
        Stop::ContentFilter | Stop::Refusal => "content_filter",
        Stop::ToolCalls => "tool_calls",
        Stop::Done | Stop::Paused | Stop::Other(_) if has_calls => "tool_calls",
        Stop::Done | Stop::Paused | Stop::Other(_) => "stop",
        // Such an answer is an error before it comes here.
        Stop::Cancelled | Stop::Failed | Stop::InProgress | Stop::Cut => "length",
    }
}

/// The tokens of an answer, as far as the upstream reports them.
pub(super) fn usage(usage: &Usage) -> RawJson {
    RawJson::object(|object| {
        let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        let total = usage.total.unwrap_or_else(|| input.saturating_add(output));
        object
            .number("prompt_tokens", input)
            .number("completion_tokens", output)
            .number("total_tokens", total);
        if let Some(read) = usage.cache_read {
            let mut details = ObjectWriter::new(object.key("prompt_tokens_details"));
            details.number("cached_tokens", read);
            details.end();
        }
        if let Some(reasoning) = usage.reasoning {
            let mut details = ObjectWriter::new(object.key("completion_tokens_details"));
            details.number("reasoning_tokens", reasoning);
            details.end();
        }
    })
}
