//! What a vendor remembers: issued ids, and stored answers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use throughline_model::{Wire, json};
use throughline_wire::validate::{Chained, Issued};

use super::stored::{Fate, Operation, Storage, Stored, Subject};

/// Whether a server accepts only ids that it issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origins {
    /// Ids, seals and signatures must be this server's own, as with a vendor.
    #[default]
    Own,
    /// They may come from anywhere, for histories that were made elsewhere.
    Any,
}

#[derive(Debug)]
pub(super) struct Memory {
    issued: Option<Issued>,
    /// By the id of a response, an interaction or a conversation.
    kept: BTreeMap<String, Chained>,
    conversations: usize,
    pub(super) stored: Stored,
}

impl Memory {
    pub(super) fn new(origins: Origins) -> Self {
        Self {
            issued: match origins {
                Origins::Own => Some(Issued::default()),
                Origins::Any => None,
            },
            kept: BTreeMap::new(),
            conversations: 0,
            stored: Stored::default(),
        }
    }

    pub(super) fn issued(&self) -> Option<&Issued> {
        self.issued.as_ref()
    }

    pub(super) fn chained(&self, id: &str) -> Option<&Chained> {
        self.kept.get(id)
    }

    /// Records an answer that is sent.
    pub(super) fn issue(&mut self, answer: &str) {
        if let (Some(issued), Ok(value)) = (self.issued.take(), json::parse(answer)) {
            self.issued = Some(issued.with_response(&value));
        }
    }

    /// Creates an empty conversation.
    pub(super) fn conversation(&mut self) -> String {
        self.conversations += 1;
        let id = format!("conv_{:08x}", self.conversations);
        self.kept.insert(id.clone(), Chained::default());
        self.stored.conversation(&id);
        id
    }

    /// Stores an answer, with everything that led to it.
    pub(super) fn keep(
        &mut self,
        wire: &Wire,
        request: &Map<String, Value>,
        answer: &Value,
        fate: &Fate,
    ) {
        self.stored.keep(wire, request, answer, fate);
        let Some(id) = answer.get("id").and_then(Value::as_str) else {
            return;
        };
        let before = CONTINUES
            .iter()
            .find_map(|key| self.kept.get(named(request, key)?));
        let mut chained = before.cloned().unwrap_or_default();
        for list in [
            request.get("input"),
            answer.get("output"),
            answer.get("steps"),
        ] {
            for item in list.and_then(Value::as_array).into_iter().flatten() {
                note(item, &mut chained);
            }
        }
        if let Some(conversation) = named(request, "conversation") {
            self.kept.insert(conversation.to_owned(), chained.clone());
        }
        self.kept.insert(id.to_owned(), chained);
    }

    /// Performs an operation on what is stored; none if the service does not have its subject.
    pub(super) fn perform(&mut self, wire: &Wire, how: Storage, what: &Operation) -> Option<Value> {
        let body = self.stored.perform(wire, how, what)?;
        match what {
            // What a list shows may be sent back, and has ids that the service gave it.
            Operation::List(..) => self.issue(&body["data"].to_string()),
            Operation::Delete(Subject::Answer(id) | Subject::Conversation(id)) => {
                self.kept.remove(id);
            }
            Operation::Show(_) => {}
        }
        Some(body)
    }
}

/// Members that name what a request continues.
pub(super) const CONTINUES: [&str; 3] = [
    "previous_response_id",
    "previous_interaction_id",
    "conversation",
];

/// The id in such a member, which may be inside of an object.
pub(super) fn named<'r>(request: &'r Map<String, Value>, key: &str) -> Option<&'r str> {
    let value = request.get(key)?;
    value.get("id").unwrap_or(value).as_str()
}

fn note(item: &Value, chained: &mut Chained) {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let Some(kind) = text("type") else { return };
    if kind.ends_with("_output") || kind.ends_with("_result") {
        if let Some(id) = text("call_id") {
            chained.open.remove(id);
            chained.answered.insert(id.to_owned());
        }
    } else if matches!(
        kind,
        "function_call" | "custom_tool_call" | "computer_call" | "shell_call" | "apply_patch_call"
    ) {
        // Interactions name the call by its own id.
        if let Some(id) = text("call_id").or_else(|| text("id")) {
            chained.open.insert(id.to_owned());
        }
    }
}
