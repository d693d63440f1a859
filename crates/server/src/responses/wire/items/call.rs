//! Calls that the client runs.

use throughline_model::json::ObjectWriter;
use throughline_model::{Arguments, ToolCall};

use super::State;

/// A call that the client runs.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::responses::wire) struct Call {
    pub(in crate::responses::wire) call: String,
    pub(in crate::responses::wire) name: String,
    pub(in crate::responses::wire) arguments: String,
    /// Whether the arguments are free text.
    pub(in crate::responses::wire) custom: bool,
}

impl Call {
    pub(super) fn of(call: &ToolCall, custom: bool) -> Self {
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
        }
    }

    /// The type of the item.
    pub(super) fn tag(&self) -> &'static str {
        match self.custom {
            true => "custom_tool_call",
            false => "function_call",
        }
    }

    /// The item.
    pub(in crate::responses::wire) fn item(&self, id: &str, state: State) -> String {
        self.written(id, state, &self.arguments)
    }

    /// The item before its arguments.
    pub(in crate::responses::wire) fn begun(&self, id: &str) -> String {
        self.written(id, State::InProgress, "")
    }

    fn written(&self, id: &str, state: State, arguments: &str) -> String {
        let mut out = String::with_capacity(arguments.len() + arguments.len() / 4 + 160);
        let mut object = ObjectWriter::new(&mut out);
        object
            .str("id", id)
            .str("type", self.tag())
            .str("status", state.as_str())
            .str("call_id", &self.call)
            .str("name", &self.name)
            .str(if self.custom { "input" } else { "arguments" }, arguments);
        object.end();
        out
    }
}

/// Arguments as JSON text.
pub(super) fn json_text(arguments: &Arguments) -> String {
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

/// Arguments as free text.
fn free_text(arguments: &Arguments) -> String {
    match arguments {
        Arguments::None => String::new(),
        Arguments::Text(text) | Arguments::Free(text) => text.clone(),
        Arguments::Json(json) => json.get().to_owned(),
    }
}
