//! An in-memory service for the real client of a vendor.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use throughline::client::{HttpRequest, HttpResponse, Transport, TransportError};

/// How much of a stream arrives at once.
const PACKET: usize = 1_460;

/// Answers every request with the next of its bodies.
pub(super) struct Service {
    bodies: Vec<Body>,
    asked: AtomicUsize,
    /// The size of the last request.
    sent: AtomicUsize,
}

/// An answer.
struct Body {
    kind: &'static str,
    packets: Vec<Bytes>,
}

impl Service {
    /// Whole answers in order, repeated from the start.
    pub(super) fn whole(bodies: Vec<String>) -> Arc<Self> {
        let whole = |text: String| Body {
            kind: "application/json",
            packets: vec![Bytes::from(text)],
        };
        Self::of(bodies.into_iter().map(whole).collect())
    }

    /// Streamed answers in order, repeated from the start.
    pub(super) fn streamed(bodies: Vec<String>) -> Arc<Self> {
        let streamed = |text: String| Body {
            kind: "text/event-stream",
            packets: text
                .as_bytes()
                .chunks(PACKET)
                .map(Bytes::copy_from_slice)
                .collect(),
        };
        Self::of(bodies.into_iter().map(streamed).collect())
    }

    fn of(bodies: Vec<Body>) -> Arc<Self> {
        Arc::new(Self {
            bodies,
            asked: AtomicUsize::new(0),
            sent: AtomicUsize::new(0),
        })
    }

    /// The size of the last request's body.
    pub(super) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Transport for Service {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        self.sent.store(request.body.len(), Ordering::Relaxed);
        let place = self.asked.fetch_add(1, Ordering::Relaxed) % self.bodies.len();
        let body = &self.bodies[place];
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let packets: Vec<Result<Bytes, TransportError>> =
            body.packets.iter().cloned().map(Ok).collect();
        Ok(HttpResponse {
            status: 200,
            headers: vec![
                header("content-type", body.kind),
                header("date", "Sun, 01 Mar 2026 12:00:00 GMT"),
                header("x-request-id", "req_68a1b2c3"),
                header("x-ratelimit-remaining-requests", "4999"),
            ],
            body: Box::pin(stream::iter(packets)),
        })
    }
}
