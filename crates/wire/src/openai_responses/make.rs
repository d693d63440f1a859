//! Saying what came from elsewhere.

use std::borrow::Cow;

use throughline_model::json::{ObjectWriter, RawJson};
use throughline_model::{
    Arguments, Body, Content, Family, Message, Outcome, Output, Pairing, Path, Role, Runner,
    Status, ToolCall, ToolResult,
};

use super::encode::{CONTENT, ItemEncoder, Target};
use super::parts::{self, Place};
use super::{Flavour, results};
use crate::LossKind;
use crate::foreign;
use crate::message_writer::{call_room, result_room, room};

/// The longest `call_id`.
const ID_LENGTH: usize = 64;

impl ItemEncoder<'_, '_> {
    /// Say a content that came from elsewhere.
    pub(super) fn make(
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
                foreign::note_words(content, path, self.losses);
                if self.is_said(message) && self.says_strings() {
                    return self.make_string(content, path);
                }
                let place = if self.is_said(message) {
                    Place::Said
                } else {
                    Place::Asked
                };
                let mut part = String::with_capacity(room(content));
                parts::make(&mut part, content, place, self.dialect, path, self.losses);
                if part.is_empty() {
                    return;
                }
                self.open(message, index, path);
                self.gather.element(CONTENT, &part);
            }
            Body::ToolCall(call) => self.make_call(call, path),
            Body::ToolResult(result) => self.make_result(result, path),
            Body::ApprovalRequest(_) | Body::ApprovalResponse(_) => self.losses.note(
                path,
                LossKind::Approval,
                "approvals are control data of the vendor that asked",
            ),
            Body::Reasoning(_) => self.losses.note(
                path,
                LossKind::Reasoning,
                "reasoning goes back only to the vendor that made it",
            ),
            Body::Opaque(opaque) => self.losses.note(
                path,
                LossKind::VendorItem,
                format!("{} means nothing here", opaque.tag),
            ),
            Body::Unknown(_) => {
                self.losses
                    .note(path, LossKind::VendorItem, "unknown kind of content");
            }
        }
    }

    /// Whether a message is the model's.
    fn is_said(&self, message: &Message) -> bool {
        match self.target {
            Target::Request => message.role == Role::Assistant,
            Target::Response { .. } => true,
        }
    }

    /// Whether the model's words are sent back as strings: parts of its messages come with the id
    /// of an item, which only the vendor can give.
    fn says_strings(&self) -> bool {
        match (self.target, self.dialect.flavour) {
            (Target::Request, Flavour::OpenAi) => true,
            (Target::Request, Flavour::Foundry) | (Target::Response { .. }, _) => false,
        }
    }

    /// A message of the model that is a string. Each text is a message, so that they stay apart.
    fn make_string(&mut self, content: &Content, path: &Path<'_>) {
        let Some(text) = parts::said_text(content, path, self.losses) else {
            return;
        };
        let mut out = String::with_capacity(room(content));
        let mut object = ObjectWriter::new(&mut out);
        object
            .str("type", "message")
            .str("role", "assistant")
            .str("content", text);
        object.end();
        self.gather.item(out);
    }

    /// Open a message for the contents of one of ours, unless it is open already.
    pub(super) fn open(&mut self, message: &Message, index: usize, path: &Path<'_>) {
        if self.gather.made_for() == Some(index) {
            return;
        }
        let envelope = match self.target {
            Target::Response { id, status } => {
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
            Target::Request => {
                let role = self.role(message, path);
                RawJson::object(|object| {
                    object
                        .str("type", "message")
                        .str("role", role)
                        .raw("content", "[]");
                })
            }
        };
        self.gather.open_for(index, || Cow::Owned(envelope));
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

    fn make_call(&mut self, call: &ToolCall, path: &Path<'_>) {
        if call.runner == Runner::Vendor {
            let detail = format!("{} call was run by another vendor", call.family);
            self.losses.note(path, LossKind::HostedTool, detail);
            return;
        }
        let custom = call.family == Family::CUSTOM;
        let mut out = String::with_capacity(call_room(call));
        let mut object = ObjectWriter::new(&mut out);
        if let Target::Response { id, status } = self.target {
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
        let id = foreign::short_id(call.call.value(), ID_LENGTH);
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
            .str("name", foreign::name(call));
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
            if call.family != Family::FUNCTION {
                self.functions.insert(call.call.clone());
                let detail = format!("{} call becomes a function call", call.family);
                self.losses.note(path, LossKind::HostedTool, detail);
            }
        }
        object.end();
        self.gather.item(out);
    }

    fn make_result(&mut self, result: &ToolResult, path: &Path<'_>) {
        if result.runner == Runner::Vendor {
            let detail = format!("{} result was made by another vendor", result.family);
            self.losses.note(path, LossKind::HostedTool, detail);
            return;
        }
        if let Target::Response { .. } = self.target {
            let detail = "results of the application are no part of a response";
            self.losses.note(path, LossKind::StandaloneResult, detail);
            return;
        }
        let id = foreign::short_id(result.call().value(), ID_LENGTH);
        let follows =
            result.pairing() == Pairing::Answers && !self.functions.contains(result.call());
        if follows
            && let Some(text) = results::make(self.dialect.flavour, result, &id, path, self.losses)
        {
            return self.gather.item(text);
        }
        if result.outcome == Outcome::Error {
            self.losses
                .note(path, LossKind::Outcome, "there is no failure mark here");
        }
        let custom = result.family == Family::CUSTOM;
        let mut out = String::with_capacity(result_room(result));
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
        self.gather.item(out);
    }
}
