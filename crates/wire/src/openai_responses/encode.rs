//! Writing items.

use std::collections::HashSet;

use throughline_model::json::{self, RawJson};
use throughline_model::{
    Arguments, Body, CallId, Content, Form, Message, Output, Path, Response, Scope, ToolResult,
};

use super::{Dialect, parts};
use crate::Losses;
use crate::foreign;
use crate::message_writer::{MessageWriter, estimated_size};
use crate::native;
use crate::template::{TemplateValue, restore};
use crate::wire_type::{ArgumentsAt, OutputAt, WireType};

/// Where a message has its parts.
pub(super) const CONTENT: &str = "content";

/// Ordinals of ids for items start here, far from those of calls and of standalone results.
const ITEMS: usize = 1 << 33;

/// What items are written for.
#[derive(Clone, Copy, Debug)]
pub(super) enum EncodeFor<'t> {
    /// The input of a request. Items made here go without an id: one that the vendor never gave is
    /// refused.
    Request,
    /// The output of a response, whose author we are: items made here have ids, derived from that
    /// of the response, and a status.
    Response { id: &'t str, status: &'static str },
}

/// Writes contents as items, one after the other.
pub(super) struct ItemEncoder<'e, 'm> {
    pub(super) dialect: &'e Dialect,
    pub(super) target: EncodeFor<'e>,
    pub(super) losses: &'e mut Losses,
    pub(super) writer: MessageWriter<'m>,
    /// The call whose item, just written, holds its result too.
    combined_call: Option<CallId>,
    /// Calls that became function calls here, so that their results follow them.
    pub(super) functions: HashSet<CallId>,
    /// How many items were made here.
    translated: usize,
}

/// Write messages as the items of a request, each as JSON text.
pub(crate) fn items(dialect: &Dialect, messages: &[Message], losses: &mut Losses) -> Vec<String> {
    encode(dialect, messages, EncodeFor::Request, losses)
}

/// Write the messages of a response as its items, each as JSON text.
pub(super) fn response_items(
    dialect: &Dialect,
    response: &Response,
    losses: &mut Losses,
) -> Vec<String> {
    let target = EncodeFor::Response {
        id: super::body::response_id(response),
        status: super::body::item_status(&response.stop),
    };
    encode(dialect, &response.messages, target, losses)
}

fn encode(
    dialect: &Dialect,
    messages: &[Message],
    target: EncodeFor<'_>,
    losses: &mut Losses,
) -> Vec<String> {
    let mut encoder = ItemEncoder {
        dialect,
        target,
        losses,
        writer: MessageWriter::default(),
        combined_call: None,
        functions: HashSet::new(),
        translated: 0,
    };
    let root = Path::Root.key("messages");
    for (index, message) in messages.iter().enumerate() {
        let path = root.index(index);
        let path = path.key("contents");
        for (place, content) in message.contents.iter().enumerate() {
            let next = message.contents.get(place + 1);
            encoder.content(message, index, content, next, &path.index(place));
        }
    }
    encoder.writer.finish()
}

