use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use throughline_compact::tokens;
use throughline_model::{Message, Settings, ToolChoice, ToolDef};
use throughline_wire::Loss;

use crate::prompt::View;

/// One model call: what the model is given and how it is to answer.
#[derive(Clone, Copy, Debug)]
pub struct ChatRequest<'a> {
    /// The model to ask, if not the client's own.
    pub model: Option<&'a str>,
    /// What the application says above everyone.
    pub instructions: Option<&'a str>,
    /// The conversation so far, new input included.
    pub view: &'a View,
    /// Tools on offer.
    pub tools: &'a [ToolDef],
    /// Whether and which of them to call.
    pub choice: &'a ToolChoice,
    /// How to answer.
    pub settings: &'a Settings,
    /// Who keeps the conversation of this call.
    pub history_owner: HistoryOwner<'a>,
    /// What a layer sets that wants this call published as soon as it is answered.
    pub persist: Option<&'a PersistMark>,
    /// Where the client notes what it could not tell the service.
    pub losses: Option<&'a LossSink>,
}

impl<'a> ChatRequest<'a> {
    /// The conversation so far as plain messages, oldest first, new input included. The
    /// instructions are not among them. If a service keeps the conversation
    /// ([`ChatRequest::history_owner`]), these are the messages that it does not have yet.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &'a Message> + ExactSizeIterator {
        self.view.messages().iter().map(|message| &**message)
    }

    /// Say what the service could not be told, and why. A call that is made again says it again:
    /// the last word counts.
    pub fn note_losses(&self, losses: impl FnOnce() -> Vec<Loss>) {
        if let Some(sink) = self.losses {
            sink.set(losses());
        }
    }

    /// Says that the call was answered whole and is to be published at once. Does nothing if the
    /// request has no mark.
    pub fn persist_call(&self) {
        if let Some(mark) = self.persist {
            mark.set();
        }
    }

    /// Units of what is sent beside the conversation: instructions and tools.
    pub(crate) fn overhead(&self) -> u64 {
        overhead(self.instructions, self.tools)
    }
}

/// Units of instructions and tools.
pub(crate) fn overhead(instructions: Option<&str>, tools: &[ToolDef]) -> u64 {
    let text = |text: &str| u64::from(tokens::text_units(text));
    let tools = tools.iter().map(|tool| {
        let description = tool.description.as_deref().map_or(0, text);
        let parameters = tool.parameters.as_ref();
        text(&tool.name) + description + parameters.map_or(0, |schema| text(schema.get()))
    });
    instructions.map_or(0, text) + tools.sum::<u64>()
}

/// Who keeps the conversation that a call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum HistoryOwner<'a> {
    /// The caller does: the view is the whole conversation, and a service that can be told not to
    /// store is told so.
    #[default]
    Caller,
    /// The service does: the view holds only the messages that it does not have yet.
    Service {
        /// The id under which the service has the conversation; none if it has nothing yet.
        id: Option<&'a str>,
    },
}

/// A mark on one model call, set when the call is to be published at once.
///
/// All copies share one mark: a stream outlives the request it came from, so a layer
/// keeps a copy for the moment in which the answer is whole.
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
    /// Set the mark.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What a service could not be told in one model call: settings that it does not have, contents that
/// it does not take.
#[derive(Clone, Debug, Default)]
pub struct LossSink(Arc<Mutex<Vec<Loss>>>);

impl LossSink {
    /// Note all losses of the call, in place of those that were noted before.
    pub fn set(&self, losses: Vec<Loss>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = losses;
    }

    /// What was noted, taken out.
    pub fn take(&self) -> Vec<Loss> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
