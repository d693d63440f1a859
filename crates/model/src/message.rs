use crate::json::RawJson;
use crate::{Content, Extra, MessageId, Status, Usage};

/// The role of a message: on whose behalf it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The application, above everyone.
    System,
    /// The application, in the newer word of one vendor.
    Developer,
    /// The user of the application, or another program that takes their place.
    User,
    /// The model.
    Assistant,
    /// Results of tools that the application runs.
    Tool,
    /// A vendor's own word.
    Other(Box<str>),
}

impl Role {
    /// The word used in the stored form.
    pub fn as_str(&self) -> &str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other(word) => word,
        }
    }

    /// The role of a word.
    pub fn named(word: &str) -> Self {
        match word {
            "system" => Self::System,
            "developer" => Self::Developer,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            other => Self::Other(other.into()),
        }
    }
}

/// Who asserted a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The caller of a run.
    Caller,
    /// A model produced it.
    Model,
    /// A tool returned it.
    Tool,
    /// A remote agent.
    RemoteAgent,
    /// A context provider.
    ContextProvider,
    /// It came from an imported file.
    Import,
    /// A summary of older messages.
    Summary,
    /// This library inserted it to repair a history.
    Repair,
    /// A later version's word.
    Other(Box<str>),
}

impl Source {
    const KNOWN: [Self; 8] = [
        Self::Caller,
        Self::Model,
        Self::Tool,
        Self::RemoteAgent,
        Self::ContextProvider,
        Self::Import,
        Self::Summary,
        Self::Repair,
    ];

    /// The word used in the stored form.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Caller => "caller",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::RemoteAgent => "remote_agent",
            Self::ContextProvider => "context_provider",
            Self::Import => "import",
            Self::Summary => "summary",
            Self::Repair => "repair",
            Self::Other(word) => word,
        }
    }

    /// The source of a word.
    pub fn named(word: &str) -> Self {
        Self::KNOWN
            .iter()
            .find(|source| source.as_str() == word)
            .cloned()
            .unwrap_or_else(|| Self::Other(word.into()))
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Assigned when the message enters a thread; none before.
    pub id: Option<MessageId>,
    /// The role of the message.
    pub role: Role,
    /// The contents, in order.
    pub contents: Vec<Content>,
    /// The speaker's name, if there are several in one role.
    pub author: Option<String>,
    /// When it was written, in milliseconds since 1970. Never used for order.
    pub created: Option<u64>,
    /// Who asserted it; none before it enters a thread.
    pub source: Option<Source>,
    /// Set when the message is not whole.
    pub status: Option<Status>,
    /// What the vendor reported for the response that this message is.
    pub usage: Option<Usage>,
    /// The application's own data, an object.
    pub meta: Option<RawJson>,
    /// Unknown members of the stored form.
    pub extra: Extra,
}

impl Message {
    /// A message that has not entered a thread yet.
    pub fn new(role: Role, contents: Vec<Content>) -> Self {
        Self {
            id: None,
            role,
            contents,
            author: None,
            created: None,
            source: None,
            status: None,
            usage: None,
            meta: None,
            extra: Extra::NONE,
        }
    }

    /// A user's text.
    ///
    /// ```
    /// use throughline_model::Message;
    ///
    /// assert_eq!(Message::user("hello").text(), "hello");
    /// ```
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Content::text(text)])
    }

    /// A text of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Content::text(text)])
    }

    /// All plain text of the message, joined.
    pub fn text(&self) -> String {
        self.contents.iter().filter_map(Content::as_text).collect()
    }
}
