use std::error::Error;
use std::fmt;
use std::time::Duration;

use throughline_model::VendorError;

/// The kind of a failed model call: what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No connection could be made. Retry later.
    Connect,
    /// The service did not answer in time. Retry later.
    Timeout(TimeoutPhase),
    /// The connection ended in the middle of an answer. Retry.
    Cut,
    /// The service is rate limited. Retry after [`ClientError::retry_after`].
    RateLimited,
    /// The service is overloaded or failing (5xx). Retry later.
    Unavailable,
    /// The quota or the credit is used up, and waiting does not help.
    Quota,
    /// The API key is missing, wrong or not allowed. Fix the key.
    Auth,
    /// The model or endpoint does not exist. Fix the name.
    NotFound,
    /// The service does not accept the request. Fix the request.
    Invalid,
    /// The conversation does not fit into the context window. Compact it.
    TooLong,
    /// A content filter of the service refused the request.
    Filtered,
    /// The answer does not follow the format. A bug on one side.
    Malformed,
    /// The answer is larger than a configured bound.
    TooLarge,
    /// There is no memory for the answer in this process. Retry later.
    OutOfMemory,
    /// The circuit breaker is open, because the service failed too often. Retry after
    /// [`ClientError::retry_after`].
    Open,
    /// The client is not configured for this request.
    Setup,
}

/// The phase of a call that timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeoutPhase {
    /// Waiting for a connection.
    Connect,
    /// Waiting for the first byte of the answer.
    FirstByte,
    /// Waiting for the next byte of the answer.
    Idle,
}

impl ErrorKind {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout(TimeoutPhase::Connect) => "connect_timeout",
            Self::Timeout(TimeoutPhase::FirstByte) => "first_byte_timeout",
            Self::Timeout(TimeoutPhase::Idle) => "idle_timeout",
            Self::Cut => "cut",
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::NotFound => "not_found",
            Self::Invalid => "invalid",
            Self::TooLong => "too_long",
            Self::Filtered => "filtered",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::OutOfMemory => "out_of_memory",
            Self::Open => "open",
            Self::Setup => "setup",
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(self) -> bool {
        match self {
            Self::Connect
            | Self::Timeout(_)
            | Self::Cut
            | Self::RateLimited
            | Self::Unavailable
            | Self::OutOfMemory
            | Self::Open => true,
            Self::Quota
            | Self::Auth
            | Self::NotFound
            | Self::Invalid
            | Self::TooLong
            | Self::Filtered
            | Self::Malformed
            | Self::TooLarge
            | Self::Setup => false,
        }
    }
}

/// A failed model call. Never contains a key or a token.
pub struct ClientError(Box<Details>);

struct Details {
    kind: ErrorKind,
    upstream: String,
    message: String,
    status: Option<u16>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    should_retry: Option<bool>,
    vendor: Option<VendorError>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ClientError {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, upstream: &str, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            kind,
            upstream: upstream.to_owned(),
            message: message.into(),
            status: None,
            request_id: None,
            retry_after: None,
            should_retry: None,
            vendor: None,
            source: None,
        }))
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Sets the vendor's error.
    #[must_use]
    pub fn with_vendor(mut self, vendor: VendorError) -> Self {
        self.0.vendor = Some(vendor);
        self
    }

    /// Sets the vendor's id of the request.
    #[must_use]
    pub fn with_request_id(mut self, id: Option<String>) -> Self {
        self.0.request_id = id;
        self
    }

    /// Sets the wait that the service asks for.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.0.retry_after = wait;
        self
    }

    /// Sets whether the service allows a retry.
    #[must_use]
    pub fn with_should_retry(mut self, word: Option<bool>) -> Self {
        self.0.should_retry = word;
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The name of the service.
    pub fn upstream(&self) -> &str {
        &self.0.upstream
    }

    /// The HTTP status, if there was a response.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The vendor's error, with its body.
    pub fn vendor(&self) -> Option<&VendorError> {
        self.0.vendor.as_ref()
    }

    /// The vendor's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How long to wait before a retry, if the service says so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the same request may be sent again: as the service says, or else by the kind.
    pub fn may_retry(&self) -> bool {
        self.0
            .should_retry
            .unwrap_or_else(|| self.0.kind.is_transient())
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = &self.0;
        write!(f, "{}: {}", details.upstream, details.message)?;
        if let Some(status) = details.status {
            write!(f, " (status {status})")?;
        }
        if let Some(id) = &details.request_id {
            write!(f, " (request {id})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientError")
            .field("kind", &self.0.kind)
            .field("upstream", &self.0.upstream)
            .field("message", &self.0.message)
            .field("status", &self.0.status)
            .field("request_id", &self.0.request_id)
            .field("retry_after", &self.0.retry_after)
            .field("vendor", &self.0.vendor)
            .field("source", &self.0.source)
            .finish()
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}
