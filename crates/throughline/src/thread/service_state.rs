//! What the state of a thread says about the services that keep its history.

use throughline_model::MessageId;
use throughline_model::json::{self, RawJson};
use throughline_store::{ServiceId, State};

/// Under which name the state keeps the id of the last message that a service has.
fn last_message_key(upstream: &str, agent: &str) -> String {
    format!("throughline.has:{upstream}:{agent}")
}

/// The last message that a service has under its id.
pub(crate) fn last_message(state: &State, upstream: &str, agent: &str) -> Option<MessageId> {
    let last = state.provider(&last_message_key(upstream, agent))?;
    let text = json::parse(last.get()).ok()?.as_str()?.into_owned();
    MessageId::new(&text).ok()
}

/// The state says that a service keeps the history under this id, up to the last message.
pub(crate) fn note_service(service: ServiceId, last: Option<&MessageId>, state: &mut State) {
    let key = last_message_key(&service.upstream, &service.agent);
    let text = last.map(|last| {
        let mut text = String::new();
        json::push_string(&mut text, last.as_str());
        text
    });
    state.set_provider(&key, text.and_then(|text| RawJson::new(&text).ok()));
    state.set_service(service);
}
