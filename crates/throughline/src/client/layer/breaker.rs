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
    Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, Layer, ModelList,
    StoredConversations, TimeoutPhase, TokenCounter,
};

/// When a circuit breaker opens and closes.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerPolicy {
    /// Opens after this many failures in a row.
    pub in_a_row: u32,
    /// Opens when this share of the calls of a window failed …
    pub share: f64,
    /// … if there were at least this many calls.
    pub at_least: u32,
    /// The length of a window.
    pub window: Duration,
    /// How long it stays open at first; doubles while probes fail.
    pub rest: Duration,
    /// The longest time without a probe, and the longest time for which one probe delays the next.
    pub longest_rest: Duration,
}

impl Default for BreakerPolicy {
    /// Five failures in a row, or half of at least twenty calls in ten seconds; a probe after one
    /// second, later at most every five.
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

/// A layer that stops calling a service that keeps failing (a circuit breaker).
///
/// A service that cannot be reached counts as failing for all models. A timeout, a broken answer or
/// a 5xx counts as a failure of the requested model, so that one bad model does not block the
/// others. Any other answer shows that the service works: a 4xx is about one request, and a 429 is
/// about one account or model and has its own wait. A dropped call shows nothing.
///
/// While the breaker is open, calls fail at once with [`ErrorKind::Open`] and the time until the
/// next probe. After a pause one call is let through; if it succeeds, the breaker closes, else the
/// pause doubles, up to five seconds. A probe that takes longer does not delay the next one, so a
/// recovered service gets calls within ten seconds. Clones share one breaker.
#[derive(Clone)]
pub struct Breaker(Arc<SharedBreaker>);

struct SharedBreaker {
    policy: BreakerPolicy,
    watch: ObserverHandle,
    circuits: Mutex<Circuits>,
}

/// The circuits of the service and of each requested model.
#[derive(Debug)]
struct Circuits {
    service: Phase,
    models: HashMap<String, Phase>,
}

/// How many models are remembered before closed circuits are forgotten.
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

    /// The state of the service, or the worst state of a model.
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
    /// Pauses until a moment; the length of this pause.
    Open {
        until: Instant,
        rest: Duration,
    },
    /// A probe is running; the next one may follow at a moment.
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

    /// Whether a call may pass: with the pause before it if it is a probe, or else with the time
    /// until the next probe.
    fn admits(&self, now: Instant) -> Result<Option<Duration>, Duration> {
        match self {
            Self::Closed(_) => Ok(None),
            Self::Open { until: at, rest } | Self::Probing { next: at, rest } => match now < *at {
                true => Err(*at - now),
                false => Ok(Some(*rest)),
            },
        }
    }

    /// Lets a call through, as a probe if there was a pause before it. Returns whether it is a
    /// probe.
    fn pass(&mut self, now: Instant, rest: Option<Duration>, policy: &BreakerPolicy) -> bool {
        if let Some(rest) = rest {
            let next = now + policy.longest_rest;
            *self = Self::Probing { next, rest };
        }
        rest.is_some()
    }

