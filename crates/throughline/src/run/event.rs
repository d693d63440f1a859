use throughline_compact::{NarrativeOutcome, Report};
use throughline_model::{Body, CallId, Content, Message, Place, ToolResult};
use throughline_store::{RunId, ThreadId};

use crate::thread::StopReason;

/// Something that happened in a run. A run that streams its model calls and one that does not have the
/// same events, with longer deltas in the latter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The run began.
    Started {
        /// The run.
        run: RunId,
        /// The thread.
        thread: ThreadId,
    },
    /// A model call begins.
    Asked {
        /// Which, from 0.
        step: u32,
    },
    /// The prompt of a model call was compacted: digests stand for older calls. The record has
    /// everything.
    Compacted {
        /// Which model call.
        step: u32,
        /// What compaction did, and why.
        report: Report,
    },
    /// A summary that a model wrote after a compaction, perhaps of an earlier run, was accepted or
    /// rejected. An accepted one is shown from the next compaction on.
    Narrated {
        /// Its result and its cost.
        narrated: NarrativeOutcome,
    },
    /// More text of the answer.
    Text {
        /// Which model call.
        step: u32,
        /// Which content of its answer.
        at: Place,
        /// The text to append.
        delta: String,
    },
    /// More of a refusal.
    Refusal {
        /// Which model call.
        step: u32,
        /// Which content of its answer.
        at: Place,
        /// The text to append.
        delta: String,
    },
    /// More of a summary of the model's reasoning.
    Summary {
        /// Which model call.
        step: u32,
        /// Which content of its answer.
        at: Place,
        /// Which part of the summary, from 0.
        part: u32,
        /// The text to append.
        delta: String,
    },
    /// More of the model's reasoning.
    Reasoning {
        /// Which model call.
        step: u32,
        /// Which content of its answer.
        at: Place,
        /// The text to append.
        delta: String,
    },
    /// A content of the answer is whole: a call with all its arguments, for instance.
    Content {
        /// Which model call.
        step: u32,
        /// Which content of its answer.
        at: Place,
        /// The content.
        content: Content,
    },
    /// The content at a place will not be finished, because its model call failed. It is no part of
    /// the transcript. If the call is retried, another [`RunEvent::Asked`] comes, and new contents.
    Incomplete {
        /// Which model call.
        step: u32,
        /// Which content of its answer.
        at: Place,
    },
    /// A tool call is started.
    Dispatched {
        /// Which model call asked for it.
        step: u32,
        /// Its position among the calls of its response.
        position: u32,
        /// Its id.
        call: CallId,
        /// The tool.
        tool: String,
    },
    /// A tool call ended; results come in the order in which calls end.
    Result {
        /// Which model call asked for it.
        step: u32,
        /// Its position among the calls of its response.
        position: u32,
        /// The result.
        result: ToolResult,
    },
    /// A message is whole and in the transcript.
    Message(Message),
    /// The run is over. Always the last.
    Ended {
        /// Why.
        stop: StopReason,
    },
}

impl RunEvent {
    /// Whether it has content of an answer.
    pub(crate) fn is_content(&self) -> bool {
        match self {
            Self::Text { .. }
            | Self::Refusal { .. }
            | Self::Summary { .. }
            | Self::Reasoning { .. }
            | Self::Content { .. } => true,
            Self::Started { .. }
            | Self::Asked { .. }
            | Self::Compacted { .. }
            | Self::Narrated { .. }
            | Self::Incomplete { .. }
            | Self::Dispatched { .. }
            | Self::Result { .. }
            | Self::Message(_)
            | Self::Ended { .. } => false,
        }
    }

    /// The deltas for the text that a content has when it is begun.
    pub(crate) fn deltas_of(step: u32, at: Place, content: &Content, mut emit: impl FnMut(Self)) {
        match &content.body {
            Body::Text(text) if !text.text.is_empty() => {
                let delta = text.text.clone();
                emit(Self::Text { step, at, delta });
            }
            Body::Refusal(text) if !text.text.is_empty() => {
                let delta = text.text.clone();
                emit(Self::Refusal { step, at, delta });
            }
            Body::Reasoning(reasoning) => {
                for (part, text) in (0..).zip(&reasoning.summary) {
                    let delta = text.clone();
                    if !delta.is_empty() {
                        emit(Self::Summary {
                            step,
                            at,
                            part,
                            delta,
                        });
                    }
                }
                let delta = reasoning.text.concat();
                if !delta.is_empty() {
                    emit(Self::Reasoning { step, at, delta });
                }
            }
            Body::Text(_)
            | Body::Refusal(_)
            | Body::Media(_)
            | Body::ToolCall(_)
            | Body::ToolResult(_)
            | Body::ApprovalRequest(_)
            | Body::ApprovalResponse(_)
            | Body::Error(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => {}
        }
    }

    /// The text of the answer, if this is more of it.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { delta, .. } => Some(delta),
            Self::Started { .. }
            | Self::Asked { .. }
            | Self::Compacted { .. }
            | Self::Narrated { .. }
            | Self::Refusal { .. }
            | Self::Summary { .. }
            | Self::Reasoning { .. }
            | Self::Content { .. }
            | Self::Incomplete { .. }
            | Self::Dispatched { .. }
            | Self::Result { .. }
            | Self::Message(_)
            | Self::Ended { .. } => None,
        }
    }
}
