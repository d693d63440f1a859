//! How a call ended, and the words for it.
//!
//! A digest may have less than the record, never more. Only a call whose outcome is `ok` is written
//! as done; every other one is written as requested, with its outcome, at every level of detail.

use throughline_model::Outcome;

use super::digest_call::DigestCall;
use super::errors;
use crate::category::Category;
use crate::trials::planted;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallEnd {
    /// The outcome of its result; none if there is no result.
    pub(crate) outcome: Option<Outcome>,
    /// The exit code that the output names.
    pub(crate) code: Option<i64>,
    /// Whether an output without a code looks like that of a command that failed.
    looks_failed: bool,
}

impl CallEnd {
    pub(super) fn of(called: &DigestCall<'_>, output: &str) -> Self {
        let mut ended = Self {
            outcome: called.result.map(|result| result.outcome),
            code: None,
            looks_failed: false,
        };
        // The output of a call that did not run is no evidence of how it ran. What only looks at
        // things has no exit code; its text may speak of those of others.
        if matches!(ended.outcome, Some(Outcome::Ok | Outcome::Error)) && runs(called.category) {
            ended.code = errors::exit_code(output);
            ended.looks_failed = called.category == Category::Execute
                && ended.code.is_none()
                && errors::looks_failed(output);
        }
        ended
    }

    /// The end of a result whose call is not known.
    pub(super) fn with_outcome(outcome: Outcome) -> Self {
        Self {
            outcome: Some(outcome),
            code: None,
            looks_failed: false,
        }
    }

    /// Whether the call ran and succeeded by the record.
    pub(crate) fn is_ok(self) -> bool {
        self.outcome == Some(Outcome::Ok)
    }

    /// Whether it failed: by its outcome, or by its output.
    pub(crate) fn failed(self) -> bool {
        match self.outcome {
            Some(Outcome::Error | Outcome::Unknown) => true,
            Some(Outcome::Ok) => self.failure_code().is_some() || self.looks_failed,
            Some(
                Outcome::Rejected
                | Outcome::Expired
                | Outcome::Withdrawn
                | Outcome::Limit
                | Outcome::Terminated
                | Outcome::Cancelled,
            )
            | None => false,
        }
    }

    /// Whether the record shows that the call was carried out, with or without success.
    pub(crate) fn ran(self) -> bool {
        self.is_ok() || self.code.is_some()
    }

    /// The exit code, if it is one of a failure.
    fn failure_code(self) -> Option<i64> {
        self.code.filter(|code| *code != 0)
    }

    /// What two lines must have in common to become one.
    pub(crate) fn comparison_key(self) -> (Option<Outcome>, bool, Option<i64>) {
        (self.outcome, self.failed(), self.failure_code())
    }

    /// The verb of a line: `done` for a call that is known to have run, otherwise `asked`.
    pub(super) fn verb(self, done: &str, asked: &str) -> String {
        match self.outcome {
            Some(Outcome::Ok) => done.to_owned(),
            _ if planted("compact-claimed-done") => done.to_owned(),
            Some(Outcome::Error) => format!("Tried to {asked}"),
            Some(
                Outcome::Rejected
                | Outcome::Expired
                | Outcome::Withdrawn
                | Outcome::Limit
                | Outcome::Terminated
                | Outcome::Cancelled
                | Outcome::Unknown,
            )
            | None => format!("Asked to {asked}"),
        }
    }

    /// The outcome as text, with what joins it to the text before; empty where none is needed.
    pub(crate) fn words(self, category: Category, length: Wording) -> String {
        let code = match planted("compact-code-left-out") {
            true => self.code.filter(|code| *code == 0),
            false => self.code,
        };
        let words = match self.outcome {
            Some(Outcome::Ok) => match (category, code) {
                (Category::Write, _) => return " ok".to_owned(),
                (Category::Execute, Some(code)) => format!("exit {code}"),
                (_, Some(code)) if code != 0 => format!("exit {code}"),
                (_, _) if self.failed() => "FAILED".to_owned(),
                (Category::Execute, None) => "ok".to_owned(),
                (_, _) => return String::new(),
            },
            _ if planted("compact-outcome-left-out") => return String::new(),
            Some(Outcome::Error) => match code.filter(|code| *code != 0) {
                Some(code) => format!("error, exit {code}"),
                None => "error".to_owned(),
            },
            Some(outcome) => match length {
                Wording::All => sentence(outcome).to_owned(),
                Wording::One => outcome.as_str().to_owned(),
            },
            None => "no result recorded".to_owned(),
        };
        format!(" → {words}")
    }
}

/// How many words an outcome gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wording {
    /// As many as it takes to explain it.
    All,
    /// The one that names it.
    One,
}

/// An outcome with what it means for the call; it begins with the word of the record.
fn sentence(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Error => "error",
        Outcome::Rejected => "rejected by a person, did not run",
        Outcome::Expired => "expired before anyone approved it, did not run",
        Outcome::Withdrawn => "withdrawn, did not run",
        Outcome::Limit => "limit of the run reached, did not run",
        Outcome::Terminated => "terminated with the run, did not run",
        Outcome::Cancelled => "cancelled before it had any effect",
        Outcome::Unknown => "unknown: its result was lost, it may have run",
    }
}

/// The outcome as a mark behind the name of something; empty for `ok`.
pub(crate) fn mark(outcome: Outcome) -> String {
    match outcome {
        Outcome::Ok => String::new(),
        _ if planted("compact-outcome-left-out") => String::new(),
        other => format!(" ({})", other.as_str()),
    }
}

/// Whether calls of a category end with an exit code.
fn runs(category: Category) -> bool {
    match category {
        Category::Execute | Category::Other => true,
        Category::Read
        | Category::Write
        | Category::Query
        | Category::Structured
        | Category::Plan
        | Category::Media => false,
    }
}
