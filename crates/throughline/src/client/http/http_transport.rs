use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use reqwest::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue as WireValue, TRANSFER_ENCODING,
};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Method, Proxy, Url};

use super::http1::{Http1Client, Target};
use super::settings::{HttpSettings, ProxyChoice};
use super::transport::{
    Body, Header, HeaderValue, HttpMethod, HttpRequest, HttpResponse, Transport, TransportError,
    TransportFault,
};
use super::{AGENT, IDLE_TIMEOUT};

/// HTTP over TCP and TLS, with one connection pool. Clones share the pool.
#[derive(Clone)]
pub struct HttpTransport {
    client: Client,
    /// For addresses without TLS; `None` if there may be a proxy.
    http1: Option<Arc<Http1Client>>,
}

/// Whether requests without TLS certainly use no proxy.
fn is_direct(choice: &ProxyChoice) -> bool {
    let names = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
    match choice {
        ProxyChoice::Direct => true,
        ProxyChoice::Url(_) => false,
        // These systems have proxy settings besides the environment.
        ProxyChoice::System if cfg!(any(target_os = "macos", windows)) => false,
        ProxyChoice::System => names.iter().all(|name| std::env::var_os(name).is_none()),
    }
}

impl HttpTransport {
    /// A transport with its own pool.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use throughline::client::{HttpSettings, HttpTransport};
    /// use throughline::OpenAi;
    ///
    /// // Two clients, one pool.
    /// let transport = Arc::new(HttpTransport::new(&HttpSettings::default())?);
    /// let small = OpenAi::responses("gpt-5-mini").api_key("sk-1").transport(transport.clone()).build()?;
    /// let large = OpenAi::responses("gpt-5").api_key("sk-1").transport(transport).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(settings: &HttpSettings) -> Result<Self, TransportError> {
        let mut builder = Client::builder()
            .user_agent(AGENT)
            .redirect(Policy::none())
            .referer(false)
            // Retries are counted against a budget, so they happen in one layer only.
            .retry(reqwest::retry::never())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .tcp_keepalive(IDLE_TIMEOUT)
            .tcp_nodelay(true);
        if let Some(wait) = settings.connect_timeout {
            builder = builder.connect_timeout(wait);
        }
        builder = match &settings.proxy {
            ProxyChoice::System => builder,
            ProxyChoice::Direct => builder.no_proxy(),
            ProxyChoice::Url(url) => builder.proxy(Proxy::all(url.reveal()).map_err(|_| {
                // The error's text would contain the address with its password.
                TransportError::new(
                    TransportFault::Request,
                    "the address of the proxy is no URL",
                )
            })?),
        };
        let mut certificates = Vec::new();
        for pem in &settings.root_certificates {
            let found = Certificate::from_pem_bundle(pem).map_err(request)?;
            if found.is_empty() {
                let text = "a root certificate is not in PEM form";
                return Err(TransportError::new(TransportFault::Request, text));
            }
            certificates.extend(found);
        }
        if !certificates.is_empty() {
            builder = builder.tls_certs_merge(certificates);
        }
        let client = builder.build().map_err(request)?;
        let http1 = is_direct(&settings.proxy).then(|| Http1Client::new(settings.connect_timeout));
        Ok(Self {
            client,
            http1: http1.map(Arc::new),
        })
    }

    /// How often an upstream without TLS has sent bytes that no request had asked for. A connection
    /// with such bytes is closed before a request is written to it, and the upstream gets no reused
    /// connections from then on.
    pub fn unsolicited_count(&self) -> u64 {
        self.http1
            .as_ref()
            .map_or(0, |http1| http1.unsolicited_count())
    }

    /// Uses reqwest for all addresses, as behind a proxy.
    #[cfg(test)]
    pub(super) fn with_reqwest_only(mut self) -> Self {
        self.http1 = None;
        self
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpTransport")
    }
}

fn request(error: reqwest::Error) -> TransportError {
    TransportError::new(TransportFault::Request, error.without_url())
}

fn failed(error: reqwest::Error) -> TransportError {
    let fault = if error.is_builder() {
        TransportFault::Request
    } else if error.is_connect() && error.is_timeout() {
        TransportFault::ConnectTimeout
    } else if error.is_connect() {
        TransportFault::Connect
    } else {
        TransportFault::Cut
    };
    TransportError::new(fault, error.without_url())
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let url = Url::parse(&request.url)
            .map_err(|error| TransportError::new(TransportFault::Request, error))?;
        let headers = headers(&request.headers)?;
        if let (Some(http1), Some(target)) = (&self.http1, Target::of(&url)) {
            return http1.send(&target, headers, &request).await;
        }
        let method = match request.method {
            HttpMethod::Delete => Method::DELETE,
            HttpMethod::Get => Method::GET,
            HttpMethod::Post => Method::POST,
        };
        let asked = self.client.request(method, url).headers(headers);
        let asked = match request.body.pieces() {
            [whole] => asked.body(whole.clone()),
            pieces => {
                let pieces: Vec<_> = pieces.iter().cloned().map(Ok::<_, Infallible>).collect();
                // The whole body, so that its length is known.
                asked
                    .header(CONTENT_LENGTH, request.body.len())
                    .body(reqwest::Body::wrap_stream(stream::iter(pieces)))
            }
        };
        let answer = asked.send().await.map_err(failed)?;
        let status = answer.status().as_u16();
        let headers = response_headers(answer.headers());
        let body: Body = Box::pin(answer.bytes_stream().map(|piece| piece.map_err(failed)));
        Ok(HttpResponse {
            status,
            headers,
            body,
        })
    }
}

/// Headers that follow from how a request is sent. Values of callers are ignored.
const FRAMING: [HeaderName; 3] = [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING];

fn headers(list: &[Header]) -> Result<HeaderMap, TransportError> {
    let mut map = HeaderMap::with_capacity(list.len());
    for header in list {
        let refused = |what: &str| TransportError::header(what, header);
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| refused("name"))?;
        if FRAMING.contains(&name) {
            continue;
        }
        let value = match &header.value {
            HeaderValue::Plain(text) => WireValue::from_str(text).map_err(|_| refused("value"))?,
            HeaderValue::Secret(before, secret) => {
                let text = format!("{before}{}", secret.reveal());
                let mut value = WireValue::from_str(&text).map_err(|_| refused("value"))?;
                value.set_sensitive(true);
                value
            }
        };
        map.insert(name, value);
    }
    Ok(map)
}

/// The headers of a response, with lower-case names.
pub(super) fn response_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &WireValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect()
}
