//! Announces answers that the service can be asked for later.

use throughline_model::{Event, json, json::Value};
use throughline_wire::sse::Frame;

use super::answer::Head;
use super::stored::Handle;

/// Inserts [`Event::Accepted`] after the event that tells the id of the answer, if the service
/// stores it. Returns true once the events had the id: the caller need not call this again.
pub(super) fn insert(
    head: &Head,
    events: &mut Vec<Event>,
    says_stored: impl FnOnce() -> Option<bool>,
) -> bool {
    let found = events.iter().enumerate().find_map(|(place, event)| {
        let Event::Started { id: Some(id), .. } = event else {
            return None;
        };
        Some((place, id.clone()))
    });
    let Some((place, id)) = found else {
        return false;
    };
    if head.can_be_asked
        && let Some(handle) = Handle::of_answer(&head.stored_by, id, says_stored())
    {
        let handle = handle.to_json();
        events.insert(place + 1, Event::Accepted { handle });
    }
    true
}

/// What the first event of a stream says about whether the answer is stored.
pub(super) fn says_stored(frame: &Frame) -> Option<bool> {
    let value = json::parse(&frame.data).ok()?;
    let answer = ["response", "interaction"].iter();
    let mut answer = answer.filter_map(|key| value.get(key));
    answer.next()?.get("store").and_then(Value::as_bool)
}
