//! A run that failed: its cause, its remedy, and its outcome so far.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use throughline_model::Message;
use throughline_model::stored::StoredError;
use throughline_store::{Error as StoreError, ErrorKind as StoreErrorKind, RunId};

use super::{Outcome, RunError};
use crate::trials::planted;

/// How much of a cause is printed. Vendors put whole documents into their error messages.
const CAUSE_CHARS: usize = 600;

/// A run that failed, with its transcript up to the failure.
///
/// `Display` is one line: the run's id, the cause with everything that led to it, and what can be
/// done. Neither `Display` nor `Debug` prints a message of the run; [`outcome`](Self::outcome) has
/// them. A cause is worded as the vendor worded it, without the key that was sent.
///
/// Because `Display` prints the causes, [`Error::source`] is `None`: programs that print a chain of
/// errors would print them twice. The cause as a value is the field `source`.
///
/// ```
/// use throughline::agent::Remedy;
/// use throughline::client::ErrorKind;
/// use throughline::Agent;
/// use throughline_testkit::scripted::{ScriptedClient, Step};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedClient::new([Step::fails(ErrorKind::Unavailable)]);
/// let failed = Agent::builder(model).build()?.run("hi").await.unwrap_err();
/// assert_eq!(failed.remedy(), Remedy::Retry);
/// assert_eq!(failed.messages()[0].text(), "hi");
/// println!("{failed}");
/// # Ok(())
/// # }
/// ```
pub struct RunFailed {
    outcome: Box<Outcome>,
    left: Left,
    /// The cause.
    pub source: RunError,
}

/// Where a failure left its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The attempt was refused: no run began, or one that existed is as it was.
    Refused,
    /// The run waits for answers, or for a message store that failed.
    Parked,
    /// The record says that the run failed.
    Failed {
        /// Whether its journal has a finished step, its own or of a run that it continued.
        finished: bool,
    },
    /// The store did not take the end of the run, so that other processes see an interrupted run.
    Interrupted,
}

/// What can be done about a run that failed; see [`RunFailed::remedy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// Resume it: what was finished is kept and not done again.
    Resume,
    /// Remove the cause, then resume it: what was finished is kept and not done again.
    FixThenResume,
    /// Send the same again, later. Nothing of this attempt is in the history.
    Retry,
    /// Change the request or the configuration, then send it again. Nothing of this attempt is in
    /// the history.
    FixThenRetry,
    /// Look the run up before sending the same again: the store did not say whether it began.
    LookUp,
    /// Another run or another process answers the request: wait for its result.
    AwaitResult,
    /// Have the store checked.
    CheckStore,
    /// Nothing.
    Nothing,
}

impl Remedy {
    /// What to do, as a clause.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume it, finished steps are kept",
            Self::FixThenResume => "remove the cause, then resume it; finished steps are kept",
            Self::Retry => "try again later, nothing of it is in the history",
            Self::FixThenRetry => {
                "change the request or the configuration, then try again; nothing of it is in the history"
            }
            Self::LookUp => "the store may have it: look the run up before trying again",
            Self::AwaitResult => "wait for the run that answers it instead of trying again",
            Self::CheckStore => "have the store checked before trying again",
            Self::Nothing => "there is nothing to do",
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl RunFailed {
    pub(crate) fn new(outcome: Outcome, left: Left, source: RunError) -> Self {
        Self {
            outcome: Box::new(outcome),
            left,
            source,
        }
    }

    /// The run. If the attempt was refused before one began, an id that the store does not know.
    pub fn run(&self) -> RunId {
        self.outcome.run
    }

    /// What the run left: its transcript, usage and steps so far.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// What the run left, by value.
    pub fn into_outcome(self) -> Outcome {
        *self.outcome
    }

    /// The messages of the run, its input included, oldest first. Empty if it never began.
    pub fn messages(&self) -> &[Message] {
        &self.outcome.messages
    }

    /// Whether the store knows this end. If it does not, the run is not over: the store refused its
    /// last writes, or another process has taken it over, and it ends when it is resumed or where it
    /// was taken over. It must not be reported as failed.
    ///
    /// `true` also if no run began.
    pub fn is_recorded(&self) -> bool {
        self.left != Left::Interrupted
    }

    /// What can be done about it: by the cause, and by whether the journal has finished steps.
    pub fn remedy(&self) -> Remedy {
        let resumable = match self.left {
            Left::Refused | Left::Failed { finished: false } => false,
            Left::Parked | Left::Failed { finished: true } | Left::Interrupted => true,
        };
        match (Nature::of(&self.source), resumable) {
            (Nature::Passing, true) => Remedy::Resume,
            (Nature::Passing, false) => Remedy::Retry,
            (Nature::Lasting, true) => Remedy::FixThenResume,
            (Nature::Lasting, false) => Remedy::FixThenRetry,
            (Nature::Unsure, true) => Remedy::Resume,
            (Nature::Unsure, false) => Remedy::LookUp,
            (Nature::Absent, true) => Remedy::Nothing,
            (Nature::Absent, false) => Remedy::FixThenRetry,
            (Nature::AnsweredElsewhere, _) => Remedy::AwaitResult,
            (Nature::Damaged, _) => Remedy::CheckStore,
            (Nature::NothingThere, _) => Remedy::Nothing,
        }
    }

    /// How long the service asks to wait before the next attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.source {
            RunError::Client(error) => error.retry_after(),
            _ => None,
        }
    }
}

