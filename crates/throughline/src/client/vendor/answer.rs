//! The head of a response, and errors with its context.

use bytes::{Bytes, BytesMut};
use throughline_model::VendorError;
use throughline_wire::http::ResponseMeta;

use super::answer_memory::AnswerMemory;
use super::failure;
use super::stored_by::StoredBy;
use crate::client::http::BodyReader;
use crate::client::{ClientError, ErrorKind, Secret};

/// What is known of a response before its body.
pub(super) struct Head {
    pub(super) upstream: String,
    pub(super) status: u16,
    pub(super) meta: ResponseMeta,
    pub(super) content_type: Option<String>,
    /// The credential of the request: it is removed from error texts that repeat it.
    pub(super) secret: Option<Secret>,
    /// Which side stores the conversation.
    pub(super) stored_by: StoredBy,
    /// Whether the service can be asked for answers that it stored.
    pub(super) can_be_asked: bool,
}

/// The media type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Events,
    Other,
    /// The response has no content type.
    Unknown,
}

/// A response whose body has not been read.
pub(super) struct VendorAnswer {
    pub(super) head: Head,
    pub(super) body: BodyReader,
    /// A piece of the body that was read already.
    pub(super) first: Option<Bytes>,
    pub(super) memory: AnswerMemory,
}

impl VendorAnswer {
    pub(super) fn new(head: Head, body: BodyReader, memory: AnswerMemory) -> Self {
        Self {
            head,
            body,
            first: None,
            memory,
        }
    }

    pub(super) fn media(&self) -> Media {
        let Some(content_type) = &self.head.content_type else {
            return Media::Unknown;
        };
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        let kind = kind.to_ascii_lowercase();
        match kind.as_str() {
            "" => Media::Unknown,
            "application/json" => Media::Json,
            "text/event-stream" => Media::Events,
            other if other.ends_with("+json") => Media::Json,
            _ => Media::Other,
        }
    }

    /// Whether a body without a content type begins like JSON. Event streams never do.
    pub(super) async fn looks_like_json(&mut self) -> Result<bool, ClientError> {
        let piece = self.body.next().await;
        let piece = piece.map_err(|error| self.head.of(error))?;
        let start = piece
            .as_ref()
            .and_then(|piece| piece.iter().find(|byte| !byte.is_ascii_whitespace()));
        let is_json = matches!(start, Some(b'{' | b'['));
        self.first = piece;
        Ok(is_json)
    }

    /// Reads the whole body.
    pub(super) async fn whole(&mut self) -> Result<Bytes, ClientError> {
        let first = match self.first.take() {
            Some(first) => Some(first),
            None => self.piece().await?,
        };
        let Some(first) = first else {
            return Ok(Bytes::new());
        };
        self.memory.cover(first.len(), &self.head).await?;
        let Some(second) = self.piece().await? else {
            return Ok(first);
        };
        let mut whole = BytesMut::from(&first[..]);
        whole.extend_from_slice(&second);
        while let Some(piece) = self.piece().await? {
            self.memory
                .cover(whole.len() + piece.len(), &self.head)
                .await?;
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, ClientError> {
        let piece = self.body.next().await;
        piece.map_err(|error| self.head.of(error))
    }
}

impl Head {
    /// An error about this response.
    pub(super) fn error(&self, kind: ErrorKind, message: impl Into<String>) -> ClientError {
        self.of(ClientError::new(kind, &self.upstream, message))
    }

    /// Adds the context of the head to an error.
    pub(super) fn of(&self, error: ClientError) -> ClientError {
        error
            .with_status(self.status)
            .with_request_id(self.meta.request_id.clone())
    }

    /// Converts a vendor's error.
    pub(super) fn vendor(&self, error: VendorError) -> ClientError {
        failure::vendor_error(self, error)
    }

    /// The body is neither JSON nor an event stream.
    pub(super) fn unreadable(&self) -> ClientError {
        let kind = self.content_type.as_deref().unwrap_or("nothing");
        let kind: String = kind.chars().take(80).collect();
        let text = format!("the answer is {kind}, not JSON or an event stream");
        self.error(ErrorKind::Malformed, text)
    }
}
