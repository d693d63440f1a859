//! Asks what became of a call.

use throughline_model::VendorError;

use super::super::answer::Head;
use super::fetch::Fetch;
use super::handle::Handle;
use super::stored_answer::StoredAnswer;
use crate::client::{CallStatus, ClientError, ErrorKind};

impl Fetch<'_> {
    /// What became of an accepted call.
    pub(super) async fn status(&mut self, handle: Handle) -> Result<CallStatus, ClientError> {
        let at = self.answer(&handle.answer)?;
        let (head, body) = match self.get_for(at, handle.stored_by).await {
            Ok(answer) => answer,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let words = error.vendor().map(|error| error.message.clone());
                let words = words.filter(|words| !words.is_empty());
                let reason = words.unwrap_or_else(|| "the service does not have the answer".into());
                return Ok(CallStatus::Lost { reason });
            }
            Err(error) => return Err(error),
        };
        let answer = StoredAnswer::parse(self.form, &head, &body)?;
        let status = answer.status();
        match status.as_deref() {
            Some("queued" | "in_progress") => Ok(CallStatus::Running),
            None
            | Some(
                "completed"
                | "incomplete"
                | "requires_action"
                | "requires_continuation"
                | "budget_exceeded",
            ) => {
                let response = answer.response(self, &head)?;
                Ok(CallStatus::Answered(Box::new(response)))
            }
            Some(other) => {
                let error = answer.response(self, &head)?.error;
                let words = error.and_then(|error| words(&head, error));
                let reason = words.unwrap_or_else(|| format!("the service says: {other}"));
                Ok(CallStatus::Lost { reason })
            }
        }
    }
}

/// The words of an error, without the key that some services repeat.
fn words(head: &Head, error: VendorError) -> Option<String> {
    let error = head.vendor(error);
    let words = error.vendor().map(|error| error.message.clone());
    words.filter(|words| !words.is_empty())
}
