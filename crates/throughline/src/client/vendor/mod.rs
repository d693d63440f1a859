//! Clients for vendors: one client, and for each vendor a [`Dialect`] that says how it differs.
//!
//! What a body means is the business of `throughline-wire`; here is how requests are signed and
//! sent, how answers are read as they come, and what every way of failing is called.

mod answer;
mod ask;
mod builder;
mod dialect;
mod failure;
mod keep;
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
use throughline_wire::Codec;
use throughline_wire::compose::{Delivery, TokenLimit};
use throughline_wire::render::{Options, Target};

use super::http::{Credential, Header, Timeouts, Transport};
use super::{Abilities, ChatClient, ChatRequest, ClientError, EventStream};

use answer::Media;
pub use builder::{Bounds, ClientBuilder};
use dialect::Dialect;
pub use dialect::EndMark;
use stream::Reader;
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
    target: Target,
    options: Options,
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
    async fn fold(&self, mut reader: Reader) -> Result<Response, ClientError> {
        let mut fold = Fold::new();
        while let Some(event) = reader.next().await? {
            fold.push(event);
        }
        Ok(fold.finish())
    }
}

#[async_trait]
impl ChatClient for VendorClient {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let mut answer = self.ask(request, Delivery::Whole).await?;
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

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let mut answer = self.ask(request, Delivery::Streamed).await?;
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
}
