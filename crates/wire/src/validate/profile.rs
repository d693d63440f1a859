use std::collections::BTreeSet;

use throughline_model::Wire;

use super::issued::Issued;

/// What a vendor's rules depend on and a request does not contain.
///
/// What a request body does contain (`store`, `thinking`, `previous_response_id`, …) counts more
/// than the profile.
///
/// ```
/// use throughline_wire::Wire;
/// use throughline_wire::validate::Profile;
///
/// let profile = Profile { stored: true, ..Profile::newest(Wire::OpenAiResponses) };
/// assert!(profile.same_account && !profile.thinking);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The format, and with it the vendor whose rules apply.
    pub wire: Wire,
    /// What the model can take (A-13, A-15, G-4, G-5, G-10, S-G5).
    pub generation: Generation,
    /// Whether the service keeps items, so that they can be referred to by id (O-7). A body's
    /// `store` counts more.
    pub stored: bool,
    /// Whether extended thinking is on (A-11). A body's `thinking` counts more.
    pub thinking: bool,
    /// Whether sealed things go back to the account that they came from (O-8, A-10).
    pub same_account: bool,
    /// What the service itself issued (O-6, O-8, O-10, O-15, A-7, A-9, A-10, A-14, G-4, G-6,
    /// G-10). Unless it is known, whatever stands in the history counts as issued.
    pub issued: Option<Issued>,
    /// The calls that the service remembers (O-1, O-2, O-3, F-4, A-1, A-2, I-2). It matters when a
    /// body continues something (`previous_response_id`, `conversation`, `thread`,
    /// `previous_interaction_id`), and for a bare array. A body that continues something unknown
    /// may answer calls that it does not hold.
    pub chained: Option<Chained>,
}

impl Profile {
    /// The newest models, stateless, without thinking, on the account that everything came from.
    pub fn newest(wire: Wire) -> Self {
        Self {
            wire,
            generation: Generation::NEWEST,
            stored: false,
            thinking: false,
            same_account: true,
            issued: None,
            chained: None,
        }
    }
}

/// What a generation of models takes, where models of one vendor differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Anthropic: `role: "system"` messages inside the history (A-15). Claude models that are
    /// served by Foundry are reported not to take them.
    pub system_messages: bool,
    /// Anthropic: an assistant message at the end, to be continued by the model (A-13).
    pub prefill: bool,
    /// Gemini: ids on calls and results (G-4). Some Vertex and proxy back ends refuse them even
    /// for models that issue them.
    pub call_ids: bool,
    /// Gemini: the calls of the current turn must be signed (G-5).
    pub call_signatures: bool,
    /// Gemini: images and files inside results (S-G5).
    pub result_media: bool,
    /// Gemini: `toolCall` and `toolResponse` parts (G-10), and functions together with a shape for
    /// the answer.
    pub tool_combination: bool,
    /// Anthropic, Gemini: how much to think is a level, no longer a number of tokens. No rule of
    /// the sheet goes by it.
    pub thinking_levels: bool,
    /// Anthropic: `temperature` and `top_p`, which the newest models refuse. No rule of the sheet
    /// goes by it.
    pub sampling: bool,
}

impl Generation {
    /// Claude Opus 4.8 and the 5 family, Gemini 3 and later.
    pub const NEWEST: Self = Self {
        system_messages: true,
        prefill: false,
        call_ids: true,
        call_signatures: true,
        result_media: true,
        tool_combination: true,
        thinking_levels: true,
        sampling: false,
    };

    /// The models before those.
    pub const OLDER: Self = Self {
        system_messages: false,
        prefill: true,
        call_ids: false,
        call_signatures: false,
        result_media: false,
        tool_combination: false,
        thinking_levels: false,
        sampling: true,
    };
}

impl Default for Generation {
    fn default() -> Self {
        Self::NEWEST
    }
}

/// The calls behind `previous_response_id` and its like, by correlation id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chained {
    /// Calls that wait for their result.
    pub open: BTreeSet<String>,
    /// Calls whose result the service has.
    pub answered: BTreeSet<String>,
}

/// What is known of the history before the request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chain<'p> {
    /// There is none.
    None,
    /// The request continues something whose content is not known.
    Unknown,
    /// There is one with these calls.
    Known(&'p Chained),
}

impl<'p> Chain<'p> {
    /// `continues` says whether a body continues something; `None` for a bare array.
    pub(crate) fn new(continues: Option<bool>, profile: &'p Profile) -> Self {
        match (continues, &profile.chained) {
            (Some(false), _) | (None, None) => Self::None,
            (Some(true), None) => Self::Unknown,
            (Some(true) | None, Some(chained)) => Self::Known(chained),
        }
    }

    pub(crate) fn is_some(self) -> bool {
        match self {
            Self::None => false,
            Self::Unknown | Self::Known(_) => true,
        }
    }

    /// Whether a call may stand behind; unknown ones may.
    pub(crate) fn may_hold(self, id: &str) -> bool {
        match self {
            Self::None => false,
            Self::Unknown => true,
            Self::Known(chained) => chained.open.contains(id) || chained.answered.contains(id),
        }
    }

    /// Whether a call is known to be answered behind.
    pub(crate) fn has_answer(self, id: &str) -> bool {
        match self {
            Self::None | Self::Unknown => false,
            Self::Known(chained) => chained.answered.contains(id),
        }
    }

    /// The calls that are known to wait.
    pub(crate) fn open(self) -> impl Iterator<Item = &'p str> {
        let open = match self {
            Self::None | Self::Unknown => None,
            Self::Known(chained) => Some(chained.open.iter().map(String::as_str)),
        };
        open.into_iter().flatten()
    }
}
