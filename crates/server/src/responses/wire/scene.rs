//! What a response is told with beside the events of its run.

use std::collections::BTreeMap;
use std::sync::Arc;

use throughline::StopReason;
use throughline_model::json::RawJson;
use throughline_model::{Stop, ToolCall};
use throughline_store::{ApprovalId, Millis, RunId, ThreadId};

use super::ignored::Ignored;
use super::request::{CreateRequest, ToolName};

/// Whose events and items are sent where OpenAI's API and the Open Responses specification differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// OpenAI's, with the member `throughline`.
    #[default]
    OpenAi,
    /// Nothing outside of the Open Responses specification.
    OpenResponses,
}

/// A tool that runs here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTool {
    /// The server that has it.
    pub label: String,
    /// Its name there.
    pub name: String,
    /// Whether a call may wait for somebody's leave. Such a call is shown when it has a result, or
    /// as a question when the response ends.
    pub asks: bool,
}

/// The tools that run here, by the name that models know. All others are the client's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    served: BTreeMap<String, ServerTool>,
    /// Tools of the client that models know by another name or in another form.
    renamed: BTreeMap<String, ToolName>,
}

impl Labels {
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

/// What a response is told with beside the events of its run. It must be the same for every reader
/// at every time: frames are derived from it.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The run; its id is the response's.
    pub run: RunId,
    /// The thread, if the response is kept.
    pub thread: Option<ThreadId>,
    /// When it began.
    pub created: Millis,
    /// The response that it goes on from.
    pub previous: Option<RunId>,
    /// What was asked for.
    pub request: Arc<CreateRequest>,
    /// Whose events are sent.
    pub dialect: Dialect,
    /// The tools that run here.
    pub labels: Labels,
    /// The tool lists that this response shows.
    pub lists: Vec<ToolList>,
    /// Calls for which the response before waited, and which get their results in this run, by
    /// position.
    pub known_calls: Vec<KnownCall>,
    /// What of the request is not carried out, as far as it was known before the first model call.
    pub ignored: Vec<Ignored>,
}

/// A call of the response before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCall {
    /// The call.
    pub call: ToolCall,
    /// How many calls of the same id stand before it in its message.
    pub occurrence: u32,
}

/// A call that waits for somebody's leave when a response ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Which model call asked for it.
    pub step: u32,
    /// The id of the call.
    pub call: String,
    /// How many calls of the same id stand before it in its message.
    pub occurrence: u32,
    /// The record that is to be answered.
    pub approval: ApprovalId,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Why it stopped.
    pub stop: StopReason,
    /// Why the model stopped in its last answer; [`Stop::Length`] too if the budget of tokens was
    /// used up.
    pub finish: Option<Stop>,
    /// Code and message of what went wrong.
    pub error: Option<(String, String)>,
    /// Calls that wait for somebody's leave.
    pub asked: Vec<Asked>,
    /// When.
    pub at: Millis,
    /// What could not be carried out and was found while models were called.
    pub ignored: Vec<Ignored>,
}
