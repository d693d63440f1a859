//! Calls of an answer that this process runs, or that wait for a result or an approval.

use throughline_model::{
    ApprovalRequest, Body, CallId, Content, Message, Outcome, Output, Runner, ToolCall, ToolResult,
    Wire, occurrence_in,
};

/// A call of an answer that has no result yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    /// The format of the approval request, if the vendor's tool host sent one.
    pub(crate) asked_in: Option<Wire>,
    /// How many calls with the same id precede it in its message, if others share the id.
    pub(crate) occurrence: Option<u32>,
}

impl OpenCall {
    /// A call of which only id and tool are known, because the run that made it was deleted. It can
    /// be answered, but not run.
    pub(crate) fn lost(call: CallId, tool: &str) -> Self {
        Self {
            call: ToolCall::function(call, tool, "{}"),
            asked_in: None,
            occurrence: None,
        }
    }

    /// The result of this call.
    pub(crate) fn answer(&self, outcome: Outcome, output: Output) -> ToolResult {
        answer(&self.call, self.occurrence, outcome, output)
    }

    /// Whether a result belongs to this call and not to another call of its message.
    pub(crate) fn is_answered_by(&self, result: &ToolResult) -> bool {
        result.call().value() == self.call.call.value() && result.occurrence() == self.occurrence
    }

    /// Addresses a result to this call, also if other calls share its id.
    pub(crate) fn claim(&self, result: &ToolResult) -> ToolResult {
        match self.occurrence {
            Some(occurrence) => result.clone().with_occurrence(occurrence),
            None => result.clone(),
        }
    }
}

pub(crate) fn answer(
    call: &ToolCall,
    occurrence: Option<u32>,
    outcome: Outcome,
    output: Output,
) -> ToolResult {
    let result = call.answer(outcome, output);
    match occurrence {
        Some(occurrence) => result.with_occurrence(occurrence),
        None => result,
    }
}

/// The calls of an answer that have no result, by position; see [`throughline_model::open_calls`].
pub(crate) fn open_calls(messages: &[Message]) -> Vec<OpenCall> {
    let places = throughline_model::open_calls(messages).into_iter();
    let calls = places.filter_map(|place| {
        let message = &messages[place.message];
        let content = &message.contents[place.content];
        match &content.body {
            Body::ToolCall(call) => Some(OpenCall {
                call: call.clone(),
                asked_in: None,
                occurrence: is_shared(message, call).then(|| occurrence_in(message, place.content)),
            }),
            Body::ApprovalRequest(request) => Some(OpenCall {
                call: asked(request),
                asked_in: content.vendor.as_ref().map(|vendor| vendor.wire.clone()),
                occurrence: None,
            }),
            _ => None,
        }
    });
    calls.collect()
}

/// Whether other calls of a message have the same id.
fn is_shared(message: &Message, call: &ToolCall) -> bool {
    let calls = message.contents.iter().filter_map(Content::as_tool_call);
    let same = calls.filter(|one| one.call.value() == call.call.value());
    same.count() > 1
}

/// An approval request of a vendor's tool host, as a call that the vendor runs.
fn asked(request: &ApprovalRequest) -> ToolCall {
    ToolCall {
        arguments: request.arguments.clone(),
        runner: Runner::Vendor,
        ..ToolCall::function(request.request.clone(), request.name.clone(), "{}")
    }
}
