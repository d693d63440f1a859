//! Clients for vendors: one client, and a [`Dialect`] per vendor with its differences.
//!
//! `throughline-wire` encodes and decodes bodies. This module signs and sends requests, reads
//! responses as they arrive, and maps failures to error kinds.

mod accepted;
mod answer;
mod answer_memory;
mod builder;
mod count_tokens;
mod dialect;
mod failure;
mod history_form;
mod models;
mod native_refusals;
mod send;
mod setup;
mod stored;
mod stored_by;
mod stream;
mod token_counts;
mod url;
mod vendors;
mod whole;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::unfold;
use throughline_model::{Fold, Response};
use throughline_wire::compose::{Delivery, TokenLimit};
use throughline_wire::render::Target;
use throughline_wire::{Codec, Loss};

use super::first_content::wait_for_content;
use super::http::{Credential, Header, Timeouts, Transport};
use super::observe::{ClientEvent, ObserverHandle};
use super::{
    Abilities, ChatClient, ChatRequest, ClientError, EventStream, HistoryOwner, ModelList,
    StoredConversations, TokenCounter,
};
use crate::memory::MemoryBudget;

use answer::Media;
pub use builder::{Bounds, ClientBuilder};
use dialect::Dialect;
pub use dialect::EndMark;
pub use history_form::HistoryForm;
use history_form::{FormChooser, ItemForm, ServiceCalls};
use stream::EventReader;
use url::Base;
pub use vendors::{Anthropic, Foundry, Gemini, OpenAi};

/// A vendor client without layers. See [`ClientBuilder`].
pub struct VendorClient {
    dialect: &'static Dialect,
    codec: &'static Codec,
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
    /// The form in which earlier calls and results are sent.
    history: FormChooser,
    watch: ObserverHandle,
    token_limit: TokenLimit,
    end_mark: EndMark,
    /// Whether requests name a model; agents have their own.
    names_model: bool,
    /// Members of every request body for an agent.
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
    /// Reads an event stream to its end.
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
        form: ItemForm,
    ) -> Result<Response, ClientError> {
        let mut answer = self.send_request(request, Delivery::Whole, form).await?;
        match answer.media() {
            Media::Json | Media::Unknown => {
                let body = answer.whole().await?;
                whole::read(self.codec, &answer.head, &body)
            }
            // Some servers always answer with a stream.
            Media::Events => self.fold(self.reader(answer)).await,
            Media::Other => Err(answer.head.unreadable()),
        }
    }

    async fn stream_as(
        &self,
        request: &ChatRequest<'_>,
        form: ItemForm,
    ) -> Result<EventStream, ClientError> {
        let mut answer = self.send_request(request, Delivery::Streamed, form).await?;
        let media = answer.media();
        let is_json = match media {
            Media::Json => true,
            Media::Events => false,
            Media::Unknown => answer.looks_like_json().await?,
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
        // Some servers always answer with a whole body.
        let body = answer.whole().await?;
        let response = whole::read(self.codec, &answer.head, &body)?;
        let stored = stored_by::says_stored(response.vendor.as_ref());
        let mut events = response.events();
        accepted::insert(&answer.head, &mut events, || stored);
        let events = events.into_iter().map(Ok);
        Ok(Box::pin(futures_util::stream::iter(events)))
    }

    /// The events of a request that may be repeated in another form: nothing is returned before the
    /// answer has begun.
    async fn begin_as(
        &self,
        request: &ChatRequest<'_>,
        form: ItemForm,
    ) -> Result<EventStream, ClientError> {
        wait_for_content(self.stream_as(request, form).await?).await
    }

    /// The form of a request, and whether it may be repeated in another form.
    fn form(&self, request: &ChatRequest<'_>) -> (ItemForm, bool) {
        let service_calls = match request.history_owner {
            HistoryOwner::Service { id: Some(_) } => ServiceCalls::Present,
            HistoryOwner::Service { id: None } | HistoryOwner::Caller => ServiceCalls::Absent,
        };
        let form = self.history.first(self.model_of(request), service_calls);
        let another = self.history.has_another(form, service_calls) && request.view.has_tools();
        (form, another)
    }

    /// Whether the service refuses calls and results as native items, and nothing else.
    fn refuses_items(&self, error: &ClientError) -> bool {
        let row = native_refusals::matching_row(&self.dialect.wire, error);
        if let Some(row) = row {
            let upstream = self.abilities.upstream.as_str();
            tracing::debug!(upstream, by = row.name, "tool history refused");
        }
        row.is_some()
    }

    /// The result of a request that was refused and then repeated as text. If the repetition failed
    /// too, the first error is returned.
    fn settled<T>(
        &self,
        request: &ChatRequest<'_>,
        refused: ClientError,
        again: Result<T, ClientError>,
    ) -> (ItemForm, Result<T, ClientError>) {
        match again {
            Ok(answer) => {
                let model = self.model_of(request);
                self.history.accepted_text(model);
                let upstream = &self.abilities.upstream;
                self.watch
                    .report(&ClientEvent::FellBack { upstream, model });
                (ItemForm::Text, Ok(answer))
            }
            Err(error) => {
                let upstream = self.abilities.upstream.as_str();
                let kind = error.kind().as_str();
                tracing::debug!(upstream, kind, "tool history refused as text too");
                (ItemForm::Native, Err(refused))
            }
        }
    }

    /// Records the form of tool history on the span of the call, if there is any.
    fn note(&self, request: &ChatRequest<'_>, form: ItemForm) {
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

    fn conversations(&self) -> Option<&dyn StoredConversations> {
        self.stored_form().map(|_| {
            let stored: &dyn StoredConversations = self;
            stored
        })
    }

    fn models(&self) -> Option<&dyn ModelList> {
        self.dialect.models.map(|_| {
            let list: &dyn ModelList = self;
            list
        })
    }

    fn token_counter(&self) -> Option<&dyn TokenCounter> {
        self.dialect.counts.map(|_| {
            let counter: &dyn TokenCounter = self;
            counter
        })
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let (form, another) = self.form(request);
        let (form, answer) = match self.respond_as(request, form).await {
            Err(error) if another && self.refuses_items(&error) => {
                let again = self.respond_as(request, ItemForm::Text).await;
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
                let again = self.begin_as(request, ItemForm::Text).await;
                self.settled(request, error, again)
            }
            events => (form, events),
        };
        self.note(request, form);
        events
    }
}
