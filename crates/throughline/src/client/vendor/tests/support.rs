use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use throughline_model::{Event, Fold, Response};

use crate::client::fake::with_request;
use crate::client::http::{
    HeaderValue, HttpRequest, HttpResponse, Transport, TransportError, TransportFault,
};
use crate::client::vendor::{Anthropic, ClientBuilder, Foundry, Gemini, OpenAi};
use crate::client::{ChatClient, ClientError};
use futures_util::StreamExt;

pub(super) const PROJECT: &str = "https://x.services.ai.azure.com/api/projects/p";

/// One builder for each vendor, with a key.
pub(super) fn all() -> Vec<ClientBuilder> {
    [
        OpenAi::responses("m"),
        OpenAi::chat("m"),
        Anthropic::new("m"),
        Gemini::new("m"),
        Gemini::interactions("m"),
        Foundry::new(PROJECT, "m"),
    ]
    .into_iter()
    .map(|builder| builder.api_key("sk-canary-1"))
    .collect()
}

/// A response of a fake service.
#[derive(Clone, Default)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<Bytes>,
    pub(super) breaks: bool,
}

impl Reply {
    pub(super) fn new(status: u16, content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: vec![Bytes::copy_from_slice(body.as_ref())],
            breaks: false,
        }
    }

    pub(super) fn json(status: u16, body: impl AsRef<[u8]>) -> Self {
        Self::new(status, "application/json; charset=utf-8", body)
    }

    pub(super) fn events(body: impl AsRef<[u8]>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn breaking(mut self) -> Self {
        self.breaks = true;
        self
    }

    fn response(self) -> HttpResponse {
        let broken = self
            .breaks
            .then(|| Err(TransportError::new(TransportFault::Cut, "reset")));
        let pieces = self.body.into_iter().map(Ok).chain(broken);
        let pieces: Vec<_> = pieces.collect();
        HttpResponse {
            status: self.status,
            headers: self.headers,
            body: Box::pin(stream::iter(pieces)),
        }
    }
}

/// A service that answers by a function of the number of the request, counted from 1.
pub(super) struct Service {
    script: Box<dyn Fn(usize) -> Reply + Send + Sync>,
    pub(super) asked: Mutex<Vec<HttpRequest>>,
}

impl Service {
    pub(super) fn new(script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            asked: Mutex::default(),
        })
    }

    pub(super) fn always(reply: Reply) -> Arc<Self> {
        Self::new(move |_| reply.clone())
    }

    pub(super) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// The requests as method, address, signing header and body.
    pub(super) fn seen(&self) -> Vec<(String, String, String)> {
        let asked = self.asked.lock().unwrap();
        let seen = asked.iter().map(|request| {
            let signed = request.headers.iter().find_map(|header| {
                let HeaderValue::Secret(before, secret) = &header.value else {
                    return None;
                };
                Some(format!("{}: {before}{}", header.name, secret.reveal()))
            });
            (
                request.url.clone(),
                signed.unwrap_or_default(),
                String::from_utf8(request.body.to_bytes().to_vec()).unwrap(),
            )
        });
        seen.collect()
    }
}

#[async_trait]
impl Transport for Service {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let count = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(request);
            asked.len()
        };
        Ok((self.script)(count).response())
    }
}

pub(super) async fn respond(client: &dyn ChatClient) -> Result<Response, ClientError> {
    with_request(async |request| client.respond(request).await).await
}

/// Reads a stream to its end.
pub(super) async fn stream_events(client: &dyn ChatClient) -> Result<Vec<Event>, ClientError> {
    let mut events = with_request(async |request| client.stream(request).await).await?;
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event?);
    }
    Ok(all)
}

pub(super) async fn streamed(client: &dyn ChatClient) -> Result<Response, ClientError> {
    let mut fold = Fold::new();
    for event in stream_events(client).await? {
        fold.push(event);
    }
    Ok(fold.finish())
}

/// Calls a service both ways and returns both errors.
pub(super) async fn both(
    builder: impl Fn() -> ClientBuilder,
    reply: &Reply,
) -> [Result<Response, ClientError>; 2] {
    let client = |service: Arc<Service>| builder().transport(service).build_bare().unwrap();
    let one = client(Service::always(reply.clone()));
    let two = client(Service::always(reply.clone()));
    [respond(&one).await, streamed(&two).await]
}
