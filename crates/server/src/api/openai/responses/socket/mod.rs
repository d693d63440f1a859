//! `GET /v1/responses` with an upgrade: responses over a WebSocket, one after another.
//!
//! Each message is a create request, and is answered with the events of its response as messages. A
//! response that is not stored can be continued on its own connection alone ([`SocketChain`]).

mod chain;
mod frames;
mod message;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::http::header::{ALLOW, HeaderValue, UPGRADE};
use axum::http::{HeaderMap, Method, Response};
use axum::response::IntoResponse as _;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use throughline_store::TenantScope;

use super::{create, errors};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::{HeldConnection, Payload, Upgrade};
pub(super) use chain::SocketChain;
use frames::{EventMessages, NextMessage, with_stream_id};
use message::{SocketMessage, error_message};

/// Open a WebSocket. Other requests must be a POST.
pub(super) async fn open(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    upgrade: Option<Extension<Upgrade>>,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response<Body> {
    let wanted = headers.get(UPGRADE).map(HeaderValue::as_bytes);
    if !wanted.is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket")) {
        return not_allowed();
    }
    let socket = match (socket, app.stopping.is_draining()) {
        (Ok(socket), false) => socket,
        (_, true) => {
            return ApiError::overloaded("The server is stopping.", "stopping").into_response();
        }
        (Err(rejection), _) => {
            let text = format!("No WebSocket can be opened: {}", rejection.body_text());
            return ApiError::invalid(text).into_response();
        }
    };
    let most = app.config.limits.body_bytes;
    let held = upgrade.map(|Extension(upgrade)| upgrade.hold());
    socket
        .max_message_size(most)
        .max_frame_size(most)
        .on_upgrade(move |socket| async move {
            let chain = Arc::new(SocketChain::new(&app.memory));
            let scope = caller.scope;
            let session = Session { app, scope, chain };
            session.serve(Link::new(socket, held)).await;
        })
}

