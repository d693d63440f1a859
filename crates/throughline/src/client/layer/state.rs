/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// All calls go to the service.
    Closed,
    /// All calls fail at once.
    Open,
    /// One call goes to the service as a probe; all others fail at once.
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
