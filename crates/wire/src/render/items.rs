//! A rendered history as text that need not be in one piece.

use std::fmt;

/// The text of a JSON array in two pieces: what is settled, and what stands behind it. A long
/// history is kept by the caller that rendered it and copied once, into the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Items<'i> {
    /// The array from its opening bracket on. It may be all of it.
    pub settled: &'i str,
    /// The rest, to its closing bracket.
    pub rest: &'i str,
}

impl Items<'_> {
    pub(crate) fn len(self) -> usize {
        self.settled.len() + self.rest.len()
    }

    /// Write the array.
    pub(crate) fn push_to(self, out: &mut String) {
        out.push_str(self.settled);
        out.push_str(self.rest);
    }

    /// Write the array with one more element in front.
    pub(crate) fn push_after(self, first: &str, out: &mut String) {
        let settled = self.settled.trim_start();
        let settled = settled.strip_prefix('[').unwrap_or(settled).trim_start();
        let (rest, next) = match settled.is_empty() {
            true => (self.rest.trim_start(), self.rest.trim_start()),
            false => (self.rest, settled),
        };
        out.push('[');
        out.push_str(first);
        if !next.starts_with(']') {
            out.push(',');
        }
        out.push_str(settled);
        out.push_str(rest);
    }
}

impl<'i> From<&'i str> for Items<'i> {
    /// An array in one piece.
    fn from(settled: &'i str) -> Self {
        Self { settled, rest: "" }
    }
}

impl<'i> From<&'i String> for Items<'i> {
    fn from(settled: &'i String) -> Self {
        Self::from(settled.as_str())
    }
}

impl fmt::Display for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.settled)?;
        f.write_str(self.rest)
    }
}
