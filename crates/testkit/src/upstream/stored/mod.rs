//! Stored answers and conversations, which can be fetched and deleted.

mod operation;
mod shown;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use throughline_model::Wire;

use super::memory::named;
pub(super) use operation::{Operation, Subject};

/// How a server stores answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    /// The most items on a page of a list.
    pub(super) page: usize,
    /// Whether the input of an answer is listed with everything before it.
    pub(super) lists_inherited: bool,
    /// Whether stored answers can be deleted.
    pub(super) deletes: bool,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            page: 100,
            lists_inherited: false,
            deletes: true,
        }
    }
}

/// What becomes of a stored answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Fate {
    /// How often it is looked up before it is finished.
    pub(super) running_for: usize,
    /// Its status at the end, if it has no content then.
    pub(super) ended_as: Option<String>,
}

#[derive(Debug)]
struct StoredAnswer {
    body: Value,
    /// The items of its input, with ids.
    input: Vec<Value>,
    previous: Option<String>,
    running_for: usize,
}

impl StoredAnswer {
    fn output(&self) -> Vec<Value> {
        let items = self.body.get("output").or_else(|| self.body.get("steps"));
        let items = items.and_then(Value::as_array);
        items.cloned().unwrap_or_default()
    }
}

/// A stored answer of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainLink {
    /// Its id.
    pub id: String,
    /// The items that were sent for it.
    pub input: Vec<Value>,
    /// Its own items.
    pub output: Vec<Value>,
}

/// What a service stores.
#[derive(Debug, Default)]
pub(super) struct Stored {
    answers: BTreeMap<String, StoredAnswer>,
    conversations: BTreeMap<String, Vec<Value>>,
}

impl Stored {
    /// The ids of everything that is stored.
    pub(super) fn ids(&self) -> Vec<String> {
        let ids = self.answers.keys().chain(self.conversations.keys());
        ids.cloned().collect()
    }

    /// Creates an empty conversation.
    pub(super) fn conversation(&mut self, id: &str) {
        self.conversations.insert(id.to_owned(), Vec::new());
    }

    /// Stores an answer.
    pub(super) fn keep(
        &mut self,
        wire: &Wire,
        request: &Map<String, Value>,
        answer: &Value,
        fate: &Fate,
    ) {
        let Some(id) = answer.get("id").and_then(Value::as_str) else {
            return;
        };
        let previous = ["previous_response_id", "previous_interaction_id"];
        let previous = previous.iter().find_map(|key| named(request, key));
        let mut body = answer.clone();
        if let Some(status) = &fate.ended_as {
            shown::end(&mut body, status);
        }
        let stored = StoredAnswer {
            body,
            input: input_items(wire, id, request.get("input")),
            previous: previous.map(str::to_owned),
            running_for: fate.running_for,
        };
        let conversation = named(request, "conversation");
        if let Some(items) = conversation.and_then(|id| self.conversations.get_mut(id)) {
            items.extend(stored.input.iter().cloned());
            items.extend(stored.output());
        }
        self.answers.insert(id.to_owned(), stored);
    }

    /// The body that answers an operation; none if the service does not have its subject.
    pub(super) fn perform(&mut self, wire: &Wire, how: Storage, what: &Operation) -> Option<Value> {
        match what {
            Operation::Show(Subject::Answer(id)) => {
                let answer = self.answers.get_mut(id)?;
                let is_running = answer.running_for > 0;
                answer.running_for = answer.running_for.saturating_sub(1);
                Some(shown::answer(wire, answer, is_running))
            }
            Operation::Show(Subject::Conversation(id)) => {
                self.conversations.get(id)?;
                Some(
                    json!({"id": id, "object": "conversation", "created_at": 1_763_000_000,
                    "metadata": {}}),
                )
            }
            Operation::List(Subject::Answer(id), page) => {
                let answer = self.answers.get(id)?;
                let mut items = Vec::new();
                if how.lists_inherited {
                    self.before(answer, &mut items);
                }
                items.extend(answer.input.iter().cloned());
                shown::list(items, page, how.page)
            }
            Operation::List(Subject::Conversation(id), page) => {
                let items = self.conversations.get(id)?.clone();
                shown::list(items, page, how.page)
            }
            Operation::Delete(Subject::Answer(id)) => {
                self.answers.remove(id)?;
                Some(match wire {
                    Wire::GeminiInteractions => json!({}),
                    _ => json!({"id": id, "object": "response", "deleted": true}),
                })
            }
            Operation::Delete(Subject::Conversation(id)) => {
                self.conversations.remove(id)?;
                Some(json!({"id": id, "object": "conversation.deleted", "deleted": true}))
            }
        }
    }

    /// An answer with all that it continues, oldest first; none if one of them is not stored.
    pub(super) fn chain(&self, id: &str) -> Option<Vec<ChainLink>> {
        let mut links = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next {
            let answer = self.answers.get(id)?;
            links.push(ChainLink {
                id: id.to_owned(),
                input: answer.input.clone(),
                output: answer.output(),
            });
            next = answer.previous.as_deref();
        }
        links.reverse();
        Some(links)
    }

    /// The items before the input of an answer.
    fn before(&self, answer: &StoredAnswer, items: &mut Vec<Value>) {
        let previous = answer.previous.as_ref();
        if let Some(previous) = previous.and_then(|id| self.answers.get(id)) {
            self.before(previous, items);
            items.extend(previous.input.iter().cloned());
            items.extend(previous.output());
        }
    }
}

/// The items of an input as the service lists them: each with its type and, for Responses, its id.
fn input_items(wire: &Wire, answer: &str, input: Option<&Value>) -> Vec<Value> {
    let is_interaction = *wire == Wire::GeminiInteractions;
    let mut items = match input {
        Some(Value::String(text)) if is_interaction => {
            vec![json!({"type": "user_input", "content": [{"type": "text", "text": text}]})]
        }
        Some(Value::String(text)) => vec![json!({"role": "user", "content": text})],
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    if is_interaction {
        return items;
    }
    for (place, item) in items.iter_mut().enumerate() {
        let Some(members) = item.as_object_mut() else {
            continue;
        };
        let kind = members.entry("type").or_insert_with(|| json!("message"));
        let is_message = kind == "message";
        let prefix = if is_message { "msg" } else { "item" };
        let number = answer.trim_start_matches("resp_");
        let id = members.entry("id").or_insert(Value::Null);
        if id.is_null() {
            *id = json!(format!("{prefix}_{number}in{place:02x}"));
        }
        members
            .entry("status")
            .or_insert_with(|| json!("completed"));
        let is_model = members.get("role").is_some_and(|role| role == "assistant");
        let part = if is_model {
            "output_text"
        } else {
            "input_text"
        };
        if let Some(Value::String(text)) = members.get("content") {
            let part = json!({"type": part, "text": text});
            members.insert("content".into(), json!([part]));
        }
    }
    items
}
