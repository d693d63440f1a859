//! What a service that stores conversations can be asked besides model calls.

use async_trait::async_trait;
use throughline_model::json::RawJson;
use throughline_model::{Message, Response};

use super::ClientError;

/// The conversations that a service stores: read back, deleted, and asked for answers that were
/// under way when a process died.
///
/// A client whose service stores conversations returns it from
/// [`ChatClient::conversations`](crate::ChatClient::conversations). An id is what the service gave
/// in [`Response::service`]. It names either a conversation, or an answer together with all answers
/// that it continues (a chain).
///
/// ```no_run
/// use throughline::{ChatClient, OpenAi};
/// use throughline::client::VendorDeletion;
///
/// # async fn run() -> Result<(), throughline::client::ClientError> {
/// let client = OpenAi::responses("gpt-5").api_key_from_env()?.build()?;
/// if let Some(stored) = client.conversations() {
///     let messages = stored.read("resp_1").await?;
///     println!("{} messages", messages.len());
///     let done = stored.delete("resp_1").await?;
///     assert_eq!(done, VendorDeletion::Deleted);
/// }
/// # Ok(())
/// # }
/// ```
///
/// Each operation may make several requests. They go past the layers around a client: no operation
/// is retried, and none counts for a circuit breaker. All may be called again after an error.
#[async_trait]
pub trait StoredConversations: Send + Sync {
    /// Reads the messages that the service has under an id, oldest first.
    ///
    /// An id that the service does not have is [`ErrorKind::NotFound`](super::ErrorKind::NotFound),
    /// and so is a chain of which an earlier answer is gone.
    async fn read(&self, id: &str) -> Result<Vec<Message>, ClientError>;

    /// Deletes what the service has under an id. Deleting what is gone already is no error.
    ///
    /// Of a chain only the named answer is deleted, for another conversation may continue those
    /// before it. With a conversation only the conversation is deleted; a service may keep its
    /// answers until they expire.
    async fn delete(&self, id: &str) -> Result<VendorDeletion, ClientError>;

    /// Asks what became of a call, by the handle of its
    /// [`Event::Accepted`](throughline_model::Event::Accepted). Asking again has no effect at the
    /// service. That the service cannot be reached is an error, and says nothing about the call.
    async fn look_up(&self, handle: &RawJson) -> Result<CallStatus, ClientError>;
}

/// What became of a call that a service had accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The service still works on it; ask again later.
    Running,
    /// The answer is whole.
    Answered(Box<Response>),
    /// The service has no whole answer, and will have none: the call failed, was cut off or
    /// cancelled there, or is unknown. It has to be made again.
    Lost {
        /// Why, in the words of the service where it has any.
        reason: String,
    },
}

/// What became of a vendor's copy that was to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VendorDeletion {
    /// The service deleted it.
    Deleted,
    /// The service did not have it (any more).
    Absent,
    /// The service has no way to delete it.
    Unsupported,
}

impl VendorDeletion {
    /// The word in receipts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Absent => "absent",
            Self::Unsupported => "unsupported",
        }
    }
}
