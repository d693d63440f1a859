//! The member `throughline`: options beyond the API.

use throughline::thread::{OnBusy, OnInterrupt, OnOpenCalls, Persistence};
use throughline_model::Path;
use throughline_model::json::Value;

use super::read;
use crate::ApiError;

/// The members that it may have.
const KNOWN: [&str; 6] = [
    "persistence",
    "on_busy",
    "on_interrupt",
    "on_open_calls",
    "compaction",
    "recall",
];

/// Choices for one request; the configuration has the defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// When the history moves.
    pub persistence: Option<Persistence>,
    /// What to do when the thread is busy.
    pub on_busy: Option<OnBusy>,
    /// What becomes of a run that died.
    pub on_interrupt: Option<OnInterrupt>,
    /// What becomes of calls that wait.
    pub on_open_calls: Option<OnOpenCalls>,
}

impl Extras {
    pub(super) fn of(body: &Value<'_>) -> Result<Self, ApiError> {
        let Some(object) = read::object(body, "throughline", &Path::Root)? else {
            return Ok(Self::default());
        };
        let path = Path::Root.key("throughline");
        read::check_known(object, &KNOWN, &path)?;
        if read::member(object, "recall").is_some() {
            return Err(ApiError::not_implemented("throughline.recall"));
        }
        let word = |key, known: &[&'static str]| read::one_of(object, key, known, &path);
        let persistence = word("persistence", &["per_run", "per_call"])?;
        let on_busy = word("on_busy", &["reject", "queue", "branch", "interrupt"])?;
        let on_interrupt = word("on_interrupt", &["resume", "close", "reject"])?;
        let on_open_calls = word("on_open_calls", &["reject", "close"])?;
        Ok(Self {
            persistence: persistence.map(|word| match word {
                "per_call" => Persistence::PerCall,
                _ => Persistence::PerRun,
            }),
            on_busy: on_busy.map(|word| match word {
                "queue" => OnBusy::Queue,
                "branch" => OnBusy::Branch,
                "interrupt" => OnBusy::Interrupt,
                _ => OnBusy::Reject,
            }),
            on_interrupt: on_interrupt.map(|word| match word {
                "close" => OnInterrupt::Close,
                "reject" => OnInterrupt::Reject,
                _ => OnInterrupt::Resume,
            }),
            on_open_calls: on_open_calls.map(|word| match word {
                "close" => OnOpenCalls::Close,
                _ => OnOpenCalls::Reject,
            }),
        })
    }
}
