//! The body of a streamed answer: the events of a model call, written as an API's frames while they
//! come.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use futures_util::{FutureExt as _, stream};
use throughline_model::Event;
use tokio::sync::OwnedSemaphorePermit;

use super::call::AnswerEvents;
use crate::app::App;
use crate::error::ApiError;
use crate::net::event_stream;
use crate::stopping::Stopping;

/// Writes the events of an answer as the frames of an API.
pub(crate) trait EventWriter: Send + 'static {
    /// What is sent while nothing comes, so that proxies keep the connection open.
    const KEEP_ALIVE: &'static str;

    /// Append the frames of an event.
    fn event(&mut self, event: Event, out: &mut String);

    /// Append the frame that says that the answer broke off. Nothing follows it.
    fn failed(&mut self, error: &ApiError, out: &mut String);
}

/// Events that are ready are sent in one chunk up to about this size.
const CHUNK: usize = 16 << 10;

struct EventBody<W> {
    events: AnswerEvents,
    writer: W,
    stopping: Stopping,
    keep_alive: Duration,
    state: State,
    _place: OwnedSemaphorePermit,
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Coming,
    /// Its last event was written.
    Finished,
    Over,
}

/// The answer to a request for a stream. Its place among the open streams is free again when it ends.
pub(crate) fn event_body<W: EventWriter>(
    app: &App,
    events: AnswerEvents,
    writer: W,
    place: OwnedSemaphorePermit,
) -> Response<Body> {
    let body = EventBody {
        events,
        writer,
        stopping: app.stopping.clone(),
        keep_alive: app.config.limits.keep_alive,
        state: State::Coming,
        _place: place,
    };
    let chunks = stream::unfold(body, |mut body| async move {
        let chunk = body.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), body))
    });
    event_stream(Body::from_stream(chunks))
}

impl<W: EventWriter> EventBody<W> {
    async fn next(&mut self) -> Option<Bytes> {
        let mut out = String::new();
        while out.is_empty() && self.state == State::Coming {
            let next = tokio::select! {
                biased;
                () = self.stopping.closing() => Some(Some(Err(stopped()))),
                next = tokio::time::timeout(self.keep_alive, self.events.next()) => next.ok(),
            };
            match next {
                Some(event) => self.take(event, &mut out),
                None => out.push_str(W::KEEP_ALIVE),
            }
        }
        while self.state == State::Coming && out.len() < CHUNK {
            match self.events.next().now_or_never() {
                Some(event) => self.take(event, &mut out),
                None => break,
            }
        }
        if self.state == State::Finished {
            self.state = State::Over;
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn take(&mut self, event: Option<Result<Event, ApiError>>, out: &mut String) {
        match event {
            Some(Ok(event)) => {
                if matches!(event, Event::Finished { .. }) {
                    self.state = State::Finished;
                }
                self.writer.event(event, out);
            }
            Some(Err(error)) => {
                self.state = State::Over;
                self.writer.failed(&error, out);
            }
            None => {
                self.state = State::Over;
                let error = ApiError::new(
                    502,
                    "server_error",
                    "The answer of the upstream broke off without its end.",
                );
                self.writer.failed(&error.code("upstream_error"), out);
            }
        }
    }
}

fn stopped() -> ApiError {
    let error = ApiError::new(503, "server_error", "The server is stopping.");
    error.code("shutting_down").retry(true)
}
