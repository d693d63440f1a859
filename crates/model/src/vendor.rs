use std::fmt;

use crate::json::RawJson;
use crate::{Extra, IdFields};

/// A wire format. The set is open: what came from a format that this version does not know keeps
/// its name and goes back only there.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI Chat Completions, and the many servers that speak it.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
    /// Gemini Interactions.
    GeminiInteractions,
    /// Azure Foundry agents.
    Foundry,
    /// A format that this version does not know.
    Other(Box<str>),
}

impl Wire {
    /// All formats that this version knows.
    pub const KNOWN: [Self; 6] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::GeminiInteractions,
        Self::Foundry,
    ];

    /// The name, as on the command line.
    pub fn as_str(&self) -> &str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::GeminiInteractions => "gemini-interactions",
            Self::Foundry => "foundry",
            Self::Other(name) => name,
        }
    }

    /// The format of a name.
    pub fn named(name: &str) -> Self {
        Self::KNOWN
            .iter()
            .find(|wire| wire.as_str() == name)
            .cloned()
            .unwrap_or_else(|| Self::Other(name.into()))
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The vendor's own form of a content; it goes back to that vendor only.
///
/// Together with the content's own fields it gives back the original exactly. Long texts are not
/// kept twice: where writing the neutral text gives the very token that the vendor sent, the
/// vendor's item is a *template* that has an empty string (or empty array) in that place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The format it came in.
    pub wire: Wire,
    /// The id fields as they were. Only tool contents and approvals have any.
    pub id_fields: IdFields,
    /// Set on the first content of a wire message: that message as a template. Contents that follow
    /// without one belong to the same wire message.
    pub envelope: Option<RawJson>,
    /// The content itself as it was.
    pub form: Form,
    /// Unknown members of the stored form.
    pub extra: Extra,
}

/// How a content stood on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// An object of its own among the messages or items, possibly a template.
    Item(RawJson),
    /// An element of the message that the envelope opened, possibly a template.
    Part(RawJson),
    /// A bare string in the place for contents of its message.
    Bare,
    /// Inside something else that was kept: the envelope, or the item of the call that it answers.
    Within,
}

impl Vendor {
    /// An item of its own without ids.
    pub fn item(wire: Wire, item: RawJson) -> Self {
        Self::form(wire, Form::Item(item))
    }

    /// A content that stood in some form, without ids.
    pub fn form(wire: Wire, form: Form) -> Self {
        Self {
            wire,
            id_fields: IdFields::default(),
            envelope: None,
            form,
            extra: Extra::NONE,
        }
    }

    /// An element of a wire message, without ids.
    pub fn part(wire: Wire, part: RawJson) -> Self {
        Self::form(wire, Form::Part(part))
    }

    /// The same with the wire's id fields.
    #[must_use]
    pub fn with_id_fields(mut self, id_fields: IdFields) -> Self {
        self.id_fields = id_fields;
        self
    }

    /// The same as the first content of a wire message.
    #[must_use]
    pub fn with_envelope(mut self, envelope: RawJson) -> Self {
        self.envelope = Some(envelope);
        self
    }
}