    /// Records the outcome of a call.
    fn record(&mut self, outcome: CallOutcome, probe: bool, policy: &BreakerPolicy) {
        let now = Instant::now();
        match (&mut *self, outcome) {
            (Self::Closed(_), CallOutcome::Unknown) => {}
            (Self::Closed(window), _) => {
                if now.duration_since(window.since) > policy.window {
                    let in_a_row = window.in_a_row;
                    *window = Window {
                        in_a_row,
                        ..Window::new()
                    };
                }
                window.calls += 1;
                if outcome == CallOutcome::Works {
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
            // Any success shows that the service works.
            (_, CallOutcome::Works) => *self = Self::Closed(Window::new()),
            (Self::Probing { rest, .. }, CallOutcome::ModelFails | CallOutcome::Unreachable)
                if probe =>
            {
                let rest = rest.saturating_mul(2).min(policy.longest_rest);
                *self = Self::Open {
                    until: now + rest,
                    rest,
                };
            }
            // The probe was dropped without an answer: the next call is a probe.
            (Self::Probing { next, .. }, CallOutcome::Unknown) if probe => *next = now,
            // Calls from before it opened.
            (
                Self::Open { .. } | Self::Probing { .. },
                CallOutcome::ModelFails | CallOutcome::Unreachable | CallOutcome::Unknown,
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

/// What the outcome of a call shows about the service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOutcome {
    Works,
    /// The service was reached, and failed.
    ModelFails,
    Unreachable,
    /// The call was dropped, or failed in this process.
    Unknown,
}

fn outcome_of(kind: ErrorKind) -> CallOutcome {
    match kind {
        ErrorKind::Connect | ErrorKind::Timeout(TimeoutPhase::Connect) => CallOutcome::Unreachable,
        ErrorKind::Timeout(TimeoutPhase::FirstByte | TimeoutPhase::Idle)
        | ErrorKind::Cut
        | ErrorKind::Unavailable => CallOutcome::ModelFails,
        ErrorKind::RateLimited
        | ErrorKind::Quota
        | ErrorKind::Auth
        | ErrorKind::NotFound
        | ErrorKind::Invalid
        | ErrorKind::TooLong
        | ErrorKind::Filtered
        | ErrorKind::Malformed
        | ErrorKind::TooLarge => CallOutcome::Works,
        // These were never sent, or failed in this process.
        ErrorKind::Open | ErrorKind::Setup | ErrorKind::OutOfMemory => CallOutcome::Unknown,
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

    /// A closed breaker that reports its transitions to an observer.
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

    /// The current state; of several models, the worst.
    pub fn state(&self) -> BreakerState {
        self.circuits().state()
    }

    fn circuits(&self) -> MutexGuard<'_, Circuits> {
        let circuits = self.0.circuits.lock();
        circuits.unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the circuits, and reports a changed state.
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

    /// Lets a call through, or returns the time until the next probe.
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
            outcome: CallOutcome::Unknown,
            probes,
        })
    }

    /// Records the outcome of a call.
    fn record(&self, call: &Admitted, outcome: CallOutcome) {
        let policy = &self.0.policy;
        let (of_service, of_model) = call.probes;
        self.change(&call.upstream, |circuits| {
            let (service, model) = match outcome {
                CallOutcome::ModelFails => (CallOutcome::Works, CallOutcome::ModelFails),
                CallOutcome::Unreachable => (CallOutcome::Unreachable, CallOutcome::Unknown),
                both => (both, both),
            };
            circuits.service.record(service, of_service, policy);
            circuits.model(&call.model).record(model, of_model, policy);
        });
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Breaker").field(&self.state()).finish()
    }
}

/// A call that was let through. Dropping it records its outcome.
struct Admitted {
    breaker: Breaker,
    upstream: String,
    model: String,
    outcome: CallOutcome,
    /// Whether it is a probe of the service, and of the model.
    probes: (bool, bool),
}

impl Admitted {
    /// The answer has begun: other calls need not wait until a probe's answer is complete.
    fn begun(&mut self) {
        if self.probes != (false, false) {
            self.breaker.record(self, CallOutcome::Works);
            self.probes = (false, false);
        }
    }

    fn record_outcome<T>(&mut self, outcome: &Result<T, ClientError>) {
        self.outcome = match outcome {
            Ok(_) => CallOutcome::Works,
            Err(error) => outcome_of(error.kind()),
        };
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.breaker.record(self, self.outcome);
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
        // Without a model in the request, the client's own is used.
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

    fn conversations(&self) -> Option<&dyn StoredConversations> {
        self.inner.conversations()
    }

    fn models(&self) -> Option<&dyn ModelList> {
        self.inner.models()
    }

    fn token_counter(&self) -> Option<&dyn TokenCounter> {
        self.inner.token_counter()
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let mut call = self.admit(request)?;
        let outcome = self.inner.respond(request).await;
        call.record_outcome(&outcome);
        outcome
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let mut call = self.admit(request)?;
        let outcome = self.inner.stream(request).await;
        let events = match outcome {
            Ok(events) => events,
            Err(error) => {
                call.outcome = outcome_of(error.kind());
                return Err(error);
            }
        };
        // The call ends with its stream; a stream that is dropped shows nothing.
        let watched = stream::unfold(Some((events, call)), |state| async move {
            let (mut events, mut call) = state?;
            let event = events.next().await?;
            match &event {
                Ok(Event::Finished { .. }) | Err(_) => {
                    call.record_outcome(&event);
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
