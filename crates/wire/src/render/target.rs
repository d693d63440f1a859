//! The target that a history is rendered for.

use throughline_model::Wire;

use crate::validate::{Chained, Generation};
use crate::vendors;

/// Whom a history is rendered for.
///
/// ```
/// use throughline_wire::Wire;
/// use throughline_wire::render::Target;
/// use throughline_wire::validate::Generation;
///
/// let older = Target { generation: Generation::OLDER, ..Target::newest(Wire::Gemini) };
/// assert!(!older.generation.call_ids && older.chain.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The format of the API that the history is sent to.
    pub wire: Wire,
    /// Whether the vendor keeps items, so that they can be referred to (`store: true`).
    pub stored: bool,
    /// Whether extended thinking is on.
    pub thinking: bool,
    /// Whether the vendor's items in the history were made for this account. If not, what is
    /// sealed for an account stays behind.
    pub same_account: bool,
    /// What the model can take.
    pub generation: Generation,
    /// The container of Anthropic's code execution that the request names. Without one, calls that
    /// a program made are sent as the model's own.
    pub container: Option<String>,
    /// What the request continues at the service, which has it and is not sent it again.
    pub chain: Option<Chain>,
}

/// What a request continues at the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// By what the service knows it; one of the two, never both.
    pub at: ChainAt,
    /// The calls that the service has.
    pub calls: Chained,
}

/// By what a service knows what a request continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainAt {
    /// The id of a response (`previous_response_id`) or of an interaction.
    Response(String),
    /// The id of a conversation.
    Conversation(String),
}

impl Target {
    /// The newest models, nothing stored at the vendor, thinking off, the same account, nothing
    /// continued.
    pub fn newest(wire: Wire) -> Self {
        Self {
            wire,
            stored: false,
            thinking: false,
            same_account: true,
            generation: Generation::NEWEST,
            container: None,
            chain: None,
        }
    }

    /// Whether the model is asked to think with a budget of tokens. Only then must an open tool loop
    /// start with thinking (A-11) and may no call be forced; with adaptive thinking neither holds.
    pub(crate) fn has_thinking_budget(&self) -> bool {
        vendors::render_format(&self.wire).thinking_budgets
            && self.thinking
            && !self.generation.thinking_levels
    }
}
