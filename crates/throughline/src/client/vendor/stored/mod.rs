//! Conversations that a service stores: read, deleted, and asked for answers.
//!
//! Every operation uses the same addresses, credentials, timeouts and error kinds as model calls.
//! Nothing is repeated here: all operations may be called again after an error.

mod delete;
mod fetch;
mod handle;
mod look_up;
mod pages;
mod read;
mod stored_answer;

use async_trait::async_trait;
use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_wire::render::ChainAt;

use super::VendorClient;
use super::stored_by::chain_at;
use crate::client::{CallStatus, ClientError, StoredConversations, VendorDeletion};
use fetch::Fetch;
pub(super) use handle::Handle;

#[async_trait]
impl StoredConversations for VendorClient {
    async fn read(&self, id: &str) -> Result<Vec<Message>, ClientError> {
        let mut fetch = Fetch::new(self)?;
        match chain_at(fetch.form, id) {
            ChainAt::Conversation(id) => fetch.conversation(&id).await,
            ChainAt::Response(id) => fetch.chain(id).await,
        }
    }

    async fn delete(&self, id: &str) -> Result<VendorDeletion, ClientError> {
        let mut fetch = Fetch::new(self)?;
        match chain_at(fetch.form, id) {
            ChainAt::Conversation(id) => fetch.delete_conversation(&id).await,
            ChainAt::Response(id) => fetch.delete_answer(&id).await,
        }
    }

    async fn look_up(&self, handle: &RawJson) -> Result<CallStatus, ClientError> {
        let handle = Handle::parse(handle).ok_or_else(|| {
            self.setup("this handle names no answer of this client: look it up where it came from")
        })?;
        Fetch::new(self)?.status(handle).await
    }
}
