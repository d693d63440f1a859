//! Tools and their calls, as far as items show them.

use std::collections::BTreeMap;

use throughline_model::ToolCall;
use throughline_model::json::RawJson;
use throughline_store::ApprovalId;

use super::ToolName;

/// A tool that runs here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTool {
    /// The server that has it.
    pub label: String,
    /// Its name there.
    pub name: String,
    /// Whether a call may wait for approval. Such a call is shown when it has a result, or
    /// as a question when the response ends.
    pub asks: bool,
}

/// The tools that run here, by the name that models know. All others are the client's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolIndex {
    served: BTreeMap<String, ServerTool>,
    /// Tools of the client that models know by another name or in another form.
    renamed: BTreeMap<String, ToolName>,
}

impl ToolIndex {
    /// No tool runs here.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more tool.
    pub fn insert(&mut self, name: impl Into<String>, tool: ServerTool) {
        self.served.insert(name.into(), tool);
    }

    /// The same with a tool of the client that is offered as a function.
    pub fn rename(&mut self, offered: impl Into<String>, tool: ToolName) {
        self.renamed.insert(offered.into(), tool);
    }

    /// How a client declared a tool that is offered by this name, if it is another form of it.
    pub fn declared(&self, name: &str) -> Option<&ToolName> {
        self.renamed.get(name)
    }

    /// The tool with a name, if it runs here.
    pub fn find(&self, name: &str) -> Option<&ServerTool> {
        self.served.get(name)
    }
}

/// The tools of a server, as they are listed once in a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolList {
    /// The server.
    pub label: String,
    /// Its tools: objects with `name`, `description`, `input_schema` and `annotations`.
    pub tools: Vec<RawJson>,
}

/// A call of the response before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCall {
    /// The call.
    pub call: ToolCall,
    /// How many calls of the same id stand before it in its message.
    pub occurrence: u32,
}

/// A call that waits for approval when a response ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitingApproval {
    /// Which model call asked for it.
    pub step: u32,
    /// The id of the call.
    pub call: String,
    /// How many calls of the same id stand before it in its message.
    pub occurrence: u32,
    /// The record that is to be answered.
    pub approval: ApprovalId,
}
