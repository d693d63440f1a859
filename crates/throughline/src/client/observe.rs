//! Observation of attempts, retries, fallbacks and breaker transitions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{BreakerState, ErrorKind};

/// An event of a call. Contains no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent<'a> {
    /// A call is sent to the service, for the first time or again.
    Attempt {
        /// The name of the service.
        upstream: &'a str,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// An attempt failed and is retried.
    Retry {
        /// The name of the service.
        upstream: &'a str,
        /// The number of the failed attempt.
        attempt: u32,
        /// The wait before the next attempt.
        wait: Duration,
        /// The kind of the error.
        kind: ErrorKind,
    },
    /// An attempt failed and is not retried.
    GaveUp {
        /// The name of the service.
        upstream: &'a str,
        /// The number of the failed attempt.
        attempt: u32,
        /// The kind of the error.
        kind: ErrorKind,
        /// Why it is not retried.
        why: GiveUpReason,
    },
    /// A service refused earlier tool calls and results as native items, and accepted them as text.
    FellBack {
        /// The name of the service.
        upstream: &'a str,
        /// The model; empty if the request names none.
        model: &'a str,
    },
    /// A circuit breaker changed its state.
    Breaker {
        /// The name of the service.
        upstream: &'a str,
        /// The new state.
        state: BreakerState,
    },
}

/// Why a failed call is not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GiveUpReason {
    /// The error is permanent.
    Final,
    /// All attempts were used.
    Attempts,
    /// The retry budget is used up.
    Budget,
    /// The service asks for a longer wait than is allowed.
    Wait,
}

impl GiveUpReason {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Attempts => "attempts",
            Self::Budget => "budget",
            Self::Wait => "wait",
        }
    }
}

/// Receives events of calls, for counters and gauges. Must not block.
pub trait Observer: Send + Sync {
    /// An event happened.
    fn observe(&self, event: &ClientEvent<'_>);
}

/// An optional observer. Events are also logged at debug level.
#[derive(Clone, Default)]
pub(crate) struct ObserverHandle(Option<Arc<dyn Observer>>);

impl ObserverHandle {
    pub(crate) fn new(observer: Arc<dyn Observer>) -> Self {
        Self(Some(observer))
    }

    pub(crate) fn report(&self, event: &ClientEvent<'_>) {
        match *event {
            ClientEvent::Attempt { upstream, attempt } => {
                tracing::debug!(upstream, attempt, "attempt");
            }
            ClientEvent::Retry {
                upstream,
                attempt,
                wait,
                kind,
            } => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let kind = kind.as_str();
                tracing::debug!(upstream, attempt, wait_ms, kind, "retry");
            }
            ClientEvent::GaveUp {
                upstream,
                attempt,
                kind,
                why,
            } => {
                let (kind, why) = (kind.as_str(), why.as_str());
                tracing::debug!(upstream, attempt, kind, why, "gave up");
            }
            ClientEvent::FellBack { upstream, model } => {
                tracing::debug!(upstream, model, "tool history goes as text");
            }
            ClientEvent::Breaker { upstream, state } => {
                tracing::debug!(upstream, state = state.as_str(), "breaker");
            }
        }
        if let Some(observer) = &self.0 {
            observer.observe(event);
        }
    }
}

impl fmt::Debug for ObserverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "ObserverHandle(observed)"
        } else {
            "ObserverHandle"
        })
    }
}
