use std::fmt;

use throughline_model::json::JsonError;

/// How many violations are told at once. More would bury the first ones.
pub(super) const SHOWN: usize = 8;

/// Why the arguments of a call are not what its tool takes. Its text is written for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentError {
    /// They are not JSON.
    NotJson {
        /// What is wrong, and where.
        error: JsonError,
        /// What could have stood there.
        expected: &'static str,
        /// The text before that place, the end of it.
        before: String,
    },
    /// They are JSON, but not an object.
    NotObject {
        /// What they are.
        found: String,
    },
    /// They are an object that the schema refuses.
    Refused {
        /// Why, at most eight reasons.
        violations: Vec<Violation>,
        /// Whether there are more reasons.
        more: bool,
    },
    /// The answer ended before they were whole, though what there is of them would fit.
    Incomplete,
    /// Checking them takes too long: they are too large or nested too deep for the schema.
    TooLarge,
}

/// One reason why a schema refuses arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where: `items[2].name`; empty for the arguments themselves.
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
