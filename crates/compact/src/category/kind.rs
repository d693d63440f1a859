//! The kinds of tools.

/// What kind of thing a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// Looks at something: the digest has what was read, how much, and names in it.
    Read,
    /// Changes something: the digest has what changed.
    Write,
    /// Runs something: errors and exit codes are kept, success is condensed.
    Execute,
    /// Looks for something: what was asked and how much came back.
    Query,
    /// Gives structured data: its scalars are kept.
    Structured,
    /// Keeps a plan: only its last state matters.
    Plan,
    /// Gives pictures, sounds or files: type, size and hash are kept.
    Media,
    /// Anything else; errors and exit codes are kept as for an execution.
    Other,
}

impl Category {
    /// Every category, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Execute,
        Self::Query,
        Self::Structured,
        Self::Plan,
        Self::Media,
        Self::Other,
    ];

    /// The word in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Query => "query",
            Self::Structured => "structured",
            Self::Plan => "plan",
            Self::Media => "media",
            Self::Other => "other",
        }
    }

    /// The category of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|category| category.as_str() == word)
    }
}
