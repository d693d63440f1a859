//! Event streams of the native API: numbered events, comments while nothing happens, no mark at the
//! end.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::Response;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use futures_util::Stream;
use futures_util::stream::{self, StreamExt as _};
use throughline_model::json::RawJson;
use tokio::sync::OwnedSemaphorePermit;

use super::request::Call;
use crate::app::App;
use crate::error::ApiError;

/// The type of event streams.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// One event.
pub(super) struct SseEvent {
    name: &'static str,
    id: Option<String>,
    /// JSON in one line.
    data: String,
}

impl SseEvent {
    pub(super) fn new(name: &'static str, data: String) -> Self {
        Self {
            name,
            id: None,
            data,
        }
    }

    /// With the id that a client sends back as `Last-Event-ID`.
    pub(super) fn with_id(self, id: String) -> Self {
        Self {
            id: Some(id),
            ..self
        }
    }

    /// The last event of a stream that breaks off.
    pub(super) fn of_error(error: &ApiError) -> Self {
        let body: RawJson = error.body();
        Self::new("error", body.get().to_owned())
    }

    fn to_bytes(&self) -> Bytes {
        let mut frame = format!("event: {}\n", self.name);
        if let Some(id) = &self.id {
            frame.push_str(&format!("id: {id}\n"));
        }
        frame.push_str("data: ");
        // Stored JSON may have been laid out in lines, between its tokens.
        frame.extend(self.data.chars().filter(|c| !matches!(c, '\n' | '\r')));
        frame.push_str("\n\n");
        frame.into()
    }
}

/// An event stream that ends with its events, or when the server cuts streams off.
pub(super) fn response(
    app: &App,
    place: OwnedSemaphorePermit,
    events: impl Stream<Item = SseEvent> + Send + 'static,
) -> Response<Body> {
    let keep_alive = app.config.limits.keep_alive;
    let stopping = app.stopping.clone();
    let cut = async move { stopping.closing().await };
    let events = events.take_until(Box::pin(cut)).boxed();
    let chunks = stream::unfold((events, place), move |(mut events, place)| async move {
        let chunk = match tokio::time::timeout(keep_alive, events.next()).await {
            Err(_) => KEEP_ALIVE,
            Ok(event) => event?.to_bytes(),
        };
        Some((Ok::<Bytes, Infallible>(chunk), (events, place)))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    // Proxies that gather what they pass on would hold up the events.
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

/// The id of the last event that a client has seen.
pub(super) fn last_event_id(call: &Call) -> Result<Option<&str>, ApiError> {
    let Some(value) = call.headers.get("last-event-id") else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_| wrong_id())?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// An id that no event of the stream has.
pub(super) fn wrong_id() -> ApiError {
    ApiError::invalid("Invalid 'Last-Event-ID': it is no id of an event of this stream.")
        .code("invalid_value")
        .param("Last-Event-ID")
}
