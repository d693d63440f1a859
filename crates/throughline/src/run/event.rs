use throughline_compact::{NarrativeOutcome, Report};
use throughline_model::{Body, CallId, Content, Message, Place, ToolResult};
use throughline_store::{RunId, ThreadId};

use crate::thread::StopReason;

/// One thing that happens in a run, as its readers see it. A run that streams its model calls and
/// one that does not tell the same story; only the deltas are longer in the latter.
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
    /// What the model is given in a call became smaller: older calls gave way to digests of them.
    /// The record has everything.
    Compacted {
        /// Which model call.
        step: u32,
        /// What was done, and why.
        report: Report,
    },
    /// What became of a summary that a model was asked for after a compaction, perhaps in an earlier
    /// run, and what it cost. What is kept of it is shown from the next compaction on.
    Narrated {
        /// What became of it.
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
    /// More of a summary of what the model thinks.
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
    /// More of what the model thinks.
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
    /// What was begun at a place is never finished: its model call broke off. It is no part of the
    /// transcript. If the call is made again, another [`RunEvent::Asked`] comes, and new contents.
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
    /// Whether it is what somebody who watches an answer come waits for.
    pub(crate) fn is_word(&self) -> bool {
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

    /// The text that a content brings along, as readers see it grow.
    pub(crate) fn brought(step: u32, at: Place, content: &Content, mut emit: impl FnMut(Self)) {
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
