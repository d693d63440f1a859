//! Speaking to models: one trait, clients for every vendor, layers around them.

mod abilities;
mod demo;
mod error;
mod ext;
mod first_content;
#[cfg(feature = "http")]
mod http;
mod layer;
mod observe;
mod request;
mod secret;
mod services;
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
pub use observe::{ClientEvent, GiveUpReason, Observer};
pub(crate) use request::overhead;
pub use request::{ChatRequest, HistoryOwner, LossSink, PersistMark};
pub use secret::Secret;
pub use services::{SERVICE_STORAGE, ServiceStorage, Stability};
pub(crate) use throughline_wire::approval_answer;
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

/// The events of one model answer as they come. It ends after [`Event::Finished`]; an error is its
/// last item, and what came before it is not a whole answer.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<Event, ClientError>> + Send>>;

/// Something that answers a conversation: a vendor's model, a local one, a script.
///
/// A client of one's own declares its abilities and writes [`ChatClient::respond`]:
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
/// Both methods make one model call. A call that ended without saying so (a cut connection, an
/// answer of which the end mark is missing) is an error, never a short answer. Nothing is stored
/// here, and a caller may make the same call again. Dropping the future or the stream ends the call.
///
/// A request says who keeps the conversation ([`ChatRequest::history_owner`]). A client whose service keeps
/// none refuses [`HistoryOwner::Service`] before anything is sent, with [`ErrorKind::Setup`]; one whose
/// service kept it says so in [`Response::service`], asked for or not.
///
/// [`ChatClient::stream`] and [`ChatClient::respond`] are two readings of one answer: folding the
/// events gives the response.
#[async_trait]
pub trait ChatClient: Send + Sync {
    /// What it can do.
    fn abilities(&self) -> &Abilities;

    /// What of a request the service cannot be told: settings that it does not have, tools that it
    /// cannot run, contents that it does not take. Nothing is sent. Layers pass the question on.
    fn unsupported(&self, request: &ChatRequest<'_>) -> Vec<Loss> {
        let _ = request;
        Vec::new()
    }

    /// Ask, and wait for the whole answer.
    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError>;

    /// Ask, and get the answer as it comes. Without an implementation of its own, a client gives the
    /// events of the whole answer once it has come.
    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let events = self.respond(request).await?.events();
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

/// Something to put around a client: retries, telemetry, whatever sees requests and answers.
pub trait Layer {
    /// The client with this around it.
    fn around(self, inner: std::sync::Arc<dyn ChatClient>) -> std::sync::Arc<dyn ChatClient>;
}
