use std::time::Duration;

/// How far a run may go. A limit of N rounds allows N rounds and one last model call without tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rounds: model answers with calls, and their results.
    pub rounds: u32,
    /// Rounds in a row in which a call failed.
    pub failed_rounds: u32,
    /// Calls that are run.
    pub calls: Option<u32>,
    /// Tokens, sent and made, as the vendor reports them.
    pub tokens: Option<u64>,
    /// Time for the whole run.
    pub time: Option<Duration>,
    /// Time for one call of a tool that declares no time of its own.
    pub tool_time: Option<Duration>,
}

impl Default for Limits {
    /// 40 rounds, 3 failed rounds in a row, nothing else.
    fn default() -> Self {
        Self {
            rounds: 40,
            failed_rounds: 3,
            calls: None,
            tokens: None,
            time: None,
            tool_time: None,
        }
    }
}

/// A limit that allows nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit {setting} is 0, so that nothing could run; set it to at least 1 or leave it out"
)]
pub struct BadLimit {
    /// The name of the limit.
    pub setting: &'static str,
}

impl Limits {
    pub(crate) fn check(&self) -> Result<(), BadLimit> {
        let bad = |setting| Err(BadLimit { setting });
        if self.rounds == 0 {
            return bad("rounds");
        }
        if self.failed_rounds == 0 {
            return bad("failed_rounds");
        }
        if self.calls == Some(0) {
            return bad("calls");
        }
        if self.tokens == Some(0) {
            return bad("tokens");
        }
        if self.time.is_some_and(|time| time.is_zero()) {
            return bad("time");
        }
        if self.tool_time.is_some_and(|time| time.is_zero()) {
            return bad("tool_time");
        }
        Ok(())
    }
}

/// Whether the calls of a round run at once or one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Calling {
    /// At once.
    #[default]
    Concurrent,
    /// One after the other, in call order.
    Serial,
}
