//! HTTP: how requests go out and what they are signed with. No vendor's rules here.

mod body;
mod command;
mod credential;
mod http1;
mod pieces;
mod settings;
mod transport;
mod wire;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub(super) use body::BodyReader;
pub use command::CommandTokens;
pub use credential::{CachedTokens, Token, TokenError, TokenProvider};
pub(super) use credential::{Credential, Granted};
pub use pieces::RequestBody;
pub use settings::{HttpSettings, ProxyChoice, Timeouts};
pub use transport::{
    Body, Header, HeaderValue, HttpMethod, HttpRequest, HttpResponse, Transport, TransportError,
    TransportFault,
};
pub use wire::HttpTransport;
use wire::response_headers;

/// What this process calls itself.
const AGENT: &str = concat!("throughline/", env!("CARGO_PKG_VERSION"));

/// How long an idle connection is kept.
const KEEP: Duration = Duration::from_secs(90);
