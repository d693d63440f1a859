//! What a run has used of its limits, for the run that continues it after a failure.

use throughline_model::Stop;

use super::order::{ModelCall, Order};
use super::{Phase, Turn};
use crate::thread::StopReason;

/// What was used of the limits of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) rounds: u32,
    /// Failed rounds in a row.
    pub(crate) failed_rounds: u32,
    /// Calls that ran.
    pub(crate) calls: u32,
    pub(crate) tokens: u64,
    /// Time that workers spent on it.
    pub(crate) ms: u64,
    /// Why the next model call is the last, without tools.
    pub(crate) closing: Option<StopReason>,
}

impl Turn {
    /// What this run and the failed runs that it continues have used. The machine knows no time.
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            rounds: self.rounds,
            failed_rounds: self.failed_rounds,
            calls: self.executed,
            tokens: self.tokens(),
            ms: 0,
            closing: self.closing,
        }
    }

    /// Count what the run that this one continues has used.
    pub(crate) fn charge(&mut self, spent: &Spent) {
        if crate::trials::planted("loop-limits-lifted") {
            return;
        }
        self.rounds = spent.rounds;
        self.failed_rounds = spent.failed_rounds;
        self.executed = spent.calls;
        self.tokens_before = spent.tokens;
        self.closing = spent.closing;
    }

    /// Tokens that count against the limit, with those of the failed runs that this one continues.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens_before.saturating_add(self.usage.tokens())
    }

    /// Continue the failed run whose messages stand before the input.
    pub(crate) fn adopt(&mut self) -> Order {
        if let Some(stop) = self.closing {
            return self.call_last(stop);
        }
        // Limits may have been reached by the results that were closed when the run was adopted, or
        // the limits that hold now are lower.
        if self.limits.tokens.is_some_and(|most| self.tokens() >= most) {
            self.finish = Some(Stop::Length);
            self.phase = Phase::Over;
            return Order::End(StopReason::Budget);
        }
        if self.failed_rounds >= self.limits.failed_rounds {
            return self.call_last(StopReason::ErrorLimit);
        }
        if self.rounds >= self.limits.rounds {
            return self.call_last(StopReason::RoundLimit);
        }
        self.call_model(ModelCall::Next)
    }
}
