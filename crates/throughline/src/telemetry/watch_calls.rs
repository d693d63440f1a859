//! Spans and metrics of model calls that no agent makes.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use throughline_model::{Event, Fold, Response};
use throughline_wire::Loss;
use tracing::Instrument;

use super::call::CallSpan;
use super::words::provider;
use super::{CallWatch, Metrics, Recording, Streaming, Telemetry};
use crate::client::{
    Abilities, ChatClient, ChatRequest, ClientError, EventStream, Layer, ModelList,
    StoredConversations, TokenCounter,
};

/// A layer that records each model call as a span and in metrics, for calls without an agent; an
/// agent records its own. It belongs outside of retries, so that a call and its retries count once.
///
/// ```
/// use throughline::client::ClientExt;
/// use throughline::telemetry::{Metrics, WatchCalls};
/// use throughline::{ChatClient, Demo};
///
/// let client = Demo::new().layer(WatchCalls::new(Metrics::new()));
/// assert_eq!(client.abilities().upstream, "demo");
/// ```
#[derive(Clone, Debug)]
pub struct WatchCalls {
    telemetry: Telemetry,
}

impl WatchCalls {
    /// Records calls in these metrics. Spans have names, numbers and kinds only.
    pub fn new(metrics: Metrics) -> Self {
        Self {
            telemetry: Telemetry::of("", Recording::Bare, Some(metrics)),
        }
    }
}

impl Layer for WatchCalls {
    fn around(self, inner: Arc<dyn ChatClient>) -> Arc<dyn ChatClient> {
        Arc::new(WatchedClient {
            inner,
            telemetry: self.telemetry,
        })
    }
}

struct WatchedClient {
    inner: Arc<dyn ChatClient>,
    telemetry: Telemetry,
}

/// A streamed call. Dropping it before its end records that it was cut off.
struct WatchedStream {
    client: Arc<dyn ChatClient>,
    telemetry: Telemetry,
    model: Option<String>,
    /// Taken when the end is recorded.
    span: Option<CallSpan>,
    fold: Fold,
}

impl WatchedStream {
    fn note(&mut self, event: &Result<Event, ClientError>) {
        match event {
            Ok(event) => {
                if let Some(span) = &self.span {
                    span.event();
                }
                // Content is not recorded, so it is not gathered either.
                if matches!(event, Event::Started { .. } | Event::Finished { .. }) {
                    self.fold.push(event.clone());
                }
                if self.fold.is_over() {
                    let response = std::mem::take(&mut self.fold).finish();
                    self.end(|watch| watch.answered(&response));
                }
            }
            Err(error) => self.end(|watch| watch.failed(error)),
        }
    }

    fn end(&mut self, record: impl FnOnce(&CallWatch<'_>)) {
        let Some(span) = self.span.take() else {
            return;
        };
        let abilities = self.client.abilities();
        let model = self.model.as_deref().or(abilities.model.as_deref());
        record(&CallWatch::of(
            &self.telemetry,
            (provider(abilities), model),
            span,
        ));
    }
}

impl Drop for WatchedStream {
    fn drop(&mut self) {
        self.end(|watch| watch.cut("cancelled"));
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatClient for WatchedClient {
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
        let abilities = self.inner.abilities();
        let watch = self
            .telemetry
            .call(abilities, request, request.model, Streaming::Whole);
        let answer = self.inner.respond(request).instrument(watch.span()).await;
        match &answer {
            Ok(response) => watch.answered(response),
            Err(error) => watch.failed(error),
        }
        answer
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let abilities = self.inner.abilities();
        let watch = self
            .telemetry
            .call(abilities, request, request.model, Streaming::Streamed);
        let events = self.inner.stream(request).instrument(watch.span()).await;
        let events = events.inspect_err(|error| watch.failed(error))?;
        let watched = WatchedStream {
            client: Arc::clone(&self.inner),
            telemetry: self.telemetry.clone(),
            model: request.model.map(str::to_owned),
            span: Some(watch.into_span()),
            fold: Fold::new(),
        };
        let events = stream::unfold((events, watched), |(mut events, mut watched)| async move {
            let event = events.next().await?;
            watched.note(&event);
            Some((event, (events, watched)))
        });
        Ok(Box::pin(events))
    }
}
