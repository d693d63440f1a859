//! What is packed into a digest, and the lines to choose from.

use crate::category::Category;
use crate::facts::{Facts, Line, LineKind, Successes};
use crate::names::{NameIndex, NameUse};
use crate::policy::Caps;

/// What to pack and into how much.
pub(crate) struct DigestInput<'a> {
    pub(crate) facts: Vec<&'a Facts>,
    pub(crate) name_index: &'a NameIndex,
    pub(crate) caps: &'a Caps,
    /// Units of the text; none for as much as the caps allow.
    pub(crate) room: Option<u64>,
    /// Units of it that are set aside for what failed.
    pub(crate) failures: u64,
    pub(crate) ledger: bool,
    pub(crate) successes: &'a Successes,
    /// Calls that were made before the view that this is for.
    pub(crate) calls: u32,
}

/// How tersely lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    Full,
    Short,
    Terse,
    Bare,
}

/// A line that may be written, and what it costs.
#[derive(Clone)]
pub(crate) struct CandidateLine {
    pub(crate) line: Line,
    /// How many calls it stands for.
    pub(crate) times: u32,
    /// Reads of the same file, in a ledger.
    pub(crate) reads: u32,
    /// Whether it failed, and the same did not succeed since.
    pub(crate) unresolved: bool,
    /// Whether the same thing failed before: without this line it would look as if it still did.
    pub(crate) after_failure: bool,
    pub(crate) taken: bool,
    /// Names that were chosen for it, by place in its list.
    pub(crate) names: Vec<NameUse>,
}

impl CandidateLine {
    pub(crate) fn protected(&self) -> bool {
        match self.line.kind {
            LineKind::Request => true,
            LineKind::Call(Category::Write) => true,
            LineKind::Call(_) => self.line.failed() || self.after_failure,
            LineKind::Statement => false,
        }
    }
}
