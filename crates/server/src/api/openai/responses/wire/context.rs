//! What a response shows beside the events of its run.

use std::sync::Arc;

use throughline::StopReason;
use throughline_model::Stop;
use throughline_store::{Millis, RunId, ThreadId};

use super::ignored::Ignored;
use super::items::{AwaitingApproval, KnownCall, ToolIndex, ToolList};
use super::request::CreateRequest;
use crate::config::Dialect;

/// What a response shows beside the events of its run. It must be the same for every reader at every
/// time: frames are derived from it.
#[derive(Clone, Debug)]
pub struct ResponseContext {
    /// The run; its id is the response's.
    pub run: RunId,
    /// The thread, if the response is kept.
    pub thread: Option<ThreadId>,
    /// When it began.
    pub created: Millis,
    /// The response that it continues.
    pub previous: Option<RunId>,
    /// The conversation that it belongs to.
    pub conversation: Option<String>,
    /// What was asked for.
    pub request: Arc<CreateRequest>,
    /// Which specification the events follow.
    pub dialect: Dialect,
    /// The tools that run here.
    pub tool_index: ToolIndex,
    /// The tool lists that this response shows.
    pub lists: Vec<ToolList>,
    /// Calls for which the response before waited, and which get their results in this run, by
    /// position.
    pub known_calls: Vec<KnownCall>,
    /// What of the request is not carried out, as far as it was known before the first model call.
    pub ignored: Vec<Ignored>,
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
    /// Calls that wait for approval.
    pub asked: Vec<AwaitingApproval>,
    /// When.
    pub at: Millis,
    /// What could not be carried out and was found while models were called.
    pub ignored: Vec<Ignored>,
}
