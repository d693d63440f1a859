use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use throughline_model::{Event, Response};
use tokio::time::Instant;

use super::state::BreakerState;
use crate::client::observe::{Happening, Observer, Watch};
use crate::client::{
    Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, Layer,
};

/// When a breaker opens and how it heals.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerPolicy {
    /// Opens after this many failures in a row.
    pub in_a_row: u32,
    /// Opens when this share of the calls of one window failed …
    pub share: f64,
    /// … if there were at least this many.
    pub at_least: u32,
    /// How long a window is.
    pub window: Duration,
    /// How long it stays open the first time; doubles as long as probes fail.
    pub rest: Duration,
    /// The longest that it stays open without a probe, and the longest that one probe keeps
    /// others waiting.
    pub longest_rest: Duration,
}

impl Default for BreakerPolicy {
    /// Five failures in a row, or half of at least twenty calls in ten seconds; a probe after one
    /// second, later every five at the most.
    fn default() -> Self {
        Self {
            in_a_row: 5,
            share: 0.5,
            at_least: 20,
            window: Duration::from_secs(10),
            rest: Duration::from_secs(1),
            longest_rest: Duration::from_secs(5),
        }
    }
}

impl BreakerPolicy {
    /// Never opens.
    pub fn never() -> Self {
        Self {
            in_a_row: u32::MAX,
            at_least: u32::MAX,
            ..Self::default()
        }
    }
}

/// A layer that stops asking a service that keeps failing.
///
/// What counts as a failure is that the service could not be reached, was silent for too long,
/// broke off or said that it is failing (5xx). Any other answer shows that it is alive: a refusal
/// (4xx) is about one request, and a rate limit (429) is about one account or model and says itself
/// when to come back, so neither opens the breaker. A call that was dropped shows nothing.
///
/// While it is open, calls fail at once with [`ErrorKind::Open`] and the time until the next probe.
/// After a rest one call is let through; if it succeeds, the breaker closes, else the rest doubles
/// up to five seconds. A probe that takes longer than that does not keep the next one waiting, so a
/// service that is well again gets calls within ten seconds. All clones are one breaker.
#[derive(Clone)]
pub struct Breaker(Arc<Shared>);

struct Shared {
    policy: BreakerPolicy,
    watch: Watch,
    phase: Mutex<Phase>,
}

#[derive(Debug)]
enum Phase {
    Closed(Window),
    /// Rests until a moment; how long this rest is.
    Open {
        until: Instant,
        rest: Duration,
    },
    /// A probe is out; the next may follow at a moment.
    Probing {
        next: Instant,
        rest: Duration,
    },
}

#[derive(Debug)]
struct Window {
    since: Instant,
    calls: u32,
    failed: u32,
    in_a_row: u32,
}

impl Window {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            calls: 0,
            failed: 0,
            in_a_row: 0,
        }
    }
}

/// What a call showed about the service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Alive,
    Failing,
    Nothing,
}

fn sign(kind: ErrorKind) -> Sign {
    match kind {
        ErrorKind::Connect | ErrorKind::Timeout(_) | ErrorKind::Cut | ErrorKind::Unavailable => {
            Sign::Failing
        }
        ErrorKind::RateLimited
        | ErrorKind::Quota
        | ErrorKind::Auth
        | ErrorKind::NotFound
        | ErrorKind::Invalid
        | ErrorKind::TooLong
        | ErrorKind::Filtered
        | ErrorKind::Malformed
        | ErrorKind::TooLarge => Sign::Alive,
        // These were never sent.
        ErrorKind::Open | ErrorKind::Setup => Sign::Nothing,
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self::new(BreakerPolicy::default())
    }
}

impl Breaker {
    /// A closed breaker.
    pub fn new(policy: BreakerPolicy) -> Self {
        Self::made(policy, Watch::default())
    }

    /// A closed breaker that tells someone when it changes.
    pub fn observed_by(policy: BreakerPolicy, observer: Arc<dyn Observer>) -> Self {
        Self::made(policy, Watch::by(observer))
    }

    pub(crate) fn made(policy: BreakerPolicy, watch: Watch) -> Self {
        Self(Arc::new(Shared {
            policy,
            watch,
            phase: Mutex::new(Phase::Closed(Window::new())),
        }))
    }

