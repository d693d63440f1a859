use hyper::header::{ACCEPT, HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::http::uri::InvalidUri;
use hyper::{Method, Request};
use reqwest::Url;

use super::exchange::OutgoingBody;
use crate::client::http::AGENT;
use crate::client::http::transport::{HttpMethod, HttpRequest, TransportError, TransportFault};

/// The host, port and path of an address without TLS.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::client::http) struct Target {
    /// The host, as it is looked up.
    pub(super) host: String,
    /// The port.
    pub(super) port: u16,
    /// The value of the header `host`.
    pub(super) authority: String,
    /// The path and the query.
    path: String,
}

impl Target {
    /// The target of an address without TLS, user and password; none for any other.
    pub(in crate::client::http) fn of(url: &Url) -> Option<Self> {
        if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let host = url.host_str()?;
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Some(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port_or_known_default()?,
            authority,
            path,
        })
    }

    /// A request to this target with these headers. hyper adds the length of the body.
    pub(super) fn request(
        &self,
        headers: HeaderMap,
        request: &HttpRequest,
    ) -> Result<Request<OutgoingBody>, TransportError> {
        let refused =
            |error: hyper::http::Error| TransportError::new(TransportFault::Request, error);
        let mut all = HeaderMap::with_capacity(headers.len() + 4);
        for (name, value) in [
            (HOST, &*self.authority),
            (USER_AGENT, AGENT),
            (ACCEPT, "*/*"),
        ] {
            if !headers.contains_key(&name) {
                let value = HeaderValue::from_str(value);
                all.insert(name, value.map_err(|error| refused(error.into()))?);
            }
        }
        all.extend(headers);
        let mut outgoing = Request::new(OutgoingBody::new(&request.body));
        *outgoing.method_mut() = match request.method {
            HttpMethod::Delete => Method::DELETE,
            HttpMethod::Get => Method::GET,
            HttpMethod::Post => Method::POST,
        };
        let uri = self.path.parse();
        *outgoing.uri_mut() = uri.map_err(|error: InvalidUri| refused(error.into()))?;
        *outgoing.headers_mut() = all;
        Ok(outgoing)
    }
}
