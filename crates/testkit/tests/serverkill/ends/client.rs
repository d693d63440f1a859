//! Sends a create and reads its end.

use serde_json::Value;
use throughline_testkit::serverkill::{Event, Exchange, Request};

/// The end of a create, as its client sees it.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// A response in a final state.
    Told(Value),
    /// The outcome of this response is not known yet.
    Unknown(String),
    /// Nothing was begun.
    Refused(u16, Value),
}

/// Sends a create and reads its whole answer.
pub(crate) fn send(address: &str, request: &Request) -> Result<End, String> {
    let broken = |error: std::io::Error| format!("the connection broke off: {error}");
    let mut answer = Exchange::open(address, request).map_err(broken)?;
    let kind = answer.header("content-type").unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return streamed(&mut answer);
    }
    let header = |name: &str| answer.header(name).map(str::to_owned);
    let waits = header("x-throughline-response-id");
    let retry = (header("x-should-retry"), header("retry-after"));
    let body = answer.whole().map_err(broken)?;
    let body: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    let unknown = body["error"]["code"] == "outcome_unknown";
    match (answer.status, unknown) {
        (200, _) => Ok(End::Told(body)),
        (503, true) => match (waits, retry) {
            (Some(id), (Some(should), Some(_))) if should == "true" => Ok(End::Unknown(id)),
            other => Err(format!("{body} has the headers {other:?}")),
        },
        (status, _) => Ok(End::Refused(status, body)),
    }
}

fn streamed(answer: &mut Exchange) -> Result<End, String> {
    let (mut end, mut done) = (None, false);
    loop {
        let chunk = answer.chunk();
        let chunk = chunk.map_err(|error| format!("a stream broke off: {error}"))?;
        let Some(chunk) = chunk else { break };
        done |= chunk == b"data: [DONE]\n\n";
        let Some(event) = Event::read(&chunk)? else {
            continue;
        };
        if end.is_some() {
            return Err(format!("{} comes after the end", event.data));
        }
        if event.kind == "error" && event.data["code"] == "outcome_unknown" {
            let id = event.data["response_id"].as_str().unwrap_or_default();
            end = Some(End::Unknown(id.to_owned()));
        } else if event.is_last() {
            end = event.response().cloned().map(End::Told);
        }
    }
    match (end, done) {
        (Some(End::Unknown(id)), true) => Err(format!("the end of {id} is unknown and marked")),
        (Some(End::Told(response)), false) => Err(format!("{response} ends without the mark")),
        (Some(end), _) => Ok(end),
        (None, _) => Err("a stream ends without its last event".to_owned()),
    }
}