/// What kind of cause an error is, for the choice of a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    /// The same may succeed later.
    Passing,
    /// The same will fail again.
    Lasting,
    /// It may or may not have happened.
    Unsure,
    /// What was named does not exist (any more).
    Absent,
    /// Another run or process has the answer.
    AnsweredElsewhere,
    /// The store or the journal cannot be read.
    Damaged,
    /// There was nothing to do in the first place.
    NothingThere,
}

impl RunError {
    /// A journal that cannot be read.
    pub(crate) fn journal(error: &StoredError) -> Self {
        Self::Journal {
            why: error.to_string(),
        }
    }

    /// The error as the end note of a run has it: the name of its kind, and its text.
    pub(crate) fn recorded(&self) -> (&'static str, String) {
        match self {
            Self::Client(client) => (client.kind().as_str(), client.to_string()),
            error => ("run", error.to_string()),
        }
    }

    /// The kind of error as a label of telemetry.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Client(error) => error.kind().as_str(),
            Self::Tools(_) => "tools",
            Self::Providers(_) => "providers",
            Self::Limits(_) => "limits",
            Self::NothingToResume { .. } => "nothing_to_resume",
            Self::NotPending { .. } => "not_pending",
            Self::Store(_) => "store",
            Self::Journal { .. } => "journal",
            Self::Interrupted { .. } => "interrupted",
            Self::OpenCalls { .. } => "open_calls",
            Self::Parked { .. } => "parked",
            Self::Repeated { .. } => "repeated",
            Self::Budget(_) => "budget",
            Self::Cancelled => "cancelled",
            Self::Unasked { .. } => "unasked",
            Self::AlreadyAnswered { .. } => "already_answered",
            Self::ServiceKeepsHistory { .. } => "service_keeps_history",
            Self::HeadMoved { .. } => "head_moved",
            Self::NoServiceId { .. } => "no_service_id",
            Self::OtherServiceId { .. } => "other_service_id",
            Self::KeptElsewhere { .. } => "kept_elsewhere",
            Self::UnknownMessageStore { .. } => "unknown_message_store",
            Self::MessageStore { .. } => "message_store",
            Self::Provider { .. } => "provider",
        }
    }
}

impl Nature {
    fn of(error: &RunError) -> Self {
        match error {
            RunError::Client(error) => match error.may_retry() {
                true => Self::Passing,
                false => Self::Lasting,
            },
            RunError::Store(error) => Self::of_store(error),
            RunError::Journal { .. } => Self::Damaged,
            RunError::Repeated { .. } => Self::AnsweredElsewhere,
            RunError::NothingToResume { .. } => Self::NothingThere,
            RunError::Cancelled | RunError::MessageStore { .. } | RunError::Provider { .. } => {
                Self::Passing
            }
            RunError::Tools(_)
            | RunError::Providers(_)
            | RunError::Limits(_)
            | RunError::Interrupted { .. }
            | RunError::OpenCalls { .. }
            | RunError::Parked { .. }
            | RunError::Budget(_)
            | RunError::Unasked { .. }
            | RunError::AlreadyAnswered { .. }
            | RunError::ServiceKeepsHistory { .. }
            | RunError::HeadMoved { .. }
            | RunError::NoServiceId { .. }
            | RunError::OtherServiceId { .. }
            | RunError::KeptElsewhere { .. }
            | RunError::UnknownMessageStore { .. }
            | RunError::NotPending { .. } => Self::Lasting,
        }
    }

    fn of_store(error: &StoreError) -> Self {
        if let StoreError::KeyReused { .. } | StoreError::NotAnswerable { .. } = error {
            return Self::Lasting;
        }
        match error.kind() {
            StoreErrorKind::Conflict | StoreErrorKind::Busy => Self::Passing,
            StoreErrorKind::Invalid | StoreErrorKind::Full => Self::Lasting,
            StoreErrorKind::NotFound => Self::Absent,
            StoreErrorKind::Fenced => Self::AnsweredElsewhere,
            StoreErrorKind::Corrupt => Self::Damaged,
            StoreErrorKind::Unavailable => Self::Unsure,
        }
    }
}

/// The causes of an error, outermost first, in one line of bounded length. A cause whose text
/// stands in the one before it is left out.
fn causes(error: &dyn Error) -> String {
    let mut line = one_line(&error.to_string());
    let mut last = line.clone();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = one_line(&cause.to_string());
        if !last.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        last = text;
        source = cause.source();
    }
    if let Some((end, _)) = line.char_indices().nth(CAUSE_CHARS) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// A text without line breaks and other control characters.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

impl fmt::Display for RunFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed", self.outcome.run)?;
        if !planted("loop-failed-without-cause") {
            write!(f, ": {}", causes(&self.source))?;
        }
        write!(f, "; {}", self.remedy())?;
        match self.retry_after() {
            Some(wait) => write!(f, " (the service asks to wait {} s)", wait.as_secs_f64()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for RunFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RunFailed");
        out.field("run", &format_args!("{}", self.outcome.run))
            .field("thread", &format_args!("{}", self.outcome.thread))
            .field("cause", &causes(&self.source))
            .field("remedy", &self.remedy());
        if planted("loop-failed-prints-all") {
            return out.field("outcome", &self.outcome).finish();
        }
        out.field("messages", &self.outcome.messages.len())
            .finish_non_exhaustive()
    }
}

impl Error for RunFailed {}
