use std::error::Error;
use std::fmt;
use std::time::Duration;

use throughline_model::VendorError;

/// What went wrong with a model call, and so what a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No connection could be made. Again later.
    Connect,
    /// Nothing came for too long. Again later.
    Timeout(TimeoutPhase),
    /// The connection ended in the middle of an answer. Again.
    Cut,
    /// The service is rate limited. Again after [`ClientError::retry_after`].
    RateLimited,
    /// The service is overloaded or failing (5xx). Again later.
    Unavailable,
    /// The quota or the credit is used up, and waiting does not help.
    Quota,
    /// The key is missing, wrong or not allowed. Fix the key.
    Auth,
    /// No such model or endpoint. Fix the name.
    NotFound,
    /// The service does not accept the request. Fix the request.
    Invalid,
    /// The conversation does not fit the model's window. Compact it.
    TooLong,
    /// A filter of the service stopped the request.
    Filtered,
    /// The answer is not what the format says. A bug on one side.
    Malformed,
    /// The answer passes a bound that was set here.
    TooLarge,
    /// There is no memory here for the answer. Again later.
    OutOfMemory,
    /// The service failed so often that it is not asked for now. Again after
    /// [`ClientError::retry_after`].
    Open,
    /// The client is not set up for this.
    Setup,
}

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeoutPhase {
    /// A connection.
    Connect,
    /// The first byte of the answer.
    FirstByte,
    /// The next byte of the answer.
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

    /// Whether the very same request may succeed later.
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

/// A model call that failed. It never holds a key or a token.
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

    /// With what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// With the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// With the vendor's own error.
    #[must_use]
    pub fn with_vendor(mut self, vendor: VendorError) -> Self {
        self.0.vendor = Some(vendor);
        self
    }

    /// With the id under which the vendor can find the request.
    #[must_use]
    pub fn with_request_id(mut self, id: Option<String>) -> Self {
        self.0.request_id = id;
        self
    }

    /// With how long the service asks to wait.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.0.retry_after = wait;
        self
    }

    /// With the service's word on whether to try again.
    #[must_use]
    pub fn with_should_retry(mut self, word: Option<bool>) -> Self {
        self.0.should_retry = word;
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The service.
    pub fn upstream(&self) -> &str {
        &self.0.upstream
    }

    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The vendor's own error, its body included.
    pub fn vendor(&self) -> Option<&VendorError> {
        self.0.vendor.as_ref()
    }

    /// The id under which the vendor can find the request.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How long to wait before trying again, if the service said so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the very same request may be sent again: the service's word if it gave one, else by
    /// the kind.
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
