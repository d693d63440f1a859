//! Clients for vendors: one client, and for each vendor a [`Dialect`] that says how it differs.
//!
//! What a body means is the business of `throughline-wire`; here is how requests are signed and
//! sent, how answers are read as they come, and what every way of failing is called.

mod answer;
mod answer_memory;
mod ask;
mod builder;
mod dialect;
mod failure;
mod figures;
mod form;
mod keep;
mod refused;
mod setup;
mod stream;
mod url;
mod vendors;
mod whole;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::unfold;
use throughline_model::{Event, Fold, Response};
use throughline_wire::compose::{Delivery, TokenLimit};
use throughline_wire::render::Target;
use throughline_wire::{Codec, Loss};

use super::first_content::wait_for_content;
use super::http::{Credential, Header, Timeouts, Transport};
use super::observe::{ClientEvent, ObserverHandle};
use super::{Abilities, ChatClient, ChatRequest, ClientError, EventStream, HistoryOwner};
use crate::memory::MemoryBudget;

use answer::Media;
pub use builder::{Bounds, ClientBuilder};
use dialect::Dialect;
pub use dialect::EndMark;
pub use form::HistoryForm;
use form::{Behind, Forms, Shown};
use stream::EventReader;
use url::Base;
pub use vendors::{Anthropic, Foundry, Gemini, OpenAi};

/// A client for a vendor, without any layer around it. See [`ClientBuilder`].
pub struct VendorClient {
    dialect: &'static Dialect,
    codec: &'static dyn Codec,
    abilities: Abilities,
    model: Option<String>,
    base: Base,
    headers: Vec<Header>,
    credential: Credential,
    transport: Arc<dyn Transport>,
    timeouts: Timeouts,
    bounds: Bounds,
    memory: Option<MemoryBudget>,
    target: Target,
    /// How earlier calls and results are shown.
    history: Forms,
    watch: ObserverHandle,
    token_limit: TokenLimit,
    end_mark: EndMark,
    /// Whether requests name a model; agents have their own.
    names_model: bool,
    /// Members that every body for an agent has.
    members: Vec<(&'static str, String)>,
}

impl fmt::Debug for VendorClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VendorClient")
            .field("abilities", &self.abilities)
            .field("base", &self.base)
            .field("credential", &self.credential)
            .field("timeouts", &self.timeouts)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

impl VendorClient {
    /// Read an event stream to its end.
    async fn fold(&self, mut reader: EventReader) -> Result<Response, ClientError> {
        let mut fold = Fold::new();
        while let Some(event) = reader.next().await? {
            fold.push(event);
        }
        Ok(fold.finish())
    }

    async fn respond_as(
        &self,
        request: &ChatRequest<'_>,
        form: Shown,
    ) -> Result<Response, ClientError> {
        let mut answer = self.ask(request, Delivery::Whole, form).await?;
        match answer.media() {
            Media::Json | Media::Unsaid => {
                let body = answer.whole().await?;
                whole::read(self.codec, &answer.head, &body)
            }
            // Some servers know no other way to answer.
            Media::Events => self.fold(self.reader(answer)).await,
            Media::Other => Err(answer.head.unreadable()),
        }
    }

    async fn stream_as(
        &self,
        request: &ChatRequest<'_>,
        form: Shown,
    ) -> Result<EventStream, ClientError> {
        let mut answer = self.ask(request, Delivery::Streamed, form).await?;
        let media = answer.media();
        let is_json = match media {
            Media::Json => true,
            Media::Events => false,
            Media::Unsaid => answer.looks_like_json().await?,
            Media::Other => return Err(answer.head.unreadable()),
        };
        if !is_json {
            let events = unfold(Some(self.reader(answer)), |reader| async move {
                let mut reader = reader?;
                match reader.next().await {
                    Ok(event) => Some((Ok(event?), Some(reader))),
                    Err(error) => Some((Err(error), None)),
                }
            });
            return Ok(Box::pin(events));
        }
        // Some servers answer as a whole whatever one asks for.
        let body = answer.whole().await?;
        let response = whole::read(self.codec, &answer.head, &body)?;
        let events: Vec<Result<Event, ClientError>> =
            response.events().into_iter().map(Ok).collect();
        Ok(Box::pin(futures_util::stream::iter(events)))
    }

    /// The events of a request that may be made again in another form: nothing of them is handed
    /// out before the answer has begun.
    async fn begin_as(
        &self,
        request: &ChatRequest<'_>,
        form: Shown,
    ) -> Result<EventStream, ClientError> {
        wait_for_content(self.stream_as(request, form).await?).await
    }

    /// In which form to ask, and whether there is another one should it be refused.
    fn form(&self, request: &ChatRequest<'_>) -> (Shown, bool) {
        let behind = match request.history_owner {
            HistoryOwner::Service { id: Some(_) } => Behind::Calls,
            HistoryOwner::Service { id: None } | HistoryOwner::Caller => Behind::Nothing,
        };
        let form = self.history.first(self.model_of(request), behind);
        let another = self.history.has_another(form, behind) && request.view.has_tools();
        (form, another)
    }

    /// Whether the service refuses calls and results as its own items, and nothing else.
    fn refuses_items(&self, error: &ClientError) -> bool {
        let row = refused::known(&self.dialect.wire, error);
        if let Some(row) = row {
            let upstream = self.abilities.upstream.as_str();
            tracing::debug!(upstream, by = row.name, "tool history refused");
        }
        row.is_some()
    }

    /// What a request comes to that was refused and then made again as text. If that did not help,
    /// the first refusal is the one to tell.
    fn settled<T>(
        &self,
        request: &ChatRequest<'_>,
        refused: ClientError,
        again: Result<T, ClientError>,
    ) -> (Shown, Result<T, ClientError>) {
        match again {
            Ok(answer) => {
                let model = self.model_of(request);
                self.history.took_text(model);
                let upstream = &self.abilities.upstream;
                self.watch
                    .report(&ClientEvent::FellBack { upstream, model });
                (Shown::Text, Ok(answer))
            }
            Err(error) => {
                let upstream = self.abilities.upstream.as_str();
                let kind = error.kind().as_str();
                tracing::debug!(upstream, kind, "tool history refused as text too");
                (Shown::Native, Err(refused))
            }
        }
    }

    /// Say on the span of the call in which form tool history was sent, if there was any.
    fn note(&self, request: &ChatRequest<'_>, form: Shown) {
        if request.view.has_tools() {
            tracing::Span::current().record("throughline.tool_history", form.as_str());
        }
    }
}

#[async_trait]
impl ChatClient for VendorClient {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn unsupported(&self, request: &ChatRequest<'_>) -> Vec<Loss> {
        self.losses(request)
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let (form, another) = self.form(request);
        let (form, answer) = match self.respond_as(request, form).await {
            Err(error) if another && self.refuses_items(&error) => {
                let again = self.respond_as(request, Shown::Text).await;
                self.settled(request, error, again)
            }
            answer => (form, answer),
        };
        self.note(request, form);
        answer
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let (form, another) = self.form(request);
        let events = match another {
            true => self.begin_as(request, form).await,
            false => self.stream_as(request, form).await,
        };
        let (form, events) = match events {
            Err(error) if another && self.refuses_items(&error) => {
                let again = self.begin_as(request, Shown::Text).await;
                self.settled(request, error, again)
            }
            events => (form, events),
        };
        self.note(request, form);
        events
    }
}
