//! The one place where attempts, retries, fallbacks and breaker transitions can be seen.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{BreakerState, ErrorKind};

/// Something that happened to a call on its way. There is no content in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent<'a> {
    /// A call goes to the service: the first time, or again.
    Attempt {
        /// The service.
        upstream: &'a str,
        /// Counted from 1.
        attempt: u32,
    },
    /// An attempt failed and another one follows.
    Retry {
        /// The service.
        upstream: &'a str,
        /// The attempt that failed.
        attempt: u32,
        /// How long until the next.
        wait: Duration,
        /// What went wrong.
        kind: ErrorKind,
    },
    /// An attempt failed and none follows.
    GaveUp {
        /// The service.
        upstream: &'a str,
        /// The attempt that failed.
        attempt: u32,
        /// What went wrong.
        kind: ErrorKind,
        /// Why no other attempt follows.
        why: GiveUpReason,
    },
    /// A service refused earlier tool calls and results as its own items, and took them as text.
    FellBack {
        /// The service.
        upstream: &'a str,
        /// The model; empty if the request named none.
        model: &'a str,
    },
    /// A breaker changed.
    Breaker {
        /// The service.
        upstream: &'a str,
        /// What it is now.
        state: BreakerState,
    },
}

/// Why a call that failed was not tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GiveUpReason {
    /// Trying again would not help.
    Final,
    /// All attempts were used.
    Attempts,
    /// The budget for retries is used up.
    Budget,
    /// The service asks to wait for longer than is allowed.
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

/// Someone who is told what happens to calls: for counters and gauges. Must not block.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn observe(&self, event: &ClientEvent<'_>);
}

/// An observer, or none; what happens is a tracing event at debug either way.
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
