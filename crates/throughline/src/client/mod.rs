//! Model clients: one trait, clients for every vendor, and layers around them.

mod abilities;
mod conversations;
mod demo;
mod error;
mod ext;
mod first_content;
#[cfg(feature = "http")]
mod http;
mod layer;
mod models;
mod observe;
mod request;
mod secret;
mod services;
mod token_counter;
#[cfg(feature = "http")]
mod vendor;

#[cfg(test)]
mod fake;
mod updates;

use std::pin::Pin;

use async_trait::async_trait;
use futures_util::{Stream, stream};
use throughline_model::{Event, Response};

pub use abilities::{Abilities, StoresHistory};
pub use conversations::{CallStatus, StoredConversations, VendorDeletion};
pub use demo::Demo;
pub use error::{ClientError, ErrorKind, TimeoutPhase};
pub use ext::ClientExt;
#[cfg(feature = "http")]
pub use http::{
    Body as HttpBody, CachedTokens, CommandTokens, Header, HeaderValue, HttpMethod, HttpRequest,
    HttpResponse, HttpSettings, HttpTransport, ProxyChoice, RequestBody, Timeouts, Token,
    TokenError, TokenProvider, Transport, TransportError, TransportFault,
};
pub use layer::{
    Breaker, BreakerPolicy, BreakerState, Compacts, PersistEachCall, Retry, RetryPolicy,
};
pub use models::ModelList;
pub use observe::{ClientEvent, GiveUpReason, Observer};
pub(crate) use request::overhead;
pub use request::{ChatRequest, HistoryOwner, LossSink, PersistMark};
pub use secret::Secret;
pub use services::{SERVICE_STORAGE, ServiceStorage, Stability};
pub(crate) use throughline_wire::approval_answer;
pub use token_counter::TokenCounter;
pub use updates::{Update, Updates};
#[cfg(feature = "http")]
pub use vendor::{
    Anthropic, Bounds, ClientBuilder, EndMark, Foundry, Gemini, HistoryForm, OpenAi, VendorClient,
};

pub use crate::memory::{MemoryBudget, OutOfMemory, Reservation};
pub use crate::prompt::{MOST_LOSSES, Rendering, View};
#[cfg(feature = "http")]
pub use throughline_wire::compose::TokenLimit;
pub use throughline_wire::render::{
    self, Markers, MarkersError, Native, Target, TextEmbed, ToolHistoryStrategy,
};
pub use throughline_wire::{Loss, LossKind};

/// The events of one model answer. The stream ends after [`Event::Finished`]; an error is its last
/// item, and the events before an error are not a complete answer.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<Event, ClientError>> + Send>>;

/// A client that calls a model: a vendor's, a local one, or a script.
///
/// A custom client declares its abilities and implements [`ChatClient::respond`]:
///
/// ```
/// use async_trait::async_trait;
/// use throughline::model::{Message, Response};
/// use throughline::client::{Abilities, ChatRequest, ClientError};
/// use throughline::ChatClient;
///
/// struct Echo(Abilities);
///
/// #[async_trait]
/// impl ChatClient for Echo {
///     fn abilities(&self) -> &Abilities {
///         &self.0
///     }
///
///     async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
///         let last = request.messages().last().map(|message| message.text());
///         Ok(Message::assistant(last.unwrap_or_default()).into())
///     }
/// }
/// ```
///
/// Both methods make one model call. A call that ended without saying so (a broken connection, an
/// answer without its end mark) is an error, never a short answer. A client stores nothing, and the
/// caller may repeat a call. Dropping the future or the stream ends the call.
///
/// A request says which side stores the conversation ([`ChatRequest::history_owner`]). A client
/// whose service stores none refuses [`HistoryOwner::Service`] before anything is sent, with
/// [`ErrorKind::Setup`]; a client whose service stored the conversation sets [`Response::service`],
/// whether that was requested or not.
///
/// [`ChatClient::stream`] and [`ChatClient::respond`] must give the same answer: folding the events
/// of the stream gives the response.
#[async_trait]
pub trait ChatClient: Send + Sync {
    /// What the client can do.
    fn abilities(&self) -> &Abilities;

    /// What the service cannot be sent of a request: settings that it does not have, tools that it
    /// cannot run, contents that it does not accept. Nothing is sent. Layers forward the call.
    fn unsupported(&self, request: &ChatRequest<'_>) -> Vec<Loss> {
        let _ = request;
        Vec::new()
    }

    /// The conversations that the service stores, if it can be asked about them. Layers forward the
    /// call.
    fn conversations(&self) -> Option<&dyn StoredConversations> {
        None
    }

    /// The models that the service lists, if it can be asked for them. Layers forward the call.
    fn models(&self) -> Option<&dyn ModelList> {
        None
    }

    /// The service's own count of tokens, if it can be asked for one. Layers forward the call.
    fn token_counter(&self) -> Option<&dyn TokenCounter> {
        None
    }

    /// Calls the model, and waits for the whole answer.
    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError>;

    /// Calls the model, and returns the answer as it arrives. The default returns the events of the
    /// whole answer once it has arrived.
    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let events = self.respond(request).await?.events();
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

/// A wrapper around a client that sees its requests and answers: retries, telemetry.
pub trait Layer {
    /// Wraps a client.
    fn around(self, inner: std::sync::Arc<dyn ChatClient>) -> std::sync::Arc<dyn ChatClient>;
}
