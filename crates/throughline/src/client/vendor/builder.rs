//! The builder of vendor clients.

use std::fmt;
use std::sync::Arc;

use throughline_store::SystemClock;
use throughline_wire::compose::TokenLimit;
use throughline_wire::render::Target;
use throughline_wire::sse::Limits;

use super::VendorClient;
use super::dialect::{Dialect, EndMark};
use super::history_form::FormSettings;
use crate::client::http::{Header, HttpSettings, ProxyChoice, Timeouts, TokenProvider, Transport};
use crate::client::observe::{Observer, ObserverHandle};
use crate::client::{
    Abilities, Breaker, BreakerPolicy, ChatClient, ClientError, ClientExt, Retry, RetryPolicy,
    Secret,
};
use crate::memory::MemoryBudget;

/// Limits on the size of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The largest body of a whole response.
    pub body_bytes: u64,
    /// The largest stream. Streams repeat their contents at least once, in many small pieces.
    pub stream_bytes: u64,
    /// The largest line and event of a stream.
    pub events: Limits,
    /// The largest answer: its texts and arguments, and the vendor's own members.
    pub answer_bytes: u64,
}

impl Default for Bounds {
    /// 64 MiB for a whole response, 256 MiB for a stream, 32 MiB for an event; answers of 32 MiB.
    fn default() -> Self {
        Self {
            body_bytes: 64 * 1024 * 1024,
            stream_bytes: 256 * 1024 * 1024,
            events: Limits::default(),
            answer_bytes: 32 * 1024 * 1024,
        }
    }
}

/// Builds a vendor client. See [`OpenAi`](super::OpenAi), [`Anthropic`](super::Anthropic),
/// [`Gemini`](super::Gemini), [`Foundry`](super::Foundry).
pub struct ClientBuilder {
    pub(super) dialect: &'static Dialect,
    pub(super) model: Option<String>,
    pub(super) needs_model: bool,
    /// Whether each request names its model.
    pub(super) any_model: bool,
    pub(super) base_url: Option<String>,
    pub(super) below: String,
    pub(super) parameters: Vec<&'static str>,
    pub(super) members: Vec<(&'static str, String)>,
    pub(super) key: Option<Secret>,
    pub(super) tokens: Option<Arc<dyn TokenProvider>>,
    pub(super) headers: Vec<Header>,
    pub(super) timeouts: Timeouts,
    pub(super) http: HttpSettings,
    pub(super) transport: Option<Arc<dyn Transport>>,
    pub(super) bounds: Bounds,
    pub(super) memory: Option<MemoryBudget>,
    pub(super) abilities: Abilities,
    pub(super) target: Target,
    pub(super) token_limit: Option<TokenLimit>,
    pub(super) token_limit_elsewhere: TokenLimit,
    pub(super) end_mark: EndMark,
    pub(super) retry: RetryPolicy,
    pub(super) breaker: Result<BreakerPolicy, Breaker>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) history: FormSettings,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("abilities", &self.abilities)
            .field("model", &self.model)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(super) fn new(dialect: &'static Dialect) -> Self {
        let abilities = Abilities {
            wire: Some(dialect.wire.clone()),
            stores_history: dialect.stores,
            reasoning_round_trip: dialect.reasoning,
            ..Abilities::of(dialect.upstream)
        };
        Self {
            dialect,
            model: None,
            needs_model: true,
            any_model: false,
            base_url: None,
            below: String::new(),
            parameters: Vec::new(),
            members: Vec::new(),
            key: None,
            tokens: None,
            headers: Vec::new(),
            timeouts: Timeouts::default(),
            http: HttpSettings::default(),
            transport: None,
            bounds: Bounds::default(),
            memory: None,
            abilities,
            target: Target::newest(dialect.wire.clone()),
            token_limit: None,
            token_limit_elsewhere: TokenLimit::default(),
            end_mark: dialect.end,
            retry: RetryPolicy::default(),
            breaker: Ok(BreakerPolicy::default()),
            observer: None,
            history: FormSettings::new(Arc::new(SystemClock)),
        }
    }

