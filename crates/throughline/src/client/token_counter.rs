//! Services that count the tokens of a request.

use async_trait::async_trait;

use super::{ChatRequest, ClientError};

/// A service that counts the tokens of a request without answering it.
///
/// A client of such a service returns it from
/// [`ChatClient::token_counter`](crate::ChatClient::token_counter). The request goes past the layers
/// around the client: it is not retried, and does not count for a circuit breaker.
#[async_trait]
pub trait TokenCounter: Send + Sync {
    /// The tokens of the input of a request: instructions, conversation and tools, as the service
    /// would bill them. Asking again has no effect at the service.
    async fn count(&self, request: &ChatRequest<'_>) -> Result<u64, ClientError>;
}
