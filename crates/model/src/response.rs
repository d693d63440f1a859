use crate::json::RawJson;
use crate::{Body, Content, Message, Runner, Usage, Vendor, Wire};

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The answer is complete.
    Done,
    /// It waits for tools.
    ToolCalls,
    /// The output or context limit was reached.
    Length,
    /// A filter stopped it.
    ContentFilter,
    /// The model refused to answer.
    Refusal,
    /// It paused and wants to be called again.
    Paused,
    /// It was cancelled.
    Cancelled,
    /// The vendor reported a failure.
    Failed,
    /// It is not finished.
    InProgress,
    /// The stream ended without a stop reason.
    Cut,
    /// A vendor's own word.
    Other(Box<str>),
}

/// The response of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The vendor's id of the response.
    pub id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The answer: one message, or one for each alternative that was asked for.
    pub messages: Vec<Message>,
    /// The tokens that were billed, if the vendor reported them.
    pub usage: Option<Usage>,
    /// Why it stopped.
    pub stop: Stop,
    /// The error of a response that failed.
    pub error: Option<VendorError>,
    /// The id under which the service keeps the conversation from this answer on; none if it does
    /// not keep it.
    pub service: Option<String>,
    /// The vendor's body, without what the messages hold already.
    pub vendor: Option<Vendor>,
}

/// An error as a vendor reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorError {
    /// The format it came in.
    pub wire: Wire,
    /// What went wrong, in the vendor's words.
    pub message: String,
    /// The vendor's kind of error (`invalid_request_error`, `INVALID_ARGUMENT`).
    pub kind: Option<String>,
    /// The vendor's code.
    pub code: Option<String>,
    /// The parameter concerned.
    pub param: Option<String>,
    /// How long to wait before trying again, in milliseconds, where the body has it.
    pub retry_after_ms: Option<u64>,
    /// The vendor's own object.
    pub body: Option<RawJson>,
}

impl Response {
    /// Mark the call that the output limit cut off, if it did: the last content, unless the vendor's status says that
    /// it is complete. Codecs do so when they read a response; a second time changes nothing.
    pub fn mark_cut_off(&mut self) {
        let last = self.messages.last_mut();
        let last = last.and_then(|message| message.contents.last_mut());
        if self.stop == Stop::Length
            && let Some(Body::ToolCall(call)) = last.map(|content| &mut content.body)
        {
            call.mark_cut_off();
        }
    }
}

impl From<Message> for Response {
    /// A response that is this message. If tools of the application are called in it, the model
    /// stopped to wait for them.
    fn from(message: Message) -> Self {
        let mut calls = message.contents.iter().filter_map(Content::as_tool_call);
        let waits = calls.any(|call| call.runner == Runner::Client);
        Self {
            id: None,
            model: None,
            messages: vec![message],
            usage: None,
            stop: if waits { Stop::ToolCalls } else { Stop::Done },
            error: None,
            service: None,
            vendor: None,
        }
    }
}
