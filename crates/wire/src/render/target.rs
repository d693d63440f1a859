//! What a target accepts, as data.

use throughline_model::Wire;

use super::switches::Switches;
use crate::validate::{Chained, Generation};

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
    /// The format.
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

    /// Whether Anthropic is asked to think with a budget of tokens. Only then must an open tool loop
    /// start with thinking (A-11) and may no call be forced; with adaptive thinking neither holds.
    pub(crate) fn has_thinking_budget(&self) -> bool {
        self.wire == Wire::Anthropic && self.thinking && !self.generation.thinking_levels
    }
}

/// When the results of calls must stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adjacency {
    /// Right after the message with the calls.
    Next,
    /// Anywhere before the model speaks again.
    BeforeModel,
}

/// Where system text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SystemPlace {
    /// Among the messages, in order.
    InOrder,
    /// Outside, if it stands before everything else; later ones become user text.
    Outside,
}

/// What ids of calls may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdRule {
    /// The longest.
    pub(super) longest: usize,
    /// Whether only letters, digits, `_` and `-` are allowed.
    pub(super) plain: bool,
    /// Whether ids are ours to choose at all.
    pub(super) ours: bool,
    /// Whether each call has its own.
    pub(super) unique: bool,
}

/// The rules of one format that the renderer follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) adjacency: Adjacency,
    pub(super) system: SystemPlace,
    pub(super) id: IdRule,
    /// A user message must be first.
    pub(super) first_user: bool,
    /// A user message or results must be last.
    pub(super) last_user: bool,
    /// Empty texts are refused.
    pub(super) no_empty: bool,
    /// Calls may not follow a message of the model.
    pub(super) calls_after_user: bool,
    /// Results without a call have a form of their own.
    pub(super) standalone: bool,
    /// Results hold no media; those go to a message of the user behind.
    pub(super) text_results: bool,
}

const PLAIN: Rules = Rules {
    adjacency: Adjacency::Next,
    system: SystemPlace::InOrder,
    id: IdRule {
        longest: 64,
        plain: false,
        ours: true,
        unique: true,
    },
    first_user: false,
    last_user: false,
    no_empty: false,
    calls_after_user: false,
    standalone: false,
    text_results: false,
};

/// The rules of a target, as far as they are upheld.
pub(super) fn rules(target: &Target, switches: Switches) -> Rules {
    let found = of_format(&target.wire);
    let on = |rule: &str| switches.upholds(rule);
    let generation = target.generation;
    match target.wire {
        Wire::OpenAiResponses | Wire::Foundry if !on("O-9") => found.with_any_length(),
        Wire::OpenAiChat if !on("C-4") => found.with_any_length(),
        Wire::Anthropic => Rules {
            id: IdRule {
                plain: on("A-7"),
                unique: on("A-4"),
                ..found.id
            },
            first_user: on("A-18"),
            last_user: on("A-13") && !generation.prefill,
            no_empty: on("A-12"),
            ..found
        },
        Wire::Gemini => Rules {
            first_user: on("G-2"),
            last_user: on("G-7"),
            no_empty: on("G-8"),
            calls_after_user: on("G-2"),
            text_results: on("S-G5") && !generation.result_media,
            ..found
        },
        Wire::OpenAiResponses
        | Wire::Foundry
        | Wire::OpenAiChat
        | Wire::GeminiInteractions
        | Wire::Other(_) => found,
    }
}

impl Rules {
    fn with_any_length(self) -> Self {
        Self {
            id: IdRule {
                longest: usize::MAX,
                ..self.id
            },
            ..self
        }
    }
}

/// The names under which the sheet has the rules about rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundRules {
    /// Every call has a result.
    pub(super) answered: &'static str,
    /// Every result has a call.
    pub(super) asked: &'static str,
    /// A call has one result.
    pub(super) once: &'static str,
}

/// The rules about rounds of a format.
pub(super) fn round_rules(wire: &Wire) -> RoundRules {
    let (answered, asked, once) = match wire {
        Wire::OpenAiResponses | Wire::Foundry => ("O-1", "O-2", "O-3"),
        Wire::OpenAiChat | Wire::Other(_) => ("C-1", "C-2", "S-C4"),
        Wire::Anthropic => ("A-1", "A-2", "A-3"),
        Wire::Gemini => ("G-1", "G-3", "G-1"),
        Wire::GeminiInteractions => ("I-3", "I-2", "I-3"),
    };
    RoundRules {
        answered,
        asked,
        once,
    }
}

/// The rules of a format.
fn of_format(wire: &Wire) -> Rules {
    match wire {
        Wire::OpenAiResponses | Wire::Foundry => Rules {
            adjacency: Adjacency::BeforeModel,
            standalone: true,
            ..PLAIN
        },
        Wire::OpenAiChat => Rules {
            id: IdRule {
                longest: 40,
                ..PLAIN.id
            },
            text_results: true,
            ..PLAIN
        },
        Wire::Anthropic => Rules {
            system: SystemPlace::Outside,
            id: IdRule {
                plain: true,
                ..PLAIN.id
            },
            first_user: true,
            last_user: true,
            no_empty: true,
            ..PLAIN
        },
        Wire::Gemini => Rules {
            system: SystemPlace::Outside,
            id: IdRule {
                ours: false,
                ..PLAIN.id
            },
            first_user: true,
            last_user: true,
            no_empty: true,
            calls_after_user: true,
            ..PLAIN
        },
        Wire::GeminiInteractions => Rules {
            adjacency: Adjacency::BeforeModel,
            system: SystemPlace::Outside,
            no_empty: true,
            ..PLAIN
        },
        Wire::Other(_) => PLAIN,
    }
}
