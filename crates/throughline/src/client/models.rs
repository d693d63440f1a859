//! The models that a service lists.

use async_trait::async_trait;

use super::ClientError;

/// A service that says which models it has.
///
/// A client of such a service returns it from [`ChatClient::models`](crate::ChatClient::models). The
/// request goes past the layers around the client: it is not retried, and does not count for a
/// circuit breaker.
#[async_trait]
pub trait ModelList: Send + Sync {
    /// The names of all models that the key may use, as the service orders them. Asking again has no
    /// effect at the service.
    async fn list(&self) -> Result<Vec<String>, ClientError>;
}
