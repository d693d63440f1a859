use std::fmt;

use throughline_model::json::JsonError;

/// How many violations are listed. More would hide the first ones.
pub(super) const SHOWN: usize = 8;

/// Why the arguments of a call are not valid for its tool. The text is written for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The arguments are not JSON.
    NotJson {
        /// The parse error and its place.
        error: JsonError,
        /// What could have followed at that place.
        expected: &'static str,
        /// The end of the text before that place.
        before: String,
    },
    /// The arguments are JSON, but not an object.
    NotObject {
        /// The type that was found.
        found: String,
    },
    /// The schema refuses the object.
    Refused {
        /// The violations, at most eight.
        violations: Vec<Violation>,
        /// Whether there are more violations.
        more: bool,
    },
    /// The answer ended before the arguments were complete, although the partial arguments are
    /// valid.
    Incomplete,
    /// The arguments are too large, or nested too deep, to be checked against the schema.
    TooLarge,
}

/// One violation of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The place: `items[2].name`; empty for the arguments themselves.
    pub path: String,
    /// What was expected there, and what was found.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson {
                error,
                expected,
                before,
            } => {
                write!(
                    f,
                    "the arguments are not valid JSON: {} at line {}, column {} (byte {})",
                    error.kind, error.line, error.column, error.offset
                )?;
                if !expected.is_empty() {
                    write!(f, ", expected {expected}")?;
                }
                if !before.is_empty() {
                    write!(f, ", after `{before}`")?;
                }
                Ok(())
            }
            Self::NotObject { found } => {
                write!(f, "the arguments must be a JSON object, found {found}")
            }
            Self::Refused { violations, more } => {
                f.write_str("the arguments do not fit the schema")?;
                for (place, violation) in violations.iter().enumerate() {
                    f.write_str(if place == 0 { ": " } else { "; " })?;
                    violation.fmt(f)?;
                }
                if *more {
                    f.write_str("; and more")?;
                }
                Ok(())
            }
            Self::Incomplete => f.write_str(
                "the arguments are incomplete: the answer ended before they were written to their end",
            ),
            Self::TooLarge => f.write_str(
                "the arguments are too large or nested too deep to be checked; make them smaller",
            ),
        }
    }
}

impl std::error::Error for ArgumentError {}
