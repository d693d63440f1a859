use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use throughline_model::Response;
use throughline_wire::Loss;

use super::budget::Budget;
use super::jitter::Jitter;
use crate::client::first_content::wait_for_content;
use crate::client::observe::{ClientEvent, GiveUpReason, Observer, ObserverHandle};
use crate::client::{
    Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, Layer, ModelList,
    StoredConversations, TokenCounter,
};

/// How often and when a failed call is retried.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// The number of attempts, the first included.
    pub attempts: u32,
    /// The longest wait before the second attempt; it doubles with each further one. The wait is
    /// random between zero and that, so that clients do not retry in lockstep.
    pub base: Duration,
    /// The upper limit of waits.
    pub cap: Duration,
    /// The longest wait to accept from the service. If it asks for more, the call fails at once.
    pub longest_wait: Duration,
    /// How many retries are available initially.
    pub reserve: u32,
    /// The fraction of a retry that each call adds to the budget. In the long run at most this plus
    /// one requests are sent per call, however many fail.
    pub earned: f64,
    /// The seed of the random waits; `None` for a random seed.
    pub seed: Option<u64>,
}

impl Default for RetryPolicy {
    /// Three attempts, waits of up to half a second and a second, up to a minute if the service
    /// asks for it, ten retries initially and one more per ten calls.
    fn default() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(8),
            longest_wait: Duration::from_secs(60),
            reserve: 10,
            earned: 0.1,
            seed: None,
        }
    }
}

impl RetryPolicy {
    /// No retries.
    pub fn never() -> Self {
        Self {
            attempts: 1,
            ..Self::default()
        }
    }
}

/// A layer that retries failed calls, within a budget.
///
/// A call is retried only if the same request may succeed ([`ClientError::may_retry`]), and a
/// stream only until its first content, because returned content cannot be taken back. A call that
/// a [`Breaker`](super::Breaker) stopped is not retried. Clones share one budget.
///
/// ```
/// use throughline::client::{ClientExt, Retry, RetryPolicy};
/// use throughline::Demo;
///
/// let policy = RetryPolicy { attempts: 5, ..RetryPolicy::default() };
/// let client = Demo::new().layer(Retry::new(policy));
/// ```
#[derive(Clone, Debug)]
pub struct Retry {
    policy: RetryPolicy,
    budget: Arc<Budget>,
    jitter: Arc<Jitter>,
    watch: ObserverHandle,
}

impl Default for Retry {
    fn default() -> Self {
        Self::new(RetryPolicy::default())
    }
}

impl Retry {
    /// A layer with its own budget.
    pub fn new(policy: RetryPolicy) -> Self {
        Self {
            budget: Arc::new(Budget::new(policy.reserve, policy.earned)),
            jitter: Arc::new(Jitter::new(policy.seed)),
            policy,
            watch: ObserverHandle::default(),
        }
    }

    /// Reports its retries to an observer.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.watch = ObserverHandle::new(observer);
        self
    }

    /// The wait after a failed attempt, or why there is no further one.
    fn next(&self, attempt: u32, error: &ClientError) -> Result<Duration, GiveUpReason> {
        // An out-of-memory error has waited for memory already.
        let is_for_later = matches!(error.kind(), ErrorKind::Open | ErrorKind::OutOfMemory);
        if !error.may_retry() || is_for_later {
            return Err(GiveUpReason::Final);
        }
        if attempt >= self.policy.attempts {
            return Err(GiveUpReason::Attempts);
        }
        let asked = error.retry_after().unwrap_or_default();
        if asked > self.policy.longest_wait {
            return Err(GiveUpReason::Wait);
        }
        if !self.budget.take() {
            return Err(GiveUpReason::Budget);
        }
        let growth = 1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX);
        let most = self.policy.base.saturating_mul(growth).min(self.policy.cap);
        // Added to the wait that the service asked for, since other clients were told the same
        // moment.
        Ok(asked.saturating_add(self.jitter.up_to(most)))
    }

    /// Waits for the next attempt, or returns the error.
    async fn pause(
        &self,
        upstream: &str,
        attempt: u32,
        error: ClientError,
    ) -> Result<(), ClientError> {
        let kind = error.kind();
        match self.next(attempt, &error) {
            Ok(wait) => {
                self.watch.report(&ClientEvent::Retry {
                    upstream,
                    attempt,
                    wait,
                    kind,
                });
                tokio::time::sleep(wait).await;
                Ok(())
            }
            Err(why) => {
                self.watch.report(&ClientEvent::GaveUp {
                    upstream,
                    attempt,
                    kind,
                    why,
                });
                Err(error)
            }
        }
    }
}

impl Layer for Retry {
    fn around(self, inner: Arc<dyn ChatClient>) -> Arc<dyn ChatClient> {
        Arc::new(Retrying { inner, retry: self })
    }
}

struct Retrying {
    inner: Arc<dyn ChatClient>,
    retry: Retry,
}

impl Retrying {
    async fn begun(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        wait_for_content(self.inner.stream(request).await?).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatClient for Retrying {
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
        let upstream = &self.abilities().upstream;
        self.retry.budget.call();
        let mut attempt = 1;
        loop {
            let event = ClientEvent::Attempt { upstream, attempt };
            self.retry.watch.report(&event);
            match self.inner.respond(request).await {
                Ok(response) => return Ok(response),
                Err(error) => self.retry.pause(upstream, attempt, error).await?,
            }
            attempt += 1;
        }
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let upstream = &self.abilities().upstream;
        self.retry.budget.call();
        let mut attempt = 1;
        loop {
            let event = ClientEvent::Attempt { upstream, attempt };
            self.retry.watch.report(&event);
            match self.begun(request).await {
                Ok(events) => return Ok(events),
                Err(error) => self.retry.pause(upstream, attempt, error).await?,
            }
            attempt += 1;
        }
    }
}
