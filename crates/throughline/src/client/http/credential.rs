//! What requests are signed with: a key, or tokens that do not live long.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::time::Instant;

use crate::client::Secret;

/// A token and how long it is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The token.
    pub secret: Secret,
    /// How long from now, if that is known.
    pub valid_for: Option<Duration>,
}

/// Why there is no token. The message must not hold one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TokenError {
    /// What went wrong and what to do about it.
    pub message: String,
}

impl TokenError {
    /// An error. The message must not hold a token.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// Where tokens come from.
///
/// Each call gets a fresh token; [`CachedTokens`], which the builders put around every provider,
/// keeps it until shortly before it ends. Dropping the future must leave nothing behind.
#[async_trait]
pub trait TokenProvider: Send + Sync {
    /// A fresh token.
    async fn token(&self) -> Result<Token, TokenError>;
}

/// Keeps the token of a provider: fetches a new one ahead of its end, one at a time however many
/// ask, and at once when a service has refused it.
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
    /// When a token was last thrown away because a service refused it.
    refused: Option<Instant>,
}

struct Held {
    secret: Secret,
    renew_at: Instant,
}

type Fetching = Shared<BoxFuture<'static, Result<Secret, TokenError>>>;

/// How long before its end a token is renewed, if it lives long enough.
const AHEAD: Duration = Duration::from_secs(300);
/// How long a token is kept that does not say how long it lives.
const UNKNOWN_LIFE: Duration = Duration::from_secs(300);
/// A service that refuses fresh tokens too does not get a new one for each request.
const BETWEEN_REFUSALS: Duration = Duration::from_secs(30);

impl CachedTokens {
    /// A cache around a provider.
    pub fn new(provider: Arc<dyn TokenProvider>) -> Self {
        Self(Arc::new(Cache {
            provider,
            state: Mutex::default(),
        }))
    }

    /// The token to use now.
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
        // Each waiting call drives the shared fetch, so it goes on if the call that began it was dropped.
        fetching.await
    }

    /// A service refused this token. Gives whether it is worth trying again with another.
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
            let life = token.valid_for.unwrap_or(UNKNOWN_LIFE);
            let ahead = AHEAD.min(life / 2);
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

/// What a client signs its requests with.
#[derive(Clone, Debug)]
pub(in crate::client) enum Credential {
    /// Nothing; a local server wants none.
    None,
    /// A key.
    Key(Secret),
    /// Tokens.
    Tokens(CachedTokens),
}

/// What one request is signed with.
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

    /// The service refused it. Gives whether to try once more with another.
    pub(in crate::client) fn refused(&self, granted: &Granted) -> bool {
        match (self, &granted.secret) {
            (Self::Tokens(tokens), Some(secret)) => tokens.refuse(secret),
            (Self::None | Self::Key(_) | Self::Tokens(_), _) => false,
        }
    }
}
