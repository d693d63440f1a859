//! Sends requests and reads responses.

use serde_json::Value;
use throughline_testkit::serverkill::{Event, Exchange, Request};

/// The result of a request.
#[derive(Clone, Debug)]
pub(crate) enum Received {
    /// A complete response.
    Response(Value),
    /// An error: its status, its body, and the response in progress.
    Error(u16, Value, Option<String>),
    /// The connection broke; the response, if known.
    Disconnected(Option<String>),
}

impl Received {
    /// The code of an error.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Error(_, body, _) => body["error"]["code"].as_str().unwrap_or_default(),
            Self::Response(_) | Self::Disconnected(_) => "",
        }
    }
}

/// Sends a request and reads its response; `on_event` is called for each event.
pub(crate) fn send(
    address: &str,
    request: &Request,
    on_event: impl FnMut(),
) -> Result<Received, String> {
    let Ok(mut answer) = Exchange::open(address, request) else {
        return Ok(Received::Disconnected(None));
    };
    let kind = answer.header("content-type").unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return streamed(&mut answer, on_event);
    }
    let waits = answer.header("x-throughline-response-id");
    let waits = waits.map(str::to_owned);
    let Ok(body) = answer.whole() else {
        return Ok(Received::Disconnected(None));
    };
    let body: Value = serde_json::from_slice(&body)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&body)))?;
    Ok(match answer.status {
        200 => Received::Response(body),
        status => Received::Error(status, body, waits),
    })
}

/// Reads a response to its end.
pub(crate) fn follow(address: &str, response: &str) -> Result<Received, String> {
    let request = Request::get(format!("/v1/responses/{response}?stream=true"));
    send(address, &request, || {})
}

fn streamed(answer: &mut Exchange, mut on_event: impl FnMut()) -> Result<Received, String> {
    let mut id: Option<String> = None;
    let mut next = 0;
    let mut end = None;
    loop {
        let chunk = match answer.chunk() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(_) => return Ok(end.map_or(Received::Disconnected(id), Received::Response)),
        };
        let Some(event) = Event::read(&chunk)? else {
            continue;
        };
        if event.number != next {
            return Err(format!("event {} came instead of {next}", event.number));
        }
        next += 1;
        if let Some(response) = event.response() {
            id = response["id"].as_str().map(str::to_owned);
        }
        if event.is_last() {
            end = event.response().cloned();
        }
        on_event();
    }
    end.map(Received::Response)
        .ok_or_else(|| format!("a stream of {id:?} ends without its last event"))
}
