//! How a history in a message store of the application is shown once it is long.
//!
//! The store may change its history between runs, so what was decided about it holds only while the
//! messages that it was decided about are still there.

use std::sync::Arc;

use throughline_model::Message;
use throughline_model::json::{self, RawJson, Value};
use throughline_store::State;

/// Under which name the state keeps the compaction of the application's history.
const EPOCH: &str = "throughline.epoch";

/// The compaction that the state has, if the history begins with the messages for which it was made.
pub(crate) fn read(state: &State, history: &[Arc<Message>]) -> Option<RawJson> {
    let stored = json::parse(state.provider(EPOCH)?.get()).ok()?;
    let length = stored.get("messages").and_then(Value::as_u64)?;
    let known = history.get(..usize::try_from(length).ok()?)?;
    let digest = stored.get("digest")?.as_str()?;
    (digest == digest_of(known)).then(|| RawJson::of(stored.get("epoch").unwrap_or(&stored)))
}

/// The compaction that the state has, whatever it was made for.
pub(super) fn stored(state: &State) -> Option<RawJson> {
    let stored = json::parse(state.provider(EPOCH)?.get()).ok()?;
    Some(RawJson::of(stored.get("epoch")?))
}

/// Keep a compaction that was made for this record.
pub(crate) fn write(state: &mut State, record: &[Arc<Message>], epoch: &RawJson) {
    let stored = RawJson::object(|object| {
        object
            .number("messages", record.len() as u64)
            .str("digest", &digest_of(record))
            .raw("epoch", epoch.get());
    });
    state.set_provider(EPOCH, Some(stored));
}

/// A digest of what messages say, whatever ids and times the application's store gives them.
fn digest_of(messages: &[Arc<Message>]) -> String {
    let mut hasher = blake3::Hasher::new();
    for message in messages {
        let said = Message {
            created: None,
            usage: None,
            meta: None,
            source: None,
            id: None,
            ..Message::clone(message)
        };
        hasher.update(said.to_json().as_bytes());
        hasher.update(b"\n");
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
