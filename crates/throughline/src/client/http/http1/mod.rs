//! HTTP/1.1 over TCP without TLS, on hyper's connection API (ADR 9).
//!
//! The task that sends a request also drives its connection, so that dropping the request or the body
//! of its response closes the connection. A connection whose response was read to its end goes into
//! the pool. Bytes that are waiting on a connection before a request is written belong to no request:
//! such a connection is closed, and its upstream gets no reused connections from then on.

mod connect;
mod exchange;
mod pool;
mod target;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::header::HeaderMap;
use tokio::net::TcpStream;

use super::transport::{HttpRequest, HttpResponse, TransportError, TransportFault};
use exchange::{OutgoingBody, SendFailure};
use pool::{Pool, SocketState};
pub(super) use target::Target;

/// Sends requests to addresses that begin with `http:`.
pub(super) struct Http1Client {
    pool: Arc<Pool>,
    connect_timeout: Option<Duration>,
}

impl Http1Client {
    pub(super) fn new(connect_timeout: Option<Duration>) -> Self {
        Self {
            pool: Arc::default(),
            connect_timeout,
        }
    }

    /// How often an upstream sent bytes that no request had asked for.
    pub(super) fn unsolicited_count(&self) -> u64 {
        self.pool.unsolicited_count()
    }

    /// Sends a request on an idle connection or on a new one. It is sent again only if a connection
    /// turns out to be closed before any byte was written to it.
    pub(super) async fn send(
        &self,
        target: &Target,
        headers: HeaderMap,
        request: &HttpRequest,
    ) -> Result<HttpResponse, TransportError> {
        let mut outgoing = target.request(headers, request)?;
        while let Some(stream) = self.pool.take(&target.authority) {
            match self.send_on(stream, target, outgoing).await {
                Err(SendFailure::Unsent(request, _)) => outgoing = *request,
                Err(SendFailure::Cut(error)) => return Err(error),
                Ok(response) => return Ok(response),
            }
        }
        let stream = connect::connect(target, self.connect_timeout).await?;
        if SocketState::of(&stream) == SocketState::Readable {
            self.pool.report_unsolicited(&target.authority);
            let text = "the service sent bytes before it got a request";
            return Err(TransportError::new(TransportFault::Cut, text));
        }
        let sent = self.send_on(stream, target, outgoing).await;
        sent.map_err(|failure| match failure {
            SendFailure::Unsent(_, error) | SendFailure::Cut(error) => error,
        })
    }

    async fn send_on(
        &self,
        stream: TcpStream,
        target: &Target,
        request: Request<OutgoingBody>,
    ) -> Result<HttpResponse, SendFailure> {
        exchange::send(stream, request, &self.pool, &target.authority).await
    }
}
