//! Handles of accepted calls.

use throughline_model::json::{RawJson, Value};
use throughline_wire::render::ChainAt;

use super::super::stored_by::StoredBy;

/// What names an answer that a service stores.
///
/// As JSON it is `{"response":ID}`; with `"conversation":ID` if the answer belongs to a
/// conversation of the service, and with `"history_owner":"caller"` if the service stored the
/// answer although the history is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Handle {
    pub(super) answer: String,
    /// Which side stores the conversation; the id that the answer gives to a thread depends on it.
    pub(super) stored_by: StoredBy,
}

impl Handle {
    /// The handle of an answer; none if the service does not store it.
    pub(in super::super) fn of_answer(
        stored_by: &StoredBy,
        answer: String,
        says_stored: Option<bool>,
    ) -> Option<Self> {
        let is_stored = match stored_by {
            StoredBy::Us => says_stored == Some(true),
            // Some services say nothing about it when an answer begins.
            StoredBy::Service(_) => says_stored != Some(false),
        };
        is_stored.then(|| Self {
            answer,
            stored_by: stored_by.clone(),
        })
    }

    pub(in super::super) fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object.str("response", &self.answer);
            match &self.stored_by {
                StoredBy::Us => {
                    object.str("history_owner", "caller");
                }
                StoredBy::Service(Some(ChainAt::Conversation(id))) => {
                    object.str("conversation", id);
                }
                // The answer has the id of the one before it.
                StoredBy::Service(Some(ChainAt::Response(_)) | None) => {}
            }
        })
    }

    /// Reads a handle; none if it is not one of these clients.
    pub(in super::super) fn parse(json: &RawJson) -> Option<Self> {
        let value = json.value();
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let answer = text("response").filter(|id| !id.is_empty())?;
        let stored_by = match (text("history_owner").as_deref(), text("conversation")) {
            (Some("caller"), None) => StoredBy::Us,
            (None, conversation) => {
                let at = conversation.map(|id| ChainAt::Conversation(id.into_owned()));
                StoredBy::Service(at)
            }
            (Some(_), _) => return None,
        };
        Some(Self {
            answer: answer.into_owned(),
            stored_by,
        })
    }
}
