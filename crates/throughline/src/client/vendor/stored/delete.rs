//! Deletes stored conversations.

use throughline_model::json::Value;

use super::super::url::Base;
use super::super::whole;
use super::fetch::Fetch;
use super::stored_answer::StoredAnswer;
use crate::client::{ClientError, ErrorKind, VendorDeletion};

impl Fetch<'_> {
    /// Deletes a conversation. What becomes of its answers is up to the service.
    pub(super) async fn delete_conversation(
        &mut self,
        id: &str,
    ) -> Result<VendorDeletion, ClientError> {
        let at = self.conversation_address(id)?;
        self.delete_at(at).await
    }

    /// Deletes an answer and those that it continues.
    pub(super) async fn delete_chain(
        &mut self,
        newest: String,
    ) -> Result<VendorDeletion, ClientError> {
        let chain = self.chain_ids(newest).await?;
        let mut done = VendorDeletion::Absent;
        // The newest comes last: if an earlier deletion fails, the chain can still be walked.
        for id in chain.iter().rev() {
            let at = self.answer(id)?;
            match self.delete_at(at).await? {
                VendorDeletion::Deleted => done = VendorDeletion::Deleted,
                VendorDeletion::Absent => {}
                VendorDeletion::Unsupported => return Ok(VendorDeletion::Unsupported),
            }
        }
        Ok(done)
    }

    /// The ids of a chain, newest first, as far as the service still has it.
    async fn chain_ids(&mut self, newest: String) -> Result<Vec<String>, ClientError> {
        let mut chain: Vec<String> = Vec::new();
        let mut next = Some(newest);
        while let Some(id) = next {
            let at = self.answer(&id)?;
            next = match self.get(at).await {
                Ok((head, body)) => StoredAnswer::parse(self.form, &head, &body)?.previous(),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(chain),
                // A service may delete what it does not show.
                Err(error) if is_unsupported(&error) => None,
                Err(error) => return Err(error),
            };
            chain.push(id);
            next = next.filter(|id| !chain.contains(id));
        }
        Ok(chain)
    }

    async fn delete_at(&mut self, at: Base) -> Result<VendorDeletion, ClientError> {
        let (head, body) = match self.delete(at).await {
            Ok(answer) => answer,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(VendorDeletion::Absent),
            Err(error) if is_unsupported(&error) => return Ok(VendorDeletion::Unsupported),
            Err(error) => return Err(error),
        };
        // Some services answer with nothing.
        let refuses = !body.is_empty() && {
            let said = whole::parse(&head, &body)?;
            said.get("deleted").and_then(Value::as_bool) == Some(false)
        };
        match refuses {
            true => {
                let text = "the service says that it deleted nothing";
                Err(head.error(ErrorKind::Unavailable, text))
            }
            false => Ok(VendorDeletion::Deleted),
        }
    }
}

/// Whether the service does not have the operation.
fn is_unsupported(error: &ClientError) -> bool {
    matches!(error.status(), Some(405 | 501))
}
