use std::sync::Arc;

use async_trait::async_trait;
use throughline_model::Response;
use throughline_wire::Loss;

use super::{
    Abilities, ChatClient, ChatRequest, ClientError, EventStream, Layer, ModelList,
    StoredConversations, TokenCounter,
};

/// Convenience methods for every client.
pub trait ClientExt: ChatClient {
    /// Wraps this client in a layer. The last layer added is the outermost.
    ///
    /// ```
    /// use throughline::client::{Breaker, ClientExt, Retry};
    /// use throughline::{ChatClient, Demo};
    ///
    /// let client = Demo::new().layer(Breaker::default()).layer(Retry::default());
    /// assert_eq!(client.abilities().upstream, "demo");
    /// ```
    fn layer(self, layer: impl Layer) -> Arc<dyn ChatClient>
    where
        Self: Sized + 'static,
    {
        layer.around(Arc::new(self))
    }
}

impl<C: ChatClient + ?Sized> ClientExt for C {}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<C: ChatClient + ?Sized> ChatClient for Arc<C> {
    fn abilities(&self) -> &Abilities {
        (**self).abilities()
    }

    fn unsupported(&self, request: &ChatRequest<'_>) -> Vec<Loss> {
        (**self).unsupported(request)
    }

    fn conversations(&self) -> Option<&dyn StoredConversations> {
        (**self).conversations()
    }

    fn models(&self) -> Option<&dyn ModelList> {
        (**self).models()
    }

    fn token_counter(&self) -> Option<&dyn TokenCounter> {
        (**self).token_counter()
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        (**self).respond(request).await
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        (**self).stream(request).await
    }
}
