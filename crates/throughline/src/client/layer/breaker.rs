use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use throughline_model::{Event, Response};
use throughline_wire::Loss;
use tokio::time::Instant;

use super::state::BreakerState;
use crate::client::observe::{ClientEvent, Observer, ObserverHandle};
use crate::client::{
    Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, Layer, TimeoutPhase,
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
/// A service that cannot be reached counts as failing as a whole. One that was silent for too long,
/// broke off or said that it is failing (5xx) counts as failing for the model that was asked for, so
/// that one bad model closes no other. Any other answer shows that it is alive: a refusal
/// (4xx) is about one request, and a rate limit (429) is about one account or model and says itself
/// when to come back, so neither opens the breaker. A call that was dropped shows nothing.
///
/// While it is open, calls fail at once with [`ErrorKind::Open`] and the time until the next probe.
/// After a rest one call is let through; if it succeeds, the breaker closes, else the rest doubles
/// up to five seconds. A probe that takes longer than that does not keep the next one waiting, so a
/// service that is well again gets calls within ten seconds. All clones are one breaker.
#[derive(Clone)]
pub struct Breaker(Arc<SharedBreaker>);

struct SharedBreaker {
    policy: BreakerPolicy,
    watch: ObserverHandle,
    circuits: Mutex<Circuits>,
}

/// What is known of the service, and of each model that was asked for.
#[derive(Debug)]
struct Circuits {
    service: Phase,
    models: HashMap<String, Phase>,
}

/// How many models are remembered before those that are well are forgotten.
const MODELS: usize = 256;

impl Circuits {
    fn new() -> Self {
        Self {
            service: Phase::Closed(Window::new()),
            models: HashMap::new(),
        }
    }

    fn model(&mut self, model: &str) -> &mut Phase {
        if self.models.len() >= MODELS && !self.models.contains_key(model) {
            self.models
                .retain(|_, phase| !matches!(phase, Phase::Closed(_)));
        }
        let phase = self.models.entry(model.to_owned());
        phase.or_insert_with(|| Phase::Closed(Window::new()))
    }

    /// The state of the service, or of the model that is worst off.
    fn state(&self) -> BreakerState {
        let models = self.models.values().map(Phase::state);
        let states = || std::iter::once(self.service.state()).chain(models.clone());
        match () {
            () if self.service.state() != BreakerState::Closed => self.service.state(),
            () if states().any(|state| state == BreakerState::Open) => BreakerState::Open,
            () if states().any(|state| state == BreakerState::HalfOpen) => BreakerState::HalfOpen,
            () => BreakerState::Closed,
        }
    }
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

impl Phase {
    const fn state(&self) -> BreakerState {
        match self {
            Self::Closed(_) => BreakerState::Closed,
            Self::Open { .. } => BreakerState::Open,
            Self::Probing { .. } => BreakerState::HalfOpen,
        }
    }

    /// Whether a call may pass; with the rest before it if it is a probe, or with how long not to.
    fn admits(&self, now: Instant) -> Result<Option<Duration>, Duration> {
        match self {
            Self::Closed(_) => Ok(None),
            Self::Open { until: at, rest } | Self::Probing { next: at, rest } => match now < *at {
                true => Err(*at - now),
                false => Ok(Some(*rest)),
            },
        }
    }

    /// A call passes, as a probe if there was a rest before it. Whether it is one.
    fn pass(&mut self, now: Instant, rest: Option<Duration>, policy: &BreakerPolicy) -> bool {
        if let Some(rest) = rest {
            let next = now + policy.longest_rest;
            *self = Self::Probing { next, rest };
        }
        rest.is_some()
    }

    /// Take in what a call showed.
    fn learn(&mut self, sign: Sign, probe: bool, policy: &BreakerPolicy) {
        let now = Instant::now();
        match (&mut *self, sign) {
            (Self::Closed(_), Sign::Nothing) => {}
            (Self::Closed(window), _) => {
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
                    return;
                }
                window.failed += 1;
                window.in_a_row += 1;
                let share = f64::from(window.failed) / f64::from(window.calls);
                if window.in_a_row >= policy.in_a_row
                    || (window.calls >= policy.at_least && share >= policy.share)
                {
                    let rest = policy.rest;
                    *self = Self::Open {
                        until: now + rest,
                        rest,
                    };
                }
            }
            // Any success shows that it is alive.
            (_, Sign::Alive) => *self = Self::Closed(Window::new()),
            (Self::Probing { rest, .. }, Sign::Failing | Sign::Unreachable) if probe => {
                let rest = rest.saturating_mul(2).min(policy.longest_rest);
                *self = Self::Open {
                    until: now + rest,
                    rest,
                };
            }
            // The probe went away without an answer: the next call is one.
            (Self::Probing { next, .. }, Sign::Nothing) if probe => *next = now,
            // Calls from before it opened.
            (
                Self::Open { .. } | Self::Probing { .. },
                Sign::Failing | Sign::Unreachable | Sign::Nothing,
            ) => {}
        }
    }
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
    /// It was reached, and failed.
    Failing,
    Unreachable,
    Nothing,
}

fn sign(kind: ErrorKind) -> Sign {
    match kind {
        ErrorKind::Connect | ErrorKind::Timeout(TimeoutPhase::Connect) => Sign::Unreachable,
        ErrorKind::Timeout(TimeoutPhase::FirstByte | TimeoutPhase::Idle)
        | ErrorKind::Cut
        | ErrorKind::Unavailable => Sign::Failing,
        ErrorKind::RateLimited
        | ErrorKind::Quota
        | ErrorKind::Auth
        | ErrorKind::NotFound
        | ErrorKind::Invalid
        | ErrorKind::TooLong
        | ErrorKind::Filtered
        | ErrorKind::Malformed
        | ErrorKind::TooLarge => Sign::Alive,
        // These were never sent, or failed here.
        ErrorKind::Open | ErrorKind::Setup | ErrorKind::OutOfMemory => Sign::Nothing,
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
        Self::made(policy, ObserverHandle::default())
    }

    /// A closed breaker that tells someone when it changes.
    pub fn observed_by(policy: BreakerPolicy, observer: Arc<dyn Observer>) -> Self {
        Self::made(policy, ObserverHandle::new(observer))
    }

    pub(crate) fn made(policy: BreakerPolicy, watch: ObserverHandle) -> Self {
        Self(Arc::new(SharedBreaker {
            policy,
            watch,
            circuits: Mutex::new(Circuits::new()),
        }))
    }

    /// What it does with calls now; of several models, with those for the one that is worst off.
    pub fn state(&self) -> BreakerState {
        self.circuits().state()
    }

    fn circuits(&self) -> MutexGuard<'_, Circuits> {
        let circuits = self.0.circuits.lock();
        circuits.unwrap_or_else(PoisonError::into_inner)
    }

    /// Change something, and tell of it if the state is another one then.
    fn change<T>(&self, upstream: &str, change: impl FnOnce(&mut Circuits) -> T) -> T {
        let mut circuits = self.circuits();
        let before = circuits.state();
        let changed = change(&mut circuits);
        let state = circuits.state();
        drop(circuits);
        if state != before {
            self.0
                .watch
                .report(&ClientEvent::Breaker { upstream, state });
        }
        changed
    }

    /// Let a call through, or say how long not to.
    fn admit(&self, upstream: &str, model: &str) -> Result<Admitted, Duration> {
        let (now, policy) = (Instant::now(), &self.0.policy);
        let probes = self.change(upstream, |circuits| {
            let service = circuits.service.admits(now)?;
            let phase = circuits.model(model);
            let own = phase.admits(now)?;
            let probes = phase.pass(now, own, policy);
            Ok::<_, Duration>((circuits.service.pass(now, service, policy), probes))
        })?;
        Ok(Admitted {
            breaker: self.clone(),
            upstream: upstream.to_owned(),
            model: model.to_owned(),
            sign: Sign::Nothing,
            probes,
        })
    }

    /// Take in what a call showed.
    fn learn(&self, call: &Admitted, sign: Sign) {
        let policy = &self.0.policy;
        let (of_service, of_model) = call.probes;
        self.change(&call.upstream, |circuits| {
            let (service, model) = match sign {
                Sign::Failing => (Sign::Alive, Sign::Failing),
                Sign::Unreachable => (Sign::Unreachable, Sign::Nothing),
                both => (both, both),
            };
            circuits.service.learn(service, of_service, policy);
            circuits.model(&call.model).learn(model, of_model, policy);
        });
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
    model: String,
    sign: Sign,
    /// Whether it is a probe of the service, and of the model.
    probes: (bool, bool),
}

impl Admitted {
    /// An answer has begun. Other calls need not wait until a probe's answer is whole.
    fn begun(&mut self) {
        if self.probes != (false, false) {
            self.breaker.learn(self, Sign::Alive);
            self.probes = (false, false);
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
        self.breaker.learn(self, self.sign);
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
    fn admit(&self, request: &ChatRequest<'_>) -> Result<Admitted, ClientError> {
        let upstream = &self.inner.abilities().upstream;
        // Without a name it is the client's own.
        let model = request.model.unwrap_or_default();
        self.breaker.admit(upstream, model).map_err(|wait| {
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

    fn unsupported(&self, request: &ChatRequest<'_>) -> Vec<Loss> {
        self.inner.unsupported(request)
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let mut call = self.admit(request)?;
        let outcome = self.inner.respond(request).await;
        call.saw(&outcome);
        outcome
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let mut call = self.admit(request)?;
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
