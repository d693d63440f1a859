//! What is found wrong, and where.

use std::fmt::Write as _;

use throughline_model::json;

/// One thing that does not fit.
pub(in super::super) struct Finding {
    pub(in super::super) path: String,
    pub(in super::super) message: String,
    pub(super) kind: Kind,
    /// How many steps from the value that the check began with.
    pub(super) depth: usize,
}

/// What kind of thing, for choosing between alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has another type.
    Type,
    /// It is not one of the values named.
    Value,
    /// Anything else.
    Other,
}

/// Where a value is: a list from the inside out, so that walking costs nothing.
#[derive(Clone, Copy)]
pub(super) enum Place<'p> {
    Root,
    Key(&'p Place<'p>, &'p str),
    Index(&'p Place<'p>, usize),
}

impl Place<'_> {
    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Root => 0,
            Self::Key(outer, _) | Self::Index(outer, _) => 1 + outer.depth(),
        }
    }

    fn push_to(&self, out: &mut String) {
        match self {
            Self::Root => {}
            Self::Key(outer, key) => {
                outer.push_to(out);
                let plain = |letter: char| letter.is_alphanumeric() || "_-$".contains(letter);
                if !key.is_empty() && key.chars().all(plain) {
                    out.push_str(if out.is_empty() { "" } else { "." });
                    out.push_str(key);
                } else {
                    out.push('[');
                    json::push_string(out, key);
                    out.push(']');
                }
            }
            Self::Index(outer, index) => {
                outer.push_to(out);
                // Writing to a string cannot fail.
                let _ = write!(out, "[{index}]");
            }
        }
    }
}

/// What is told of what does not fit.
pub(super) enum Sink {
    /// Only whether there was something.
    Quiet { failed: bool },
    /// Everything, up to a number.
    Loud { found: Vec<Finding>, most: usize },
}

impl Sink {
    pub(super) fn loud(most: usize) -> Self {
        let found = Vec::new();
        Self::Loud { found, most }
    }

    /// Whether nothing more needs to be looked for.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Quiet { failed } => *failed,
            Self::Loud { found, most } => found.len() >= *most,
        }
    }

    pub(super) fn add(&mut self, kind: Kind, place: &Place<'_>, message: impl FnOnce() -> String) {
        if self.is_full() {
            return;
        }
        match self {
            Self::Quiet { failed } => *failed = true,
            Self::Loud { found, .. } => {
                let mut path = String::new();
                place.push_to(&mut path);
                found.push(Finding {
                    path,
                    message: message(),
                    kind,
                    depth: place.depth(),
                });
            }
        }
    }

    pub(super) fn extend(&mut self, findings: Vec<Finding>) {
        match self {
            Self::Quiet { failed } => *failed |= !findings.is_empty(),
            Self::Loud { found, most } => {
                let room = most.saturating_sub(found.len());
                found.extend(findings.into_iter().take(room));
            }
        }
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        match self {
            Self::Quiet { .. } => Vec::new(),
            Self::Loud { found, .. } => found,
        }
    }
}
