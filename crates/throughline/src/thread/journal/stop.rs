use std::fmt;

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// The model finished its answer.
    Done,
    /// Calls wait for approvals or for results of the application.
    Parked,
    /// The round limit was reached.
    RoundLimit,
    /// Too many rounds in a row had a failure.
    ErrorLimit,
    /// A budget of calls, tokens or time was used up.
    Budget,
    /// A tool ended the run.
    Terminated,
    /// The run was cancelled, or its future was dropped.
    Cancelled,
    /// The model could not be called, or the run failed otherwise.
    Failed,
}

impl StopReason {
    /// All stop reasons.
    pub const ALL: [Self; 8] = [
        Self::Done,
        Self::Parked,
        Self::RoundLimit,
        Self::ErrorLimit,
        Self::Budget,
        Self::Terminated,
        Self::Cancelled,
        Self::Failed,
    ];

    /// The reason with a stable name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stop| stop.as_str() == word)
    }

    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Parked => "parked",
            Self::RoundLimit => "round_limit",
            Self::ErrorLimit => "error_limit",
            Self::Budget => "budget",
            Self::Terminated => "terminated",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
