//! HTTP/1.1 over TCP without TLS, spoken here (ADR 20).
//!
//! Whoever asks does the work of the connection: a request is written from where its pieces lie, and
//! what comes back is read by whoever reads the answer, all that has come at once. Nothing waits in
//! a buffer or in another task, so that a stream that says nothing holds next to no memory.

mod answer;
mod connect;
mod exchange;
mod frames;
mod pool;
mod request;
mod target;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use super::transport::{HttpRequest, HttpResponse, TransportError, TransportFault};
use exchange::{Answer, Exchange, Lost, Outgoing};
use pool::Pool;
pub(super) use target::Target;
use tokio::net::TcpStream;

/// Requests to addresses that begin with `http:`.
pub(super) struct Plain {
    pool: Arc<Pool>,
    connect_timeout: Option<Duration>,
}

impl Plain {
    pub(super) fn new(connect_timeout: Option<Duration>) -> Self {
        Self {
            pool: Arc::default(),
            connect_timeout,
        }
    }

    pub(super) async fn send(
        &self,
        target: &Arc<Target>,
        request: &HttpRequest,
    ) -> Result<HttpResponse, TransportError> {
        let outgoing = Outgoing::new(request::head(target, request)?, &request.body);
        // A connection that was closed meanwhile took nothing of the request: it goes to another.
        while let Some(stream) = self.waiting(target).await {
            let exchange = Exchange::new(stream, outgoing.clone());
            match self.asked(target, exchange).await {
                Err(Lost::Unsent) => {}
                Err(Lost::Cut(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            }
        }
        let stream = connect::connect(target, self.connect_timeout).await?;
        self.pool.reached(target, &stream);
        let asked = self.asked(target, Exchange::new(stream, outgoing));
        asked.await.map_err(|lost| match lost {
            Lost::Cut(error) => error,
            Lost::Unsent => TransportError::new(TransportFault::Cut, "nothing could be sent"),
        })
    }

    /// Make a connection if none waits, and if it is known where to.
    pub(super) fn get_ready(&self, target: &Target) {
        self.pool.get_ready(target, connect::begin);
    }

    /// A connection that waits, or is on its way.
    async fn waiting(&self, target: &Target) -> Option<TcpStream> {
        if let Some(stream) = self.pool.take(target) {
            return Some(stream);
        }
        let coming = self.pool.take_coming(target)?;
        match connect::finish(coming, self.connect_timeout).await {
            Ok(stream) if pool::is_quiet(&stream) => Some(stream),
            Ok(_) => None,
            Err(_) => {
                // The ordinary way says why, or finds where the host is now.
                self.pool.lost(target);
                None
            }
        }
    }

    async fn asked(
        &self,
        target: &Arc<Target>,
        mut exchange: Exchange,
    ) -> Result<HttpResponse, Lost> {
        let head = exchange.head().await?;
        let (status, headers) = (head.status, head.headers);
        let kept = head
            .is_kept
            .then(|| (Arc::clone(&self.pool), Arc::clone(target)));
        Ok(HttpResponse {
            status,
            headers,
            body: Box::pin(Answer::new(exchange, head.framing, kept)),
        })
    }
}
