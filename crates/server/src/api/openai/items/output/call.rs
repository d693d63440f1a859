//! Calls that the client runs.

use throughline_model::json::{ObjectWriter, RawJson, Value};
use throughline_model::{Arguments, ToolCall};

use super::ItemStatus;
use crate::api::openai::items::ToolName;

/// A call that the client runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientCall {
    pub(crate) call: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// Whether the arguments are free text.
    pub(crate) custom: bool,
    /// The namespace of the tool.
    pub(crate) namespace: Option<String>,
}

impl ClientCall {
    pub(crate) fn of(call: &ToolCall, custom: bool) -> Self {
        Self {
            call: call.call.value().to_owned(),
            name: match call.name.is_empty() {
                true => call.family.as_str().to_owned(),
                false => call.name.clone(),
            },
            arguments: match custom {
                true => free_text(&call.arguments),
                false => json_text(&call.arguments),
            },
            custom,
            namespace: None,
        }
    }

    /// A call of a tool that the client declared in another form than models were offered it.
    pub(crate) fn declared(call: &ToolCall, tool: &ToolName) -> Self {
        Self {
            name: tool.name.clone(),
            arguments: match tool.custom {
                true => input_of(&call.arguments),
                false => json_text(&call.arguments),
            },
            custom: tool.custom,
            namespace: tool.namespace.clone(),
            call: call.call.value().to_owned(),
        }
    }

    /// The type of the item.
    pub(crate) fn tag(&self) -> &'static str {
        match self.custom {
            true => "custom_tool_call",
            false => "function_call",
        }
    }

    /// The item.
    pub(crate) fn item(&self, id: &str, state: ItemStatus) -> String {
        self.write_item(id, state, &self.arguments)
    }

    /// The item before its arguments.
    pub(crate) fn in_progress(&self, id: &str) -> String {
        self.write_item(id, ItemStatus::InProgress, "")
    }

    fn write_item(&self, id: &str, state: ItemStatus, arguments: &str) -> String {
        let mut out = String::with_capacity(arguments.len() + arguments.len() / 4 + 160);
        let mut object = ObjectWriter::new(&mut out);
        object
            .str("id", id)
            .str("type", self.tag())
            .str("status", state.as_str())
            .str("call_id", &self.call)
            .str("name", &self.name)
            .str(if self.custom { "input" } else { "arguments" }, arguments);
        if let Some(namespace) = &self.namespace {
            object.str("namespace", namespace);
        }
        object.end();
        out
    }
}

/// Arguments as JSON text.
pub(crate) fn json_text(arguments: &Arguments) -> String {
    match arguments {
        Arguments::None => "{}".to_owned(),
        Arguments::Text(text) => text.clone(),
        Arguments::Json(json) => json.get().to_owned(),
        Arguments::Free(text) => {
            let mut out = String::new();
            let mut object = ObjectWriter::new(&mut out);
            object.str("input", text);
            object.end();
            out
        }
    }
}

/// The free text in the arguments of a function that stands for a tool which takes free text. Models
/// that do not keep to its schema are taken at their word.
fn input_of(arguments: &Arguments) -> String {
    let text = free_text(arguments);
    let parsed = RawJson::new(&text).ok();
    let input = parsed.as_ref().and_then(|json| {
        let value = json.value();
        value.get("input").and_then(Value::as_str).map(Into::into)
    });
    input.unwrap_or(text)
}

/// Arguments as free text.
fn free_text(arguments: &Arguments) -> String {
    match arguments {
        Arguments::None => String::new(),
        Arguments::Text(text) | Arguments::Free(text) => text.clone(),
        Arguments::Json(json) => json.get().to_owned(),
    }
}