    /// Sets the model, unless a request names another.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        let model = model.into();
        self.abilities.model = Some(model.clone());
        self.model = Some(model);
        self
    }

    /// Sets no model: each request names one, and a request without a model is refused before
    /// anything is sent. For one client that serves all models of a service.
    ///
    /// ```
    /// use throughline::{ChatClient, OpenAi};
    ///
    /// let client = OpenAi::responses("").any_model().api_key("sk-1").build()?;
    /// assert_eq!(client.abilities().model, None);
    /// # Ok::<(), throughline::client::ClientError>(())
    /// ```
    #[must_use]
    pub fn any_model(mut self) -> Self {
        self.model = None;
        self.abilities.model = None;
        self.any_model = true;
        self
    }

    /// Sets the name of the service in ids, errors and telemetry.
    #[must_use]
    pub fn upstream(mut self, name: impl Into<String>) -> Self {
        self.abilities.upstream = name.into();
        self
    }

    /// Sets the API key.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<Secret>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Reads the API key from the vendor's usual environment variable.
    pub fn api_key_from_env(self) -> Result<Self, ClientError> {
        let found = self.dialect.key_env.iter().find_map(|name| {
            let key = std::env::var(name).ok()?;
            let key = key.trim();
            (!key.is_empty()).then(|| Secret::new(key))
        });
        match found {
            Some(key) => Ok(self.api_key(key)),
            None => {
                let names = self.dialect.key_env.join(" or ");
                Err(self.setup(format!("no API key: set {names} in the environment")))
            }
        }
    }

    /// Sets the source of access tokens, for services with short-lived tokens. Tokens are cached
    /// until shortly before they expire, and renewed once when the service refuses one.
    #[must_use]
    pub fn token_provider(mut self, provider: Arc<dyn TokenProvider>) -> Self {
        self.tokens = Some(provider);
        self
    }

    /// Sets the address of the service, without the part that names the operation: for a proxy, a
    /// local server, or a test.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self.below.clear();
        self
    }

    /// Adds a header to every request. Its value is treated as a secret.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        let name = name.into().to_ascii_lowercase();
        self.headers.retain(|header| header.name != name);
        self.headers.push(Header::secret(name, "", value.into()));
        self
    }

    /// Sets the timeouts.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the proxy.
    #[must_use]
    pub fn proxy(mut self, proxy: ProxyChoice) -> Self {
        self.http.proxy = proxy;
        self
    }

    /// Adds trusted certificates, as PEM.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.http.root_certificates.push(pem.into());
        self
    }

    /// Sets limits on the size of responses.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Counts the memory of answers while they are read. An answer without memory waits, and
    /// finally fails with [`ErrorKind::OutOfMemory`](crate::client::ErrorKind::OutOfMemory).
    #[must_use]
    pub fn memory(mut self, budget: &MemoryBudget) -> Self {
        self.memory = Some(budget.clone());
        self
    }

    /// Sets a transport, which several clients can share, instead of one with its own connections.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Changes the abilities, if the service differs from what its format implies.
    ///
    /// ```
    /// use throughline::{ChatClient, OpenAi};
    ///
    /// let client = OpenAi::chat("small")
    ///     .base_url("http://127.0.0.1:8080/v1")
    ///     .abilities(|abilities| abilities.native_tool_history = false)
    ///     .build()?;
    /// assert!(!client.abilities().native_tool_history);
    /// # Ok::<(), throughline::client::ClientError>(())
    /// ```
    #[must_use]
    pub fn abilities(mut self, change: impl FnOnce(&mut Abilities)) -> Self {
        change(&mut self.abilities);
        self
    }

    /// Changes the target for which histories are rendered: the model's generation, and whether it
    /// thinks. Whether the service stores the conversation is decided by each request.
    #[must_use]
    pub fn target(mut self, change: impl FnOnce(&mut Target)) -> Self {
        change(&mut self.target);
        self
    }

    /// Sets the name of the token limit in requests (Chat Completions).
    #[must_use]
    pub fn token_limit(mut self, limit: TokenLimit) -> Self {
        self.token_limit = Some(limit);
        self
    }

    /// Sets whether streams must end as the format says.
    #[must_use]
    pub fn end_mark(mut self, mark: EndMark) -> Self {
        self.end_mark = mark;
        self
    }

    /// Sets how often and when failed calls are retried.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets when the circuit breaker opens.
    #[must_use]
    pub fn breaker(mut self, policy: BreakerPolicy) -> Self {
        self.breaker = Ok(policy);
        self
    }

    /// Sets a breaker that several clients of one service share, or whose state the application
    /// reads.
    #[must_use]
    pub fn shared_breaker(mut self, breaker: Breaker) -> Self {
        self.breaker = Err(breaker);
        self
    }

    /// Sets an observer of attempts, retries and breaker transitions.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Builds the client, with a circuit breaker around it and retries around that.
    pub fn build(mut self) -> Result<Arc<dyn ChatClient>, ClientError> {
        let observer = self.observer.clone();
        let watch = observer
            .clone()
            .map(ObserverHandle::new)
            .unwrap_or_default();
        let policy = BreakerPolicy::never();
        let breaker = match std::mem::replace(&mut self.breaker, Ok(policy)) {
            Ok(policy) => Breaker::made(policy, watch),
            Err(shared) => shared,
        };
        let mut retry = Retry::new(self.retry.clone());
        if let Some(observer) = observer {
            retry = retry.observed_by(observer);
        }
        Ok(self.build_bare()?.layer(breaker).layer(retry))
    }

    /// Builds the client without layers.
    pub fn build_bare(self) -> Result<VendorClient, ClientError> {
        let base = self.base()?;
        let credential = self.credential()?;
        if self.needs_model
            && !self.any_model
            && self
                .model
                .as_deref()
                .is_none_or(|name| name.trim().is_empty())
        {
            return Err(self.setup("no model: name one"));
        }
        let codec = throughline_wire::codec(&self.dialect.wire)
            .ok_or_else(|| self.setup("there is no codec for this format"))?;
        let transport = self.own_transport()?;
        let mut abilities = self.abilities;
        let history = self.history.chooser(&mut abilities);
        let mut headers: Vec<Header> = self
            .dialect
            .headers
            .iter()
            .filter(|(name, _)| self.headers.iter().all(|header| header.name != *name))
            .map(|(name, value)| Header::plain(*name, *value))
            .collect();
        headers.extend(self.headers);
        let at_home = self.base_url.is_none();
        let mut target = self.target;
        // Each request decides these; a client must not add them.
        target.stored = false;
        target.chain = None;
        // Sealed contents are only useful for a service that accepts them back.
        target.same_account &= abilities.reasoning_round_trip;
        Ok(VendorClient {
            dialect: self.dialect,
            codec,
            abilities,
            model: self.model,
            base,
            headers,
            credential,
            transport,
            timeouts: self.timeouts,
            bounds: self.bounds,
            memory: self.memory,
            target,
            history,
            watch: self.observer.map(ObserverHandle::new).unwrap_or_default(),
            token_limit: self.token_limit.unwrap_or(if at_home {
                TokenLimit::default()
            } else {
                self.token_limit_elsewhere
            }),
            end_mark: self.end_mark,
            names_model: self.needs_model,
            members: self.members,
        })
    }
}
