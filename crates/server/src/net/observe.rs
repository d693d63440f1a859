//! What every request has: an id, headers, a line in the log, a place in the metrics.
//!
//! A line says method, route, status, time and ids. It never holds a body, a path as it was written,
//! a query or a header: any of those may hold content or a key.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, VARY};
use axum::http::{HeaderMap, Method, Response};
use axum::middleware::Next;
use axum::response::IntoResponse;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use throughline_store::RunId;

use super::metrics::HttpMetrics;
use super::state::NetState;
use crate::error::ApiError;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const PROCESSING: HeaderName = HeaderName::from_static("openai-processing-ms");
const DURABILITY: HeaderName = HeaderName::from_static("x-throughline-durability");

/// The id of a request, in its extensions and in the header `x-request-id` of its answer.
#[derive(Clone, Debug)]
pub struct RequestId(pub Arc<str>);

/// The response that an answer is about; put it into the answer's extensions to have it logged.
#[derive(Clone, Copy, Debug)]
pub struct Answered(pub RunId);

/// Around everything.
pub(crate) async fn observe(
    State(net): State<Arc<NetState>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let id: Arc<str> = format!("req_{}", net.store.ids().run().to_hex()).into();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.map_or_else(|| "unmatched".to_owned(), |path| path.as_str().to_owned());
    let mut observed = ObservedRequest::begin(&net.metrics, request.method(), route, &id);
    let is_health = matches!(observed.route.as_str(), "/healthz" | "/readyz");
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));

    let refused = match is_health {
        true => None,
        false => refusal(&net).err(),
    };
    let mut response = match refused {
        Some(error) => error.into_response(),
        None => {
            // A mistake of ours costs one request, not the connection.
            let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
            answered.unwrap_or_else(|_| {
                tracing::error!(request_id = %id, "a handler panicked");
                ApiError::server("The server made a mistake; its log has the request id.")
                    .into_response()
            })
        }
    };
    response = normalize_error(response);
    observed.status = response.status().as_u16();
    observed.answered = response.extensions().get::<Answered>().copied();
    set_headers(&net, response.headers_mut(), &observed, is_health);
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    observed.whole = !is_stream;
    match is_stream {
        true => response.map(|body| Body::from_stream(until_end(body, observed))),
        false => response,
    }
}

/// Refuse all requests while the server drains.
fn refusal(net: &NetState) -> Result<(), ApiError> {
    if net.stopping.is_draining() {
        let mut error = ApiError::overloaded("The server is stopping.", "shutting_down");
        error.headers.push(("connection", "close".to_owned()));
        return Err(error);
    }
    Ok(())
}

/// Errors that the framework words itself, such as a path that is not text, in the usual shape.
fn normalize_error(response: Response<Body>) -> Response<Body> {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let kind = response.headers().get(CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !is_error || is_json {
        return response;
    }
    let text = status.canonical_reason().unwrap_or("The request failed");
    let class = match status.is_client_error() {
        true => "invalid_request_error",
        false => "server_error",
    };
    ApiError::new(status.as_u16(), class, format!("{text}.")).into_response()
}

/// The headers that every answer has.
fn set_headers(
    net: &NetState,
    headers: &mut HeaderMap,
    observed: &ObservedRequest,
    is_health: bool,
) {
    if let Ok(id) = HeaderValue::try_from(&*observed.id) {
        headers.insert(REQUEST_ID, id);
    }
    let millis = u64::try_from(observed.since.elapsed().as_millis()).unwrap_or(u64::MAX);
    headers.insert(PROCESSING, HeaderValue::from(millis));
    if !is_health {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("authorization"));
    }
    if net.is_relaxed {
        headers.insert(DURABILITY, HeaderValue::from_static("relaxed"));
    }
}

/// The body of a stream, with its request observed until the end of it.
fn until_end(
    body: Body,
    observed: ObservedRequest,
) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static {
    let frames = body.into_data_stream();
    futures_util::stream::unfold(
        (frames, observed),
        |(mut frames, mut observed)| async move {
            match frames.next().await {
                Some(frame) => Some((frame, (frames, observed))),
                None => {
                    observed.end();
                    None
                }
            }
        },
    )
}

/// One request, from its head to the end of its answer.
struct ObservedRequest {
    metrics: Arc<HttpMetrics>,
    method: &'static str,
    route: String,
    id: Arc<str>,
    since: Instant,
    status: u16,
    answered: Option<Answered>,
    /// Whether the answer was sent whole, as far as one can see here.
    whole: bool,
}

impl ObservedRequest {
    fn begin(metrics: &Arc<HttpMetrics>, method: &Method, route: String, id: &Arc<str>) -> Self {
        metrics.begun();
        Self {
            metrics: Arc::clone(metrics),
            method: method_label(method),
            route,
            id: Arc::clone(id),
            since: Instant::now(),
            // What is observed of a client that leaves before it is answered.
            status: 499,
            answered: None,
            whole: false,
        }
    }

    /// The answer was sent whole.
    fn end(&mut self) {
        self.whole = true;
    }
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        let time = self.since.elapsed();
        let response_id = self
            .answered
            .map(|Answered(run)| format!("resp_{}", run.to_hex()));
        tracing::info!(
            target: "throughline_server::request",
            method = self.method,
            route = self.route,
            status = self.status,
            ms = time.as_secs_f64() * 1e3,
            whole = self.whole,
            request_id = %self.id,
            response_id,
            "request"
        );
        let route = std::mem::take(&mut self.route);
        self.metrics.ended(self.method, route, self.status, time);
    }
}

/// A standard method; others would let clients choose a label.
fn method_label(method: &Method) -> &'static str {
    let known = [
        "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT",
    ];
    let found = known.into_iter().find(|known| *known == method.as_str());
    found.unwrap_or("other")
}