impl<'m> ItemEncoder<'_, 'm> {
    fn content(
        &mut self,
        message: &Message,
        index: usize,
        content: &'m Content,
        next: Option<&Content>,
        path: &Path<'_>,
    ) {
        let Some(vendor) = native::vendor(content, &self.dialect.wire) else {
            return self.translate(message, index, content, path);
        };
        if let Some(envelope) = &vendor.envelope {
            self.writer.open(envelope);
        }
        match &vendor.form {
            Form::Item(item) => {
                let text = self.item(content, item, next, path);
                self.writer.item(text);
            }
            Form::Part(part) => {
                if !self.writer.is_open() {
                    self.open(message, index, path);
                }
                self.writer
                    .write_element(CONTENT, estimated_size(content), |out| {
                        parts::encode(out, &content.body, part);
                    });
            }
            Form::Bare => match content.as_text() {
                Some(text) if vendor.envelope.is_some() => self.writer.bare_string(CONTENT, text),
                _ => self.translate(message, index, content, path),
            },
            Form::Within => {
                let answers = content.as_tool_result().map(ToolResult::call);
                if answers.is_none() || answers != self.combined_call.as_ref() {
                    self.translate(message, index, content, path);
                }
            }
        }
    }

    /// The item of a content that came from this format.
    fn item(
        &mut self,
        content: &Content,
        item: &RawJson,
        next: Option<&Content>,
        path: &Path<'_>,
    ) -> String {
        let mut out = String::new();
        match &content.body {
            Body::ToolCall(call) => {
                if !self.functions.is_empty() {
                    self.functions.remove(&call.call);
                }
                // The result that stands in the same item, if it is still there.
                let within = next.filter(|next| {
                    let form = next.vendor.as_ref().map(|vendor| &vendor.form);
                    form == Some(&Form::Within)
                });
                let result = within
                    .and_then(Content::as_tool_result)
                    .filter(|result| *result.call() == call.call);
                self.combined_call = result.map(|result| result.call().clone());
                self.call(&mut out, item, &call.arguments, result, path);
            }
            Body::ApprovalRequest(request) => {
                self.call(&mut out, item, &request.arguments, None, path);
            }
            Body::ToolResult(result) => {
                self.call(&mut out, item, &Arguments::None, Some(result), path);
            }
            Body::Text(_)
            | Body::Reasoning(_)
            | Body::Media(_)
            | Body::ApprovalResponse(_)
            | Body::Refusal(_)
            | Body::Error(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => out.push_str(item.get()),
        }
        out
    }

    /// Put arguments and output back into an item.
    fn call(
        &mut self,
        out: &mut String,
        item: &RawJson,
        arguments: &Arguments,
        result: Option<&ToolResult>,
        path: &Path<'_>,
    ) {
        let tag = item.locate(&["type"]).map(|at| &item.get()[at]);
        let Some(row) = tag.and_then(|tag| self.item_type(tag)) else {
            out.push_str(item.get());
            return;
        };
        let arguments_value = match (&row.arguments, arguments) {
            (ArgumentsAt::Text(key), Arguments::Text(text))
            | (ArgumentsAt::Free(key), Arguments::Free(text)) => {
                Some(([*key], TemplateValue::Text(text)))
            }
            (ArgumentsAt::Json(keys), Arguments::Json(json)) => {
                let extractor = keys.iter().find(|key| item.locate(&[key]).is_some());
                extractor.map(|key| ([*key], TemplateValue::Json(json.get())))
            }
            _ => None,
        };
        let mut elements = String::new();
        let place = match row.output {
            OutputAt::Any(key)
            | OutputAt::TextOrJson(key)
            | OutputAt::Json(key)
            | OutputAt::Image(key) => Some(key),
            OutputAt::Nowhere => None,
        };
        let output = result.map_or(&Output::None, |result| &result.output);
        let output_value = place.and_then(|key| match output {
            Output::None => None,
            Output::Text(text) => Some(([key], TemplateValue::Text(text))),
            Output::Json(json) => Some(([key], TemplateValue::Json(json.get()))),
            Output::Parts(contents) => match (row.output, foreign::single_data(contents)) {
                (OutputAt::Image(_), Some(data)) => Some(([key], TemplateValue::Text(data))),
                _ => {
                    let path = path.key("output");
                    let dialect = self.dialect;
                    parts::encode_all(&mut elements, contents, dialect, &path, self.losses);
                    Some(([key], TemplateValue::Elements(&elements)))
                }
            },
        });
        match (arguments_value, output_value) {
            (Some(arguments), Some(output)) => restore(out, item, &[arguments, output]),
            (Some(one), None) | (None, Some(one)) => restore(out, item, &[one]),
            (None, None) => out.push_str(item.get()),
        }
    }

    /// The item type of a tag, given as its token.
    fn item_type(&self, token: &str) -> Option<&'static WireType> {
        let plain = token.strip_prefix('"')?.strip_suffix('"')?;
        if plain.contains('\\') {
            return self.dialect.item_type(&json::parse(token).ok()?.as_str()?);
        }
        self.dialect.item_type(plain)
    }

    /// The id of the next item that is made for a response.
    pub(super) fn next_id(&mut self, response: &str, prefix: &str) -> String {
        let minted = CallId::minted(Scope::Response(response), ITEMS + self.translated);
        self.translated += 1;
        let hash = minted.value().trim_start_matches("tc_");
        format!("{prefix}_{hash}")
    }
}
