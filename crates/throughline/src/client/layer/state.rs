/// What a breaker does with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// All go to the service.
    Closed,
    /// All fail at once.
    Open,
    /// One goes to the service, to see whether it is well again; all others fail at once.
    HalfOpen,
}

impl BreakerState {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}
