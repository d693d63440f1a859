//! Where a run stands.

/// Where a run stands. `Accepted` and `Publishing` of the design are moments inside one
/// transaction here and never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunState {
    /// A process works on it.
    Running,
    /// It is running, but its owner is gone. Never stored: running with a dead owner.
    Interrupted,
    /// It waits for an approval or for a tool that the application runs.
    Parked,
    /// It came out of a backup. No process goes on with it unasked.
    Held,
    /// It ended and its node is in the history.
    Committed,
    /// It was cancelled, and closed.
    Cancelled,
    /// It failed. Final, its journal can be adopted by a new run.
    Failed,
    /// It ended without being published; its caller publishes or discards it.
    Unpublished,
    /// It was discarded.
    Discarded,
}

impl RunState {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Running,
        Self::Interrupted,
        Self::Parked,
        Self::Held,
        Self::Committed,
        Self::Cancelled,
        Self::Failed,
        Self::Unpublished,
        Self::Discarded,
    ];

    /// The word in listings and exports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Parked => "parked",
            Self::Held => "held",
            Self::Committed => "committed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Unpublished => "unpublished",
            Self::Discarded => "discarded",
        }
    }

    /// The state with a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether it is over. What is not over is a thread's unsettled run.
    pub const fn is_settled(self) -> bool {
        match self {
            Self::Running | Self::Interrupted | Self::Parked | Self::Held => false,
            Self::Committed
            | Self::Cancelled
            | Self::Failed
            | Self::Unpublished
            | Self::Discarded => true,
        }
    }

    /// The number under which it is stored.
    pub const fn code(self) -> u8 {
        match self {
            Self::Running | Self::Interrupted => 1,
            Self::Parked => 2,
            Self::Held => 3,
            Self::Committed => 5,
            Self::Cancelled => 6,
            Self::Failed => 7,
            Self::Unpublished => 8,
            Self::Discarded => 9,
        }
    }

    /// The stored state with a number.
    pub const fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Running),
            2 => Some(Self::Parked),
            3 => Some(Self::Held),
            5 => Some(Self::Committed),
            6 => Some(Self::Cancelled),
            7 => Some(Self::Failed),
            8 => Some(Self::Unpublished),
            9 => Some(Self::Discarded),
            _ => None,
        }
    }
}