fn not_allowed() -> Response<Body> {
    let text = format!("Not allowed to {} on /v1/responses", Method::GET);
    let error = ApiError::new(405, "invalid_request_error", text).code("method_not_allowed");
    let mut response = error.into_response();
    let allowed = HeaderValue::from_static("POST");
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// The client has gone, or its connection is to end at once.
struct Gone;

/// The two directions of a WebSocket.
struct Link {
    out: SplitSink<WebSocket, Message>,
    messages: SplitStream<WebSocket>,
    /// A message that came while another one was answered. No more are read meanwhile.
    waiting: Option<Message>,
    held: Option<HeldConnection>,
}

impl Link {
    fn new(socket: WebSocket, held: Option<HeldConnection>) -> Self {
        let (out, messages) = socket.split();
        Self {
            out,
            messages,
            waiting: None,
            held,
        }
    }

    /// The next message of the client.
    async fn next(&mut self) -> Result<Message, Gone> {
        if let Some(message) = self.waiting.take() {
            return Ok(message);
        }
        tokio::select! {
            biased;
            () = cut(self.held.as_ref()) => Err(Gone),
            message = self.messages.next() => read(message),
        }
    }

    /// Wait for something, as long as the client is there.
    async fn while_open<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Gone> {
        tokio::pin!(future);
        loop {
            let is_free = self.waiting.is_none();
            tokio::select! {
                biased;
                () = cut(self.held.as_ref()) => return Err(Gone),
                done = future.as_mut() => return Ok(done),
                message = self.messages.next(), if is_free => match read(message)? {
                    // Read all the same, so that the answer to a ping is sent.
                    Message::Ping(_) | Message::Pong(_) => {}
                    message => self.waiting = Some(message),
                },
            }
        }
    }

    async fn send_text(&mut self, text: impl Into<Utf8Bytes>) -> Result<(), Gone> {
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Gone> {
        tokio::select! {
            biased;
            () = cut(self.held.as_ref()) => Err(Gone),
            sent = self.out.send(message) => sent.map_err(|_| Gone),
        }
    }

    /// Close it, and say why.
    async fn close(mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame {
            code,
            reason: reason.into(),
        };
        tokio::select! {
            () = cut(self.held.as_ref()) => {}
            // The connection ends in any case.
            _ = self.out.send(Message::Close(Some(frame))) => {}
        }
    }
}

/// Wait until a connection has to end at once.
async fn cut(held: Option<&HeldConnection>) {
    match held {
        Some(held) => held.cut().await,
        None => std::future::pending().await,
    }
}

/// A message, if the client is still there.
fn read(message: Option<Result<Message, axum::Error>>) -> Result<Message, Gone> {
    match message {
        Some(Ok(Message::Close(_)) | Err(_)) | None => Err(Gone),
        Some(Ok(message)) => Ok(message),
    }
}

/// The responses of one WebSocket.
struct Session {
    app: App,
    scope: TenantScope,
    chain: Arc<SocketChain>,
}

impl Session {
    /// Answer messages, until the client goes, the time is over or the server stops.
    async fn serve(&self, mut link: Link) {
        let expired = tokio::time::sleep(self.app.config.limits.socket);
        tokio::pin!(expired);
        loop {
            let message = tokio::select! {
                biased;
                () = self.app.stopping.draining() => {
                    return link.close(close_code::AWAY, "the server stops").await;
                }
                () = &mut expired => return self.expire(link).await,
                message = link.next() => message,
            };
            let answered = match message {
                Ok(Message::Text(text)) => self.answer(Bytes::from(text), &mut link).await,
                Ok(Message::Binary(_)) => {
                    let error = ApiError::invalid("Messages of a WebSocket are texts.");
                    link.send_text(error_message(&error, None)).await
                }
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_)) => Ok(()),
                Err(Gone) => Err(Gone),
            };
            if answered.is_err() {
                return;
            }
        }
    }

    /// The time of the connection is over.
    async fn expire(&self, mut link: Link) {
        let limit = self.app.config.limits.socket.as_secs();
        let text = format!(
            "A WebSocket is open for {limit} seconds at most (limits.socket_seconds). Open another \
             one; stored responses can be continued there."
        );
        let error = ApiError::invalid(text).code("websocket_connection_limit_reached");
        if link.send_text(error_message(&error, None)).await.is_ok() {
            link.close(close_code::NORMAL, "the time of this connection is over")
                .await;
        }
    }

    /// Answer a message with the events of a response, or with an error.
    async fn answer(&self, message: Bytes, link: &mut Link) -> Result<(), Gone> {
        let read = Payload::of_message(message, &self.app.net).and_then(|payload| {
            let dialect = self.app.config.server.dialect;
            let message = SocketMessage::read(payload.bytes(), dialect)?;
            Ok((message, payload.into_memory()))
        });
        let (message, memory) = match read {
            Ok(read) => read,
            Err(error) => return link.send_text(error_message(&error, None)).await,
        };
        let previous = message.request.previous_response_id();
        let previous = previous.map(errors::parse_response_id);
        let is_stored = message.request.store();
        let stream_id = message.stream_id;
        let request = (message.request, memory);
        let answering = create::answer_message(&self.app, &self.scope, request, &self.chain);
        let body = match link.while_open(answering).await? {
            Ok(response) => response.into_body(),
            Err(error) => {
                if let Some(previous) = previous {
                    self.chain.evict_continued(previous);
                }
                return link
                    .send_text(error_message(&error, stream_id.as_deref()))
                    .await;
            }
        };
        let chain = Some(&*self.chain).filter(|_| !is_stored);
        send_events(body, stream_id.as_deref(), chain, link).await
    }
}

/// Send the events of a response. `chain` has it, unless it is stored.
async fn send_events(
    body: Body,
    stream_id: Option<&str>,
    chain: Option<&SocketChain>,
    link: &mut Link,
) -> Result<(), Gone> {
    let mut events = EventMessages::new(body);
    while let Some(next) = link.while_open(events.next()).await? {
        let event = match next {
            NextMessage::Event(event) => event,
            // Proxies close connections on which nothing is sent.
            NextMessage::KeepAlive => {
                link.send(Message::Ping(Bytes::new())).await?;
                continue;
            }
        };
        match chain {
            // What went wrong cannot be continued.
            Some(chain) if event.is_failure => chain.evict(),
            Some(chain) if event.is_last => chain.grow(event.text.len()),
            _ => {}
        }
        match stream_id {
            Some(stream_id) => {
                let text = with_stream_id(&event.text, stream_id);
                link.send_text(text).await?;
            }
            None => link.send_text(event.text).await?,
        }
    }
    if !events.is_whole() {
        // The events broke off, as an event stream would, and the connection ends.
        return Err(Gone);
    }
    Ok(())
}
