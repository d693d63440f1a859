//! Requests about what a service stores.

use bytes::Bytes;
use throughline_wire::compose::Delivery;

use super::super::VendorClient;
use super::super::answer::Head;
use super::super::dialect::{Route, StoredForm};
use super::super::send::Outgoing;
use super::super::stored_by::StoredBy;
use super::super::url::Base;
use crate::client::http::{HttpMethod, RequestBody};
use crate::client::{ClientError, ErrorKind};

/// How many requests one operation makes at most: a chain has one or more per answer.
const MOST_REQUESTS: usize = 10_000;

/// The requests of one operation.
pub(super) struct Fetch<'c> {
    pub(super) client: &'c VendorClient,
    pub(super) form: StoredForm,
    requests: usize,
    bytes: u64,
}

impl<'c> Fetch<'c> {
    pub(super) fn new(client: &'c VendorClient) -> Result<Self, ClientError> {
        let form = client.stored_form().ok_or_else(|| {
            client.setup("this service keeps no conversations that could be asked about")
        })?;
        Ok(Self {
            client,
            form,
            requests: 0,
            bytes: 0,
        })
    }

    /// The address of a stored answer.
    pub(super) fn answer(&self, id: &str) -> Result<Base, ClientError> {
        let path = match self.client.dialect.route {
            Route::Fixed(path) => path,
            // No such service stores answers.
            Route::PerModel => "",
        };
        self.address(path, id)
    }

    /// The address of a conversation.
    pub(super) fn conversation_address(&self, id: &str) -> Result<Base, ClientError> {
        self.address("/conversations", id)
    }

    fn address(&self, path: &str, id: &str) -> Result<Base, ClientError> {
        let base = self.client.base.clone().join(path).id(id);
        base.map_err(|problem| self.client.setup(problem))
    }

    /// The body at an address. Any status that is not a success is an error.
    pub(super) async fn get(&mut self, at: Base) -> Result<(Head, Bytes), ClientError> {
        self.get_for(at, StoredBy::Service(None)).await
    }

    /// The body of an answer to a call whose conversation is stored by this side.
    pub(super) async fn get_for(
        &mut self,
        at: Base,
        stored_by: StoredBy,
    ) -> Result<(Head, Bytes), ClientError> {
        self.send(HttpMethod::Get, at, stored_by).await
    }

    /// Deletes what is at an address.
    pub(super) async fn delete(&mut self, at: Base) -> Result<(Head, Bytes), ClientError> {
        let stored_by = StoredBy::Service(None);
        self.send(HttpMethod::Delete, at, stored_by).await
    }

    async fn send(
        &mut self,
        method: HttpMethod,
        at: Base,
        stored_by: StoredBy,
    ) -> Result<(Head, Bytes), ClientError> {
        let client = self.client;
        self.requests += 1;
        if self.requests > MOST_REQUESTS {
            let text = format!("the stored conversation takes more than {MOST_REQUESTS} requests");
            return Err(client.error(ErrorKind::TooLarge, &text));
        }
        let upstream = client.abilities.upstream.as_str();
        tracing::debug!(upstream, ?method, "request about a stored conversation");
        let outgoing = Outgoing {
            method,
            url: at.into_url(),
            body: RequestBody::default(),
            betas: None,
        };
        let mut answer = client
            .exchange(outgoing, Delivery::Whole, stored_by)
            .await?;
        let body = answer.whole().await?;
        self.bytes += body.len() as u64;
        let limit = client.bounds.stream_bytes;
        if self.bytes > limit {
            let text = format!("the stored conversation is larger than {limit} bytes");
            return Err(answer.head.error(ErrorKind::TooLarge, text));
        }
        Ok((answer.head, body))
    }
}
