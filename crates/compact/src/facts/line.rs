//! One line of a digest, in its parts.

use super::outcome::CallEnd;
use crate::category::Category;
use crate::names::NameUse;

/// What one line of a digest is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// A text of a user.
    Request,
    /// A text of the model.
    Statement,
    /// A call of a tool of this category.
    Call(Category),
}

/// One line of a digest in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) seq: u64,
    pub(crate) kind: LineKind,
    /// What makes it about the same thing as another line: a path, a command.
    pub(crate) key: Option<Box<str>>,
    /// What was done to what, or asked for.
    pub(crate) head: String,
    /// How many lines were read, changed or found, with a space before it; of a call that ended well.
    pub(crate) size: String,
    /// How the call ended; `None` for texts.
    pub(crate) ended: Option<CallEnd>,
    /// Whether a digest of the caller's own wrote the line of a call that succeeded.
    pub(crate) own: bool,
    /// What is quoted of the output, with what joins it to the words before.
    pub(crate) rest: String,
    /// The first line about an error, of each failure that it stands for; its own first.
    pub(crate) errors: Vec<String>,
    /// A read's lines, from and to.
    pub(crate) range: Option<(u64, u64)>,
    /// A write's lines, added and taken away.
    pub(crate) changed: (u64, u64),
    pub(crate) names: Vec<NameUse>,
    /// The result of a call: the place of its message in the record, and the content.
    pub(crate) result: Option<(usize, usize)>,
}

impl Line {
    pub(crate) fn new(seq: u64, kind: LineKind) -> Self {
        Self {
            seq,
            kind,
            key: None,
            head: String::new(),
            size: String::new(),
            ended: None,
            own: false,
            rest: String::new(),
            errors: Vec::new(),
            range: None,
            changed: (0, 0),
            names: Vec::new(),
            result: None,
        }
    }

    pub(crate) fn is_write(&self) -> bool {
        self.kind == LineKind::Call(Category::Write)
    }

    /// `done` for a call that is known to have run, `asked` as what was only asked for otherwise.
    pub(super) fn verb(&self, done: &str, asked: &str) -> String {
        match self.ended {
            Some(ended) => ended.verb(done, asked),
            None => done.to_owned(),
        }
    }

    /// Whether it is about a call that failed.
    pub(crate) fn failed(&self) -> bool {
        self.ended.is_some_and(CallEnd::failed)
    }

    /// Whether nothing in it ended otherwise than well.
    pub(crate) fn is_ok(&self) -> bool {
        self.ended.is_none_or(CallEnd::is_ok)
    }
}
