use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use throughline_model::{Event, Response, Stop};
use throughline_wire::Loss;

use crate::client::{
    Abilities, ChatClient, ChatRequest, ClientError, EventStream, Layer, ModelList,
    StoredConversations, TokenCounter,
};

/// A layer that makes each model call published as soon as it is answered, instead of at the end of
/// its run.
///
/// It stores nothing itself: it sets the mark of a call with a complete answer
/// ([`ChatRequest::persist_call`]), for a stream before its end is passed on, and the agent
/// publishes calls whose mark is set. A layer of the application may do the same for the calls that
/// it chooses: it declares [`Abilities::persists_each_call`], and keeps a clone of
/// [`ChatRequest::persist`] until the end of a stream.
///
/// ```
/// use throughline::client::{ClientExt, PersistEachCall};
/// use throughline::{ChatClient, Demo};
///
/// let client = Demo::new().layer(PersistEachCall);
/// assert!(client.abilities().persists_each_call);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PersistEachCall;

impl Layer for PersistEachCall {
    fn around(self, inner: Arc<dyn ChatClient>) -> Arc<dyn ChatClient> {
        let abilities = Abilities {
            persists_each_call: true,
            ..inner.abilities().clone()
        };
        Arc::new(Persisting { inner, abilities })
    }
}

struct Persisting {
    inner: Arc<dyn ChatClient>,
    abilities: Abilities,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatClient for Persisting {
    fn abilities(&self) -> &Abilities {
        &self.abilities
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
        let response = self.inner.respond(request).await?;
        if is_whole(&response.stop) {
            request.persist_call();
        }
        Ok(response)
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let mark = request.persist.cloned();
        let events = self.inner.stream(request).await?;
        let marked = events.inspect(move |event| {
            if let (Ok(Event::Finished { stop, .. }), Some(mark)) = (event, &mark)
                && is_whole(stop)
            {
                mark.set();
            }
        });
        Ok(Box::pin(marked))
    }
}

/// Whether an answer with this stop reason is complete: failed answers are not history.
fn is_whole(stop: &Stop) -> bool {
    match stop {
        Stop::Done
        | Stop::ToolCalls
        | Stop::Length
        | Stop::ContentFilter
        | Stop::Refusal
        | Stop::Paused
        | Stop::Other(_) => true,
        Stop::Cut | Stop::InProgress | Stop::Failed | Stop::Cancelled => false,
    }
}
