use std::error::Error;
use std::fmt;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;

use super::request_body::RequestBody;
use crate::client::{ErrorKind, Secret, TimeoutPhase};

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HttpMethod {
    /// `DELETE`.
    Delete,
    /// `GET`.
    Get,
    /// `POST`.
    Post,
}

/// The value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderValue {
    /// A public value.
    Plain(String),
    /// A key or token with its prefix, such as `Bearer `. Must be sent as sensitive.
    Secret(&'static str, Secret),
}

/// A header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name, in lower case.
    pub name: String,
    /// The value.
    pub value: HeaderValue,
}

impl Header {
    /// A header with a public value.
    pub fn plain(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: HeaderValue::Plain(value.into()),
        }
    }

    /// A header with a secret value.
    pub fn secret(name: impl Into<String>, before: &'static str, secret: Secret) -> Self {
        Self {
            name: name.into(),
            value: HeaderValue::Secret(before, secret),
        }
    }
}

/// A request.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: HttpMethod,
    /// The address.
    pub url: String,
    /// The headers.
    pub headers: Vec<Header>,
    /// The body.
    pub body: RequestBody,
}

impl fmt::Debug for HttpRequest {
    /// Prints neither the body nor the query of the address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &self.url.split('?').next().unwrap_or_default())
            .field("headers", &self.headers)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

/// The body of a response. A body that breaks off ends with an error.
pub type Body = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// The head of a response, and its body to be read.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
}

impl HttpResponse {
    /// The first value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Sends requests. A transport has one connection pool and may serve many clients.
///
/// It must not follow redirects, because a key must not be sent to the target of a redirect.
/// Dropping the future or the body aborts the request.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request and waits for the head of the response, whatever its status.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError>;
}

/// The kind of a transport error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransportFault {
    /// No connection could be made.
    Connect,
    /// No connection was made in time.
    ConnectTimeout,
    /// The connection ended before the response did.
    Cut,
    /// The request cannot be sent.
    Request,
}

/// A request without a complete response. Never contains an address or a header.
#[derive(Debug)]
pub struct TransportError {
    fault: TransportFault,
    source: Box<dyn Error + Send + Sync>,
}

impl TransportError {
    /// An error. `source` must contain neither the address nor a header.
    pub fn new(fault: TransportFault, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            fault,
            source: source.into(),
        }
    }

    /// A header whose name or value cannot be sent.
    pub(super) fn header(what: &str, header: &Header) -> Self {
        let text = format!("the {what} of header {} cannot be sent", header.name);
        Self::new(TransportFault::Request, text)
    }

    /// The kind of the error.
    pub fn fault(&self) -> TransportFault {
        self.fault
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self.fault {
            TransportFault::Connect => ErrorKind::Connect,
            TransportFault::ConnectTimeout => ErrorKind::Timeout(TimeoutPhase::Connect),
            TransportFault::Cut => ErrorKind::Cut,
            TransportFault::Request => ErrorKind::Setup,
        }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.fault {
            TransportFault::Connect => "no connection",
            TransportFault::ConnectTimeout => "no connection in time",
            TransportFault::Cut => "the connection ended before the answer did",
            TransportFault::Request => "the request cannot be sent",
        })
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source: &(dyn Error + 'static) = &*self.source;
        Some(source)
    }
}
