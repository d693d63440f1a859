//! Calls that run here, questions whether they may, and lists of tools.

use throughline_model::json::{ArrayWriter, ObjectWriter};
use throughline_model::{ApprovalRequest, Body, Outcome, Output, ToolCall, ToolResult};

use super::call::{ClientCall, json_text};
use super::{Dialect, Draft, ItemStatus, ServerTool};
use crate::api::openai::items::{AwaitingApproval, ToolList};

/// A call that runs here.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerCall {
    pub(crate) call: String,
    /// How many calls of the same id stand before it in its message.
    pub(crate) occurrence: u32,
    /// The name that models know.
    pub(crate) model_name: String,
    pub(crate) label: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) asks: bool,
    /// Which specification the items follow.
    dialect: Dialect,
}

impl ServerCall {
    pub(crate) fn new(call: &ToolCall, tool: &ServerTool, dialect: Dialect) -> Self {
        Self {
            call: call.call.value().to_owned(),
            occurrence: 0,
            model_name: call.name.clone(),
            label: tool.label.clone(),
            name: tool.name.clone(),
            arguments: json_text(&call.arguments),
            asks: tool.asks,
            dialect,
        }
    }

    /// The same call as the n-th of its id in its message.
    pub(crate) fn with_occurrence(self, occurrence: u32) -> Self {
        Self { occurrence, ..self }
    }

    /// Whether a result is this call's. Ids may repeat within a message; the result says which of
    /// the calls it answers then.
    pub(crate) fn is_answered_by(&self, result: &ToolResult) -> bool {
        let named = result.occurrence();
        result.call().value() == self.call && named.is_none_or(|named| named == self.occurrence)
    }

    /// The type of the item.
    pub(crate) fn tag(&self) -> &'static str {
        match self.dialect {
            Dialect::OpenAi => "mcp_call",
            // Calls and their results are items apart there.
            Dialect::OpenResponses => "function_call",
        }
    }

    /// The item before its arguments.
    pub(crate) fn in_progress(&self, id: &str) -> String {
        self.write_item(id, "in_progress", "", None)
    }

    /// The item with its result; without one it never ended.
    pub(crate) fn item(&self, id: &str, result: Option<&ToolResult>) -> String {
        let status = match result {
            None => "incomplete",
            Some(result) if is_ok(result) => "completed",
            Some(_) => "failed",
        };
        self.write_item(id, status, &self.arguments, result)
    }

    fn write_item(
        &self,
        id: &str,
        status: &str,
        arguments: &str,
        result: Option<&ToolResult>,
    ) -> String {
        let mut out = String::with_capacity(arguments.len() + 256);
        let mut object = ObjectWriter::new(&mut out);
        object
            .str("id", id)
            .str("type", "mcp_call")
            .str("status", status)
            .raw("approval_request_id", "null")
            .str("server_label", &self.label)
            .str("name", &self.name)
            .str("arguments", arguments);
        match result {
            Some(result) if is_ok(result) => {
                object
                    .str("output", &output_text(&result.output))
                    .raw("error", "null");
            }
            Some(result) => {
                object.raw("output", "null");
                error(&mut object, result);
            }
            None => {
                object.raw("output", "null").raw("error", "null");
            }
        }
        object.end();
        out
    }

    /// The same where calls and their results are items apart.
    pub(crate) fn as_function(&self) -> ClientCall {
        ClientCall {
            call: self.call.clone(),
            name: self.model_name.clone(),
            arguments: self.arguments.clone(),
            custom: false,
            namespace: None,
        }
    }

    /// Its result where calls and results are items apart.
    pub(crate) fn output_item(&self, id: &str, result: &ToolResult, state: ItemStatus) -> String {
        let output = match state {
            ItemStatus::InProgress => String::new(),
            ItemStatus::Completed | ItemStatus::Incomplete => output_text(&result.output),
        };
        let mut json = String::with_capacity(output.len() + 160);
        let mut object = ObjectWriter::new(&mut json);
        object
            .str("id", id)
            .str("type", "function_call_output")
            .str("status", state.as_str())
            .str("call_id", &self.call)
            .str("output", &output);
        object.end();
        json
    }

    /// The question whether it may run.
    pub(crate) fn question(&self) -> ApprovalQuestion {
        ApprovalQuestion {
            request: self.call.clone(),
            occurrence: self.occurrence,
            label: self.label.clone(),
            name: self.name.clone(),
            arguments: self.arguments.clone(),
        }
    }
}

/// Whether a call did what it was asked.
pub(crate) fn is_ok(result: &ToolResult) -> bool {
    result.outcome == Outcome::Ok
}

fn error(object: &mut ObjectWriter<'_>, result: &ToolResult) {
    let mut error = ObjectWriter::new(object.key("error"));
    error.str("type", "mcp_tool_execution_error");
    let mut list = ArrayWriter::new(error.key("content"));
    let mut part = ObjectWriter::new(list.slot());
    let text = match output_text(&result.output) {
        text if text.is_empty() => result.outcome.as_str().to_owned(),
        text => text,
    };
    part.str("type", "text").str("text", &text);
    part.end();
    list.end();
    error.end();
}

/// What a tool gave back, as text.
pub(crate) fn output_text(output: &Output) -> String {
    match output {
        Output::None => String::new(),
        Output::Text(text) => text.clone(),
        Output::Json(json) => json.get().to_owned(),
        Output::Parts(contents) => {
            let texts = contents.iter().filter_map(|content| match &content.body {
                Body::Text(text) => Some(text.text.as_str()),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// A question whether a call may run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApprovalQuestion {
    /// The id of the call or of the vendor's request.
    pub(crate) request: String,
    /// How many calls of the same id stand before it in its message.
    pub(crate) occurrence: u32,
    pub(crate) label: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl ApprovalQuestion {
    /// A question of a vendor's tool host. The other specification has no such item.
    pub(crate) fn of(request: &ApprovalRequest, dialect: Dialect) -> Option<Draft> {
        (dialect == Dialect::OpenAi).then(|| {
            Draft::Question(Self {
                request: request.request.value().to_owned(),
                occurrence: 0,
                label: request.server.clone().unwrap_or_default(),
                name: request.name.clone(),
                arguments: json_text(&request.arguments),
            })
        })
    }

    /// Whether an approval record is about this question.
    pub(crate) fn is_asked_by(&self, asked: &AwaitingApproval) -> bool {
        (&asked.call, asked.occurrence) == (&self.request, self.occurrence)
    }

    /// The item.
    pub(crate) fn item(&self, id: &str) -> String {
        let mut out = String::with_capacity(self.arguments.len() + 160);
        let mut object = ObjectWriter::new(&mut out);
        object
            .str("id", id)
            .str("type", "mcp_approval_request")
            .str("server_label", &self.label)
            .str("name", &self.name)
            .str("arguments", &self.arguments);
        object.end();
        out
    }
}

/// The item that lists the tools of a server; before it is done it has no tools.
pub(crate) fn tool_list_item(id: &str, list: &ToolList, done: bool) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object
        .str("id", id)
        .str("type", "mcp_list_tools")
        .str("server_label", &list.label);
    let mut tools = ArrayWriter::new(object.key("tools"));
    for tool in list.tools.iter().filter(|_| done) {
        tools.raw(tool.get());
    }
    tools.end();
    object.raw("error", "null");
    object.end();
    out
}
