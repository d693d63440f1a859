//! What a target accepts, as data.

use throughline_model::Wire;

/// Whom a history is rendered for.
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
}

impl Target {
    /// The newest models, nothing stored at the vendor, thinking off, the same account.
    pub fn newest(wire: Wire) -> Self {
        Self {
            wire,
            stored: false,
            thinking: false,
            same_account: true,
        }
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
    /// Results hold text only.
    pub(super) text_results: bool,
}

const PLAIN: Rules = Rules {
    adjacency: Adjacency::Next,
    system: SystemPlace::InOrder,
    id: IdRule {
        longest: 64,
        plain: false,
        ours: true,
    },
    first_user: false,
    last_user: false,
    no_empty: false,
    calls_after_user: false,
    standalone: false,
    text_results: false,
};

/// The rules of a format.
pub(super) fn rules(wire: &Wire) -> Rules {
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
