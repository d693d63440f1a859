//! Deletes stored conversations.

use throughline_model::json::Value;

use super::super::url::Base;
use super::super::whole;
use super::fetch::Fetch;
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

    /// Deletes one answer. Those that it continues stay: other conversations may continue them too.
    pub(super) async fn delete_answer(&mut self, id: &str) -> Result<VendorDeletion, ClientError> {
        let at = self.answer(id)?;
        self.delete_at(at).await
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
