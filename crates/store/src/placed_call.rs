use throughline_model::{Content, Message, Source, ToolCall, occurrence_in, open_calls};

use crate::{CallRef, Journal};

/// A call at its place in a journal, as the model made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedCall {
    /// The call; `None` for a question of a vendor's tool host, of which nothing runs here.
    pub call: Option<ToolCall>,
    /// How many calls of the same id stand before it in its message.
    pub occurrence: u32,
    /// Whether another call of its message has the same id.
    pub shares_id: bool,
}

impl Journal {
    /// The call that an execution at this place runs. Ids may repeat, places do not.
    pub fn call_at(&self, at: CallRef) -> Option<PlacedCall> {
        let step = self.steps.iter().find(|step| step.no == at.step)?;
        let items = step.first..step.first + step.items;
        let answer: Vec<Message> = self
            .entries
            .iter()
            .filter(|entry| items.contains(&entry.at.no))
            .filter(|entry| entry.message.source != Some(Source::Caller))
            .map(|entry| entry.message.clone())
            .collect();
        let place = *open_calls(&answer).get(at.position as usize)?;
        let message = &answer[place.message];
        let call = message.contents[place.content].as_tool_call();
        let same_id =
            |other: &&ToolCall| call.is_some_and(|call| call.call.value() == other.call.value());
        let calls = message.contents.iter().filter_map(Content::as_tool_call);
        Some(PlacedCall {
            call: call.cloned(),
            occurrence: occurrence_in(message, place.content),
            shares_id: calls.filter(same_id).count() > 1,
        })
    }
}
