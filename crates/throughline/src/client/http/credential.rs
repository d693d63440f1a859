//! Credentials of requests: API keys and short-lived tokens.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::time::Instant;

use crate::client::Secret;

/// An access token and its lifetime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The token.
    pub secret: Secret,
    /// The remaining lifetime, if known.
    pub valid_for: Option<Duration>,
}

/// Why there is no token. The message must not contain one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TokenError {
    /// What went wrong and how to fix it.
    pub message: String,
}

impl TokenError {
    /// An error. The message must not contain a token.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// A source of access tokens.
///
/// Each call fetches a new token; [`CachedTokens`], which the builders put around every provider,
/// keeps it until shortly before it expires. Dropping the future must not leave a fetch running.
#[async_trait]
pub trait TokenProvider: Send + Sync {
    /// Fetches a token.
    async fn token(&self) -> Result<Token, TokenError>;
}

/// Caches the token of a provider. It fetches a new token before the old one expires, one fetch at
/// a time, and at once when a service has refused the token.
#[derive(Clone)]
pub struct CachedTokens(Arc<Cache>);

struct Cache {
    provider: Arc<dyn TokenProvider>,
    state: Mutex<TokenState>,
}

#[derive(Default)]
struct TokenState {
    held: Option<Held>,
    fetching: Option<Fetching>,
    /// When a refused token was last discarded.
    refused: Option<Instant>,
}

struct Held {
    secret: Secret,
    renew_at: Instant,
}

type Fetching = Shared<BoxFuture<'static, Result<Secret, TokenError>>>;

/// How long before it expires a token is renewed, if its lifetime allows.
const RENEW_BEFORE_EXPIRY: Duration = Duration::from_secs(300);
/// How long a token of unknown lifetime is kept.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);
/// A service that refuses fresh tokens too does not cause a fetch for every request.
const BETWEEN_REFUSALS: Duration = Duration::from_secs(30);

impl CachedTokens {
    /// A cache for a provider.
    pub fn new(provider: Arc<dyn TokenProvider>) -> Self {
        Self(Arc::new(Cache {
            provider,
            state: Mutex::default(),
        }))
    }

    /// The current token.
    pub async fn current(&self) -> Result<Secret, TokenError> {
        let fetching = {
            let mut state = self.state();
            if let Some(held) = &state.held
                && Instant::now() < held.renew_at
            {
                return Ok(held.secret.clone());
            }
            state.fetching.get_or_insert_with(|| self.fetch()).clone()
        };
        // Each waiting call polls the shared fetch, so it continues if the call that started it was
        // dropped.
        fetching.await
    }

    /// Reports that a service refused a token. Returns whether to retry with another token.
    pub fn refuse(&self, token: &Secret) -> bool {
        let mut state = self.state();
        let now = Instant::now();
        match &state.held {
            // Another call has renewed it already.
            Some(held) if held.secret != *token => return true,
            _ => {}
        }
        if state
            .refused
            .is_some_and(|at| now.duration_since(at) < BETWEEN_REFUSALS)
        {
            return false;
        }
        state.refused = Some(now);
        state.held = None;
        true
    }

    fn fetch(&self) -> Fetching {
        let cache = Arc::clone(&self.0);
        async move {
            let fetched = cache.provider.token().await;
            let now = Instant::now();
            let mut state = lock(&cache.state);
            state.fetching = None;
            let token = fetched?;
            let life = token.valid_for.unwrap_or(DEFAULT_LIFETIME);
            let ahead = RENEW_BEFORE_EXPIRY.min(life / 2);
            state.held = Some(Held {
                secret: token.secret.clone(),
                renew_at: now + (life - ahead),
            });
            Ok(token.secret)
        }
        .boxed()
        .shared()
    }

    fn state(&self) -> MutexGuard<'_, TokenState> {
        lock(&self.0.state)
    }
}

fn lock(state: &Mutex<TokenState>) -> MutexGuard<'_, TokenState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for CachedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CachedTokens")
    }
}

/// The credential of a client.
#[derive(Clone, Debug)]
pub(in crate::client) enum Credential {
    /// No credential, for local servers.
    None,
    /// An API key.
    Key(Secret),
    /// Access tokens.
    Tokens(CachedTokens),
}

/// The credential of one request.
#[derive(Clone, Debug)]
pub(in crate::client) struct Granted {
    pub(in crate::client) secret: Option<Secret>,
}

impl Credential {
    pub(in crate::client) async fn grant(&self) -> Result<Granted, TokenError> {
        let secret = match self {
            Self::None => None,
            Self::Key(key) => Some(key.clone()),
            Self::Tokens(tokens) => Some(tokens.current().await?),
        };
        Ok(Granted { secret })
    }

    /// Reports that the service refused the credential. Returns whether to retry with another one.
    pub(in crate::client) fn refused(&self, granted: &Granted) -> bool {
        match (self, &granted.secret) {
            (Self::Tokens(tokens), Some(secret)) => tokens.refuse(secret),
            (Self::None | Self::Key(_) | Self::Tokens(_), _) => false,
        }
    }
}