    /// What it does with calls now.
    pub fn state(&self) -> BreakerState {
        match *self.phase() {
            Phase::Closed(_) => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::Probing { .. } => BreakerState::HalfOpen,
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, upstream: &str, state: BreakerState) {
        self.0.watch.tell(&Happening::Breaker { upstream, state });
    }

    /// Let a call through, or say how long not to.
    fn admit(&self, upstream: &str) -> Result<Admitted, Duration> {
        let now = Instant::now();
        let mut phase = self.phase();
        let probe = match &*phase {
            Phase::Closed(_) => None,
            Phase::Open { until: at, rest } | Phase::Probing { next: at, rest } => {
                if now < *at {
                    return Err(*at - now);
                }
                Some(*rest)
            }
        };
        if let Some(rest) = probe {
            let next = now + self.0.policy.longest_rest;
            *phase = Phase::Probing { next, rest };
        }
        drop(phase);
        if probe.is_some() {
            self.tell(upstream, BreakerState::HalfOpen);
        }
        Ok(Admitted {
            breaker: self.clone(),
            upstream: upstream.to_owned(),
            sign: Sign::Nothing,
            probe: probe.is_some(),
        })
    }

    /// Take in what a call showed; gives the new state if it changed.
    fn learn(&self, sign: Sign, probe: bool) -> Option<BreakerState> {
        let policy = &self.0.policy;
        let now = Instant::now();
        let mut phase = self.phase();
        match (&mut *phase, sign) {
            (Phase::Closed(_), Sign::Nothing) => None,
            (Phase::Closed(window), _) => {
                if now.duration_since(window.since) > policy.window {
                    let in_a_row = window.in_a_row;
                    *window = Window {
                        in_a_row,
                        ..Window::new()
                    };
                }
                window.calls += 1;
                if sign == Sign::Alive {
                    window.in_a_row = 0;
                    return None;
                }
                window.failed += 1;
                window.in_a_row += 1;
                let share = f64::from(window.failed) / f64::from(window.calls);
                let opens = window.in_a_row >= policy.in_a_row
                    || (window.calls >= policy.at_least && share >= policy.share);
                opens.then(|| {
                    let rest = policy.rest;
                    *phase = Phase::Open {
                        until: now + rest,
                        rest,
                    };
                    BreakerState::Open
                })
            }
            // Whoever succeeds, the service is alive.
            (_, Sign::Alive) => {
                *phase = Phase::Closed(Window::new());
                Some(BreakerState::Closed)
            }
            (Phase::Probing { rest, .. }, Sign::Failing) if probe => {
                let rest = rest.saturating_mul(2).min(policy.longest_rest);
                *phase = Phase::Open {
                    until: now + rest,
                    rest,
                };
                Some(BreakerState::Open)
            }
            // The probe went away without an answer: the next call is one.
            (Phase::Probing { next, .. }, Sign::Nothing) if probe => {
                *next = now;
                None
            }
            // Calls from before it opened.
            (Phase::Open { .. } | Phase::Probing { .. }, Sign::Failing | Sign::Nothing) => None,
        }
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Breaker").field(&self.state()).finish()
    }
}

/// A call that was let through. Dropping it tells the breaker what it showed.
struct Admitted {
    breaker: Breaker,
    upstream: String,
    sign: Sign,
    probe: bool,
}

impl Admitted {
    /// An answer has begun. Other calls need not wait until a probe's answer is whole.
    fn begun(&mut self) {
        if std::mem::take(&mut self.probe)
            && let Some(state) = self.breaker.learn(Sign::Alive, true)
        {
            self.breaker.tell(&self.upstream, state);
        }
    }

    fn saw<T>(&mut self, outcome: &Result<T, ClientError>) {
        self.sign = match outcome {
            Ok(_) => Sign::Alive,
            Err(error) => sign(error.kind()),
        };
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(state) = self.breaker.learn(self.sign, self.probe) {
            self.breaker.tell(&self.upstream, state);
        }
    }
}

impl Layer for Breaker {
    fn around(self, inner: Arc<dyn ChatClient>) -> Arc<dyn ChatClient> {
        Arc::new(Guarded {
            inner,
            breaker: self,
        })
    }
}

struct Guarded {
    inner: Arc<dyn ChatClient>,
    breaker: Breaker,
}

impl Guarded {
    fn admit(&self) -> Result<Admitted, ClientError> {
        let upstream = &self.inner.abilities().upstream;
        self.breaker.admit(upstream).map_err(|wait| {
            ClientError::new(
                ErrorKind::Open,
                upstream,
                "the service kept failing and is not asked for now",
            )
            .with_retry_after(Some(wait))
        })
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatClient for Guarded {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }

    fn get_ready(&self) {
        if self.breaker.state() != BreakerState::Open {
            self.inner.get_ready();
        }
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let mut call = self.admit()?;
        let outcome = self.inner.respond(request).await;
        call.saw(&outcome);
        outcome
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let mut call = self.admit()?;
        let outcome = self.inner.stream(request).await;
        let events = match outcome {
            Ok(events) => events,
            Err(error) => {
                call.sign = sign(error.kind());
                return Err(error);
            }
        };
        // The call is over when its stream is; a stream that is dropped shows nothing.
        let watched = stream::unfold(Some((events, call)), |state| async move {
            let (mut events, mut call) = state?;
            let event = events.next().await?;
            match &event {
                Ok(Event::Finished { .. }) | Err(_) => {
                    call.saw(&event);
                    drop(call);
                    Some((event, None))
                }
                Ok(_) => {
                    call.begun();
                    Some((event, Some((events, call))))
                }
            }
        });
        Ok(Box::pin(watched))
    }
}
