//! A client of WebSockets.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderName;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// What came.
#[derive(Debug, PartialEq)]
pub(crate) enum Received {
    Event(Value),
    Closed(Option<(u16, String)>),
}

impl Socket {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self::open_with(address, &[]).await
    }

    /// Open one with more headers.
    pub(crate) async fn open_with(address: SocketAddr, headers: &[(&str, &str)]) -> Self {
        let url = format!("ws://{address}/v1/responses");
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            let name = HeaderName::try_from(*name).unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        Self(connect_async(request).await.unwrap().0)
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_raw(Message::text(message.to_string())).await;
    }

    pub(crate) async fn send_raw(&mut self, message: Message) {
        self.0.send(message).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Received {
        loop {
            let close = |frame: CloseFrame| (frame.code.into(), frame.reason.to_string());
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => {
                    return Received::Event(serde_json::from_str(&text).unwrap());
                }
                Some(Ok(Message::Close(frame))) => return Received::Closed(frame.map(close)),
                Some(Ok(_)) => {}
                None | Some(Err(Error::ConnectionClosed | Error::Protocol(_) | Error::Io(_))) => {
                    return Received::Closed(None);
                }
                Some(Err(error)) => panic!("{error}"),
            }
        }
    }

    /// Wait for a ping. Events before it are dropped.
    pub(crate) async fn ping(&mut self) {
        while !matches!(self.0.next().await, Some(Ok(Message::Ping(_)))) {}
    }

    pub(crate) async fn event(&mut self) -> Value {
        match self.next().await {
            Received::Event(event) => event,
            closed @ Received::Closed(_) => panic!("{closed:?}"),
        }
    }

    /// The events of the next response, up to the one that ends it, or the error message.
    pub(crate) async fn events(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await;
            let kind = event["type"].as_str().unwrap().to_owned();
            let is_message = kind == "error" && event.get("status").is_some();
            events.push(event);
            let ends = [
                "response.completed",
                "response.failed",
                "response.incomplete",
            ];
            if is_message || ends.contains(&kind.as_str()) {
                return events;
            }
        }
    }

    /// The events that answer a message.
    pub(crate) async fn ask(&mut self, message: &Value) -> Vec<Value> {
        self.send(message).await;
        self.events().await
    }

    /// The response that answers a message.
    pub(crate) async fn response(&mut self, message: &Value) -> Value {
        let events = self.ask(message).await;
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed", "{last}");
        last["response"].clone()
    }

    /// The error that answers a message: its status and its code.
    pub(crate) async fn refused(&mut self, message: &Value) -> (u64, String) {
        let events = self.ask(message).await;
        assert_eq!(events.len(), 1, "{events:?}");
        let error = &events[0];
        assert_eq!(error["type"], "error", "{error}");
        for key in ["message", "type", "param", "code"] {
            assert!(
                error["error"].as_object().unwrap().contains_key(key),
                "{error}"
            );
        }
        let code = error["error"]["code"].as_str().unwrap_or_default();
        (error["status"].as_u64().unwrap(), code.to_owned())
    }

    /// Disappear without a word.
    pub(crate) fn break_off(self) {
        drop(self.0);
    }
}
