//! The tenant of a request, and refusal of cross-origin requests.
//!
//! With `auth = "open"` every client that can reach the address is let in as tenant `local`. The address is a
//! loopback one, so that only programs of this machine can; but a web page in a browser of this
//! machine can too, with requests of its own or by a name of its own that points to 127.0.0.1. Both
//! are recognised by what browsers always send: the page's `Origin`, and the name in `Host`.

use axum::body::Body;
use axum::extract::{FromRef, FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use throughline_store::TenantScope;

use crate::config::Auth;
use crate::error::ApiError;

/// The authenticated sender of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The tenant whose data it may see.
    pub scope: TenantScope,
}

impl<S> FromRequestParts<S> for Caller
where
    Auth: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(_parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Auth::from_ref(state) {
            Auth::Open => Ok(Self {
                scope: TenantScope::local(),
            }),
        }
    }
}

/// Middleware that refuses requests which a web page from elsewhere makes a browser send.
pub(crate) async fn guard(
    State(auth): State<Auth>,
    request: Request,
    next: Next,
) -> Response<Body> {
    match check(request.headers(), auth) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check(headers: &HeaderMap, auth: Auth) -> Result<(), ApiError> {
    match auth {
        Auth::Open => {}
    }
    let host = text(headers, &HOST)?;
    if let Some(host) = host
        && !is_local(host)
    {
        return Err(refused(format!(
            "This server is open to programs on its own machine only, and {host:?} is no name of \
             that; use 127.0.0.1 or localhost."
        )));
    }
    let Some(origin) = text(headers, &ORIGIN)? else {
        return Ok(());
    };
    let from = origin.split_once("://").map(|(_, host)| host);
    match from {
        Some(from) if Some(from) == host => Ok(()),
        _ => Err(refused(
            "Requests of web pages from elsewhere are not accepted: cors is not built in this \
             version."
                .to_owned(),
        )),
    }
}

fn refused(message: String) -> ApiError {
    ApiError::new(403, "invalid_request_error", message)
        .code("origin_not_allowed")
        .retry(false)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        // A proxy in front of this server may have checked the other one.
        return Err(refused(format!("There is more than one header {name}.")));
    }
    match first.map(|value| value.to_str()) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(refused(format!("The header {name} is not plain text."))),
    }
}

/// Whether a host, with or without a port, is this machine whatever a name server says.
fn is_local(host: &str) -> bool {
    let port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, "")) => name,
            Some((name, rest)) if rest.strip_prefix(':').is_some_and(port) => name,
            _ => return false,
        },
        None => match host.split_once(':') {
            Some((name, rest)) if port(rest) => name,
            Some(_) => return false,
            None => host,
        },
    };
    let named = name.eq_ignore_ascii_case("localhost");
    named
        || name
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::check;
    use crate::config::Auth;

    fn accepts(host: Option<&str>, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in [("host", host), ("origin", origin)] {
            if let Some(value) = value {
                headers.insert(name, value.parse().unwrap());
            }
        }
        check(&headers, Auth::Open).is_ok()
    }

    #[test]
    fn web_pages_from_elsewhere_are_kept_out() {
        for host in [
            "127.0.0.1:8377",
            "localhost:1",
            "LOCALHOST",
            "[::1]:8377",
            "127.9.9.9",
        ] {
            assert!(accepts(Some(host), None), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8377",
            "127.0.0.1.evil.example",
            "10.0.0.1:1",
            "[::1].evil.example",
            "[::1]:1.evil.example",
            "[::1",
            "localhost:1:2",
            "127.0.0.1:evil",
        ] {
            assert!(!accepts(Some(host), None), "{host}");
        }
        assert!(accepts(None, None));
        let mut twice = HeaderMap::new();
        twice.append("host", "127.0.0.1:1".parse().unwrap());
        twice.append("host", "evil.example".parse().unwrap());
        assert!(check(&twice, Auth::Open).is_err());
        let local = Some("127.0.0.1:8377");
        assert!(accepts(local, Some("http://127.0.0.1:8377")));
        for origin in ["http://evil.example", "null", "http://127.0.0.1:3000", ""] {
            assert!(!accepts(local, Some(origin)), "{origin}");
        }
    }
}
