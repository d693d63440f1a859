//! Writes contents of other vendors as items.

use std::borrow::Cow;

use throughline_model::json::{ObjectWriter, RawJson};
use throughline_model::{
    Arguments, Body, Content, Family, Message, Outcome, Output, Pairing, Path, Role, Status,
    ToolCall, ToolResult,
};

use super::encode::{CONTENT, EncodeFor, ItemEncoder};
use super::parts::{self, PartPosition};
use super::{Flavour, hosted_results};
use crate::LossKind;
use crate::foreign;
use crate::message_writer::{estimated_call_size, estimated_result_size, estimated_size};

/// The longest `call_id`.
const ID_LENGTH: usize = 64;

impl ItemEncoder<'_, '_> {
    /// Write a content of another vendor.
    pub(super) fn translate(
        &mut self,
        message: &Message,
        index: usize,
        content: &Content,
        path: &Path<'_>,
    ) {
        foreign::note_lone_surrogates(content, path, self.losses);
        match &content.body {
            Body::Text(_) | Body::Refusal(_) | Body::Media(_) | Body::Error(_) => {
                foreign::note_vendor_fields(content, path, self.losses);
                foreign::note_transcript(content, path, self.losses);
                if self.is_by_model(message) && self.writes_bare_strings() {
                    return self.translate_string(content, path);
                }
                let place = if self.is_by_model(message) {
                    PartPosition::ModelOutput
                } else {
                    PartPosition::Input
                };
                let mut part = String::with_capacity(estimated_size(content));
                parts::translate(&mut part, content, place, self.dialect, path, self.losses);
                if part.is_empty() {
                    return;
                }
                self.open(message, index, path);
                self.writer.element(CONTENT, &part);
            }
            Body::ToolCall(call) => self.translate_call(call, path),
            Body::ToolResult(result) => self.translate_result(result, path),
            Body::ApprovalRequest(_)
            | Body::ApprovalResponse(_)
            | Body::Reasoning(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => foreign::note_vendor_only(&content.body, path, self.losses),
        }
    }

    /// Whether a message is the model's.
    fn is_by_model(&self, message: &Message) -> bool {
        match self.target {
            EncodeFor::Request => message.role == Role::Assistant,
            EncodeFor::Response { .. } => true,
        }
    }

    /// Whether the model's words are sent back as strings: parts of its messages come with the id
    /// of an item, which only the vendor can give.
    fn writes_bare_strings(&self) -> bool {
        match (self.target, self.dialect.flavour) {
            (EncodeFor::Request, Flavour::OpenAi) => true,
            (EncodeFor::Request, Flavour::Foundry) | (EncodeFor::Response { .. }, _) => false,
        }
    }

    /// A message of the model that is a string. Each text is a message, so that they stay apart.
    fn translate_string(&mut self, content: &Content, path: &Path<'_>) {
        let Some(text) = parts::model_text(content, path, self.losses) else {
            return;
        };
        let mut out = String::with_capacity(estimated_size(content));
        let mut object = ObjectWriter::new(&mut out);
        object
            .str("type", "message")
            .str("role", "assistant")
            .str("content", text);
        object.end();
        self.writer.item(out);
    }

    /// Open a message for the contents of one of ours, unless it is open already.
    pub(super) fn open(&mut self, message: &Message, index: usize, path: &Path<'_>) {
        if self.writer.made_for() == Some(index) {
            return;
        }
        let envelope = match self.target {
            EncodeFor::Response { id, status } => {
                let id = self.next_id(id, "msg");
                RawJson::object(|object| {
                    object
                        .str("id", &id)
                        .str("type", "message")
                        .str("status", status)
                        .str("role", "assistant")
                        .raw("content", "[]");
                })
            }
            EncodeFor::Request => {
                let role = self.role(message, path);
                RawJson::object(|object| {
                    object
                        .str("type", "message")
                        .str("role", role)
                        .raw("content", "[]");
                })
            }
        };
        self.writer.open_for(index, || Cow::Owned(envelope));
    }

    /// The role under which a message is written.
    fn role<'m>(&mut self, message: &'m Message, path: &Path<'_>) -> &'m str {
        match message.role.as_str() {
            role if self.dialect.roles.contains(&role) => role,
            role => {
                let detail = format!("{role} becomes user");
                self.losses.note(path, LossKind::Role, detail);
                "user"
            }
        }
    }

    fn translate_call(&mut self, call: &ToolCall, path: &Path<'_>) {
        if foreign::is_hosted_call(call, path, self.losses) {
            return;
        }
        let custom = call.family == Family::CUSTOM;
        let mut out = String::with_capacity(estimated_call_size(call));
        let mut object = ObjectWriter::new(&mut out);
        if let EncodeFor::Response { id, status } = self.target {
            let status = match &call.status {
                Some(Status::Completed) => "completed",
                Some(Status::Incomplete) => "incomplete",
                Some(Status::InProgress) => "in_progress",
                Some(Status::Failed | Status::Other(_)) | None => status,
            };
            object.str("id", &self.next_id(id, if custom { "ctc" } else { "fc" }));
            // OpenAI's custom calls have no status.
            if !custom || self.dialect.flavour == Flavour::Foundry {
                object.str("status", status);
            }
        }
        let id = foreign::fit_id(call.call.value(), ID_LENGTH);
        object
            .str(
                "type",
                if custom {
                    "custom_tool_call"
                } else {
                    "function_call"
                },
            )
            .str("call_id", &id)
            .str("name", foreign::tool_name(call));
        if custom {
            let arguments;
            let input = match &call.arguments {
                Arguments::None => "",
                Arguments::Free(text) | Arguments::Text(text) => text,
                Arguments::Json(_) => {
                    arguments = foreign::arguments_text(&call.arguments);
                    &arguments
                }
            };
            object.str("input", input);
        } else {
            object.str("arguments", &foreign::arguments_text(&call.arguments));
            foreign::note_becomes_function(call, path, self.losses);
            if call.family != Family::FUNCTION {
                self.functions.insert(call.call.clone());
            }
        }
        object.end();
        self.writer.item(out);
    }

    fn translate_result(&mut self, result: &ToolResult, path: &Path<'_>) {
        if foreign::is_hosted_result(result, path, self.losses) {
            return;
        }
        if let EncodeFor::Response { .. } = self.target {
            let detail = "results of the application are no part of a response";
            self.losses.note(path, LossKind::StandaloneResult, detail);
            return;
        }
        let id = foreign::fit_id(result.call().value(), ID_LENGTH);
        let follows =
            result.pairing() == Pairing::Answers && !self.functions.contains(result.call());
        if follows
            && let Some(text) =
                hosted_results::translate(self.dialect.flavour, result, &id, path, self.losses)
        {
            return self.writer.item(text);
        }
        if result.outcome == Outcome::Error {
            self.losses
                .note(path, LossKind::Outcome, "there is no failure mark here");
        }
        let custom = result.family == Family::CUSTOM;
        let mut out = String::with_capacity(estimated_result_size(result));
        let mut object = ObjectWriter::new(&mut out);
        object.str(
            "type",
            if custom {
                "custom_tool_call_output"
            } else {
                "function_call_output"
            },
        );
        match (result.pairing(), custom) {
            (Pairing::Answers, _) | (Pairing::Standalone, true) => {
                object.str("call_id", &id);
            }
            (Pairing::Standalone, false) => {
                object.raw("call_id", "null");
                if let Some(name) = &result.name {
                    object.str("name", name);
                }
            }
        }
        match &result.output {
            Output::Parts(contents) => {
                let mut elements = String::new();
                let path = path.key("output");
                parts::encode_all(&mut elements, contents, self.dialect, &path, self.losses);
                object.raw("output", &format!("[{elements}]"));
            }
            Output::None => {
                object.str("output", "");
            }
            Output::Text(text) => {
                object.str("output", text);
            }
            Output::Json(json) => {
                object.str("output", json.get());
            }
        }
        object.end();
        self.writer.item(out);
    }
}
