//! HTTP: transports and credentials. Contains no vendor-specific rules.

mod command;
mod credential;
mod http1;
mod http_transport;
mod request_body;
mod response_body;
mod settings;
mod transport;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use command::CommandTokens;
pub use credential::{CachedTokens, Token, TokenError, TokenProvider};
pub(super) use credential::{Credential, Granted};
pub use http_transport::HttpTransport;
use http_transport::response_headers;
pub use request_body::RequestBody;
pub(super) use response_body::BodyReader;
pub use settings::{HttpSettings, ProxyChoice, Timeouts};
pub use transport::{
    Body, Header, HeaderValue, HttpMethod, HttpRequest, HttpResponse, Transport, TransportError,
    TransportFault,
};

/// The user agent.
const AGENT: &str = concat!("throughline/", env!("CARGO_PKG_VERSION"));

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
