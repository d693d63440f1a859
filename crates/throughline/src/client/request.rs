use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use throughline_compact::tokens;
use throughline_model::{Message, Settings, ToolChoice, ToolDef};
use throughline_wire::Loss;

use crate::prompt::View;

/// One model call: what the model is sent and how it should answer.
#[derive(Clone, Copy, Debug)]
pub struct ChatRequest<'a> {
    /// The model, if it is not the client's own.
    pub model: Option<&'a str>,
    /// The instructions of the application, sent as the system prompt.
    pub instructions: Option<&'a str>,
    /// The conversation so far, including new input.
    pub view: &'a View,
    /// The offered tools.
    pub tools: &'a [ToolDef],
    /// Whether and which tools to call.
    pub choice: &'a ToolChoice,
    /// How to answer.
    pub settings: &'a Settings,
    /// Which side stores the conversation of this call.
    pub history_owner: HistoryOwner<'a>,
    /// Set by layers that want this call published as soon as it is answered.
    pub persist: Option<&'a PersistMark>,
    /// Receives what the client could not send to the service.
    pub losses: Option<&'a LossSink>,
}

impl<'a> ChatRequest<'a> {
    /// The conversation so far as plain messages, oldest first, including new input and without the
    /// instructions. If a service stores the conversation ([`ChatRequest::history_owner`]), these
    /// are the messages that it does not have yet.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &'a Message> + ExactSizeIterator {
        self.view.messages().iter().map(|message| &**message)
    }

    /// Records what the service could not be sent, and why. If a call is retried, the losses of the
    /// last attempt count.
    pub fn note_losses(&self, losses: impl FnOnce() -> Vec<Loss>) {
        if let Some(sink) = self.losses {
            sink.set(losses());
        }
    }

    /// Marks the call as completely answered, so that it is published at once. Does nothing if the
    /// request has no mark.
    pub fn persist_call(&self) {
        if let Some(mark) = self.persist {
            mark.set();
        }
    }

    /// The units of instructions and tools, which are sent beside the conversation.
    pub(crate) fn overhead(&self) -> u64 {
        overhead(self.instructions, self.tools)
    }
}

/// The units of instructions and tools.
pub(crate) fn overhead(instructions: Option<&str>, tools: &[ToolDef]) -> u64 {
    let text = |text: &str| u64::from(tokens::text_units(text));
    let tools = tools.iter().map(|tool| {
        let description = tool.description.as_deref().map_or(0, text);
        let parameters = tool.parameters.as_ref();
        text(&tool.name) + description + parameters.map_or(0, |schema| text(schema.get()))
    });
    instructions.map_or(0, text) + tools.sum::<u64>()
}

/// Which side stores the conversation of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum HistoryOwner<'a> {
    /// The caller: the view is the whole conversation, and a service with such a setting is told
    /// not to store it.
    #[default]
    Caller,
    /// The service: the view has only the messages that the service does not have yet.
    Service {
        /// The service's id of the conversation; `None` if the service has nothing yet.
        id: Option<&'a str>,
    },
}

/// A mark on one model call, set when the call is to be published at once.
///
/// Clones share the mark: a stream outlives its request, so a layer keeps a clone until the answer
/// is complete.
///
/// ```
/// let mark = throughline::client::PersistMark::default();
/// let copy = mark.clone();
/// assert!(!mark.is_set());
/// copy.set();
/// assert!(mark.is_set());
/// ```
#[derive(Clone, Debug, Default)]
pub struct PersistMark(Arc<AtomicBool>);

impl PersistMark {
    /// Sets the mark.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the mark is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Collects what a service could not be sent in one model call: settings that it does not have,
/// contents that it does not accept.
#[derive(Clone, Debug, Default)]
pub struct LossSink(Arc<Mutex<Vec<Loss>>>);

impl LossSink {
    /// Records all losses of the call, replacing earlier ones.
    pub fn set(&self, losses: Vec<Loss>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = losses;
    }

    /// Takes the recorded losses.
    pub fn take(&self) -> Vec<Loss> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
