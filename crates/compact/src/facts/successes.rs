//! When what had failed succeeded last.

use std::collections::HashMap;

use super::{Facts, Line, LineKind};
use crate::category::Category;
use crate::trials::planted;

/// What a call is about: the kind of thing, and its name.
type Subject = (u8, Box<str>);

/// The last success of each command and file that had failed before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Successes(HashMap<Subject, u64>);

impl Successes {
    /// Those of all calls.
    pub(crate) fn of<'a>(facts: impl Iterator<Item = &'a Facts>) -> Self {
        let mut last: HashMap<Subject, u64> = HashMap::new();
        for line in facts.flat_map(|facts| &facts.lines) {
            let Some(subject) = subject(line) else {
                continue;
            };
            if line.failed() {
                last.entry(subject).or_default();
            } else if line.is_ok()
                && let Some(seq) = last.get_mut(&subject)
            {
                *seq = line.seq.max(*seq);
            }
        }
        Self(last)
    }

    /// Whether a call failed, and what it is about did not succeed since.
    pub(crate) fn is_unresolved(&self, line: &Line) -> bool {
        if !line.failed() || planted("compact-failures-settled") {
            return false;
        }
        let since = subject(line).and_then(|subject| self.0.get(&subject).copied());
        since.is_none_or(|since| since < line.seq)
    }
}

/// A file is the same file for those who read it and those who write it.
fn subject(line: &Line) -> Option<Subject> {
    let (LineKind::Call(category), Some(key)) = (line.kind, &line.key) else {
        return None;
    };
    let kind = match category {
        Category::Read | Category::Write => 0,
        Category::Execute => 1,
        Category::Query => 2,
        Category::Structured | Category::Plan | Category::Media | Category::Other => 3,
    };
    Some((kind, key.clone()))
}
