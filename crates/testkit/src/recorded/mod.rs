//! Clients that send their whole conversation with each request: what they do, and what the record must
//! then be.
//!
//! [`Session`] is what one such client does, with edits, retries, tabs and its own compaction.
//! [`Reference`] says what threads, branches and messages must come of it, from whole conversations
//! that it compares message by message: it knows no digests and no store.

mod reference;
mod session;

pub use reference::{Placed, Placement, RefRun, RefThread, Reference};
pub use session::{Action, Session, prose};

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum By {
    /// The user.
    User,
    /// The model.
    Model,
    /// A tool of the client.
    Tool,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Said {
    /// Who says it.
    pub by: By,
    /// Its text; the text of the result of a tool.
    pub text: String,
    /// The id of the call that it makes or answers.
    pub call: Option<String>,
}

impl Said {
    /// What a user says.
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            by: By::User,
            text: text.into(),
            call: None,
        }
    }

    /// What the model says.
    pub fn model(text: impl Into<String>) -> Self {
        Self {
            by: By::Model,
            ..Self::user(text)
        }
    }

    /// The result of a call.
    pub fn result(call: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            by: By::Tool,
            call: Some(call.into()),
            ..Self::user(text)
        }
    }

    /// The bytes that it says.
    pub fn bytes(&self) -> usize {
        self.text.len() + self.call.as_ref().map_or(0, String::len)
    }
}
