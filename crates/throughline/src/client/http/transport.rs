use std::error::Error;
use std::fmt;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;

use super::request_body::RequestBody;
use crate::client::{ErrorKind, Secret, TimeoutPhase};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HttpMethod {
    /// Reads.
    Get,
    /// Sends a body.
    Post,
}

/// The value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderValue {
    /// Anyone may see it.
    Plain(String),
    /// A key or token with what stands before it, such as `Bearer `. Must be sent as sensitive.
    Secret(&'static str, Secret),
}

/// One header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: HeaderValue,
}

impl Header {
    /// A header that anyone may see.
    pub fn plain(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: HeaderValue::Plain(value.into()),
        }
    }

    /// A header with a secret.
    pub fn secret(name: impl Into<String>, before: &'static str, secret: Secret) -> Self {
        Self {
            name: name.into(),
            value: HeaderValue::Secret(before, secret),
        }
    }
}

/// One request.
#[derive(Clone)]
pub struct HttpRequest {
    /// What it does.
    pub method: HttpMethod,
    /// Where it goes.
    pub url: String,
    /// Its headers.
    pub headers: Vec<Header>,
    /// Its body.
    pub body: RequestBody,
}

impl fmt::Debug for HttpRequest {
    /// Neither the body nor what follows a question mark in the address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &self.url.split('?').next().unwrap_or_default())
            .field("headers", &self.headers)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

/// The body of an answer as it comes. A body that breaks off ends in an error.
pub type Body = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// The head of an answer, and its body to be read.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Names in lower case and values.
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

/// Sends requests. One transport holds one pool of connections and may serve many clients.
///
/// It follows no redirects: a key must not travel to where an answer points. Dropping the future or
/// the body ends the request.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Send a request and wait for the head of the answer, whatever its status.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError>;
}

/// What went wrong below HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransportFault {
    /// No connection.
    Connect,
    /// No connection in time.
    ConnectTimeout,
    /// The connection ended before the answer did.
    Cut,
    /// The request cannot be sent as it is.
    Request,
}

/// A request that got no answer, or not all of it. It never holds an address or a header.
#[derive(Debug)]
pub struct TransportError {
    fault: TransportFault,
    source: Box<dyn Error + Send + Sync>,
}

impl TransportError {
    /// An error. `source` must hold neither the address nor any header.
    pub fn new(fault: TransportFault, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            fault,
            source: source.into(),
        }
    }

    /// A header that cannot be sent, for its name or for its value.
    pub(super) fn header(what: &str, header: &Header) -> Self {
        let text = format!("the {what} of header {} cannot be sent", header.name);
        Self::new(TransportFault::Request, text)
    }

    /// What went wrong.
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
