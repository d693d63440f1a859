//! Answers and faults as actions on a connection.

mod status;
mod stream;

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_wire::sse::Frame;

use super::fault::Fault;
use super::frames::{self, written};
use super::http::{Act, Head, LAST_CHUNK, chunk};
use super::vendor::{self, Refusal, Vendor, family};
use status::{late_error, status};
use stream::in_stream;

/// A prepared answer.
#[derive(Clone, Debug)]
pub(super) struct PreparedResponse {
    pub(super) head: Head,
    pub(super) shape: Shape,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    Whole(Vec<u8>),
    Streamed(Vec<Frame>),
}

/// The request that an answer is for.
pub(super) struct To<'a> {
    pub(super) wire: &'a Wire,
    /// The number of the request.
    pub(super) number: usize,
    /// The server's own address.
    pub(super) origin: &'a str,
}

/// The actions of an answer without a fault.
pub(super) fn plain(to: &To<'_>, answer: &PreparedResponse) -> Vec<Act> {
    match &answer.shape {
        Shape::Whole(body) => whole(to, &answer.head, body),
        Shape::Streamed(frames) => streamed(&answer.head, &events(to, frames)),
    }
}

/// The beginning of an answer that goes on being made without its connection: a stream ends after
/// its first event, a whole answer before its head.
pub(super) fn detached(to: &To<'_>, answer: &PreparedResponse) -> Vec<Act> {
    let mut acts = match &answer.shape {
        Shape::Whole(_) => Vec::new(),
        Shape::Streamed(frames) => begun(&answer.head, &events(to, &frames[..frames.len().min(1)])),
    };
    acts.push(Act::Close);
    acts
}

/// A refusal in the vendor's form.
pub(super) fn refusal(to: &To<'_>, refusal: &Refusal) -> Vec<Act> {
    let body = refusal.body(to.wire, to.number);
    let head = vendor::head(to.wire, refusal.status, to.number);
    sized(&head, body.to_string().as_bytes())
}

/// An answer that is an error status.
pub(super) fn error_status(to: &To<'_>, fault: Fault) -> Vec<Act> {
    status(to, fault)
}

/// An answer with a fault.
pub(super) fn faulty(to: &To<'_>, fault: Fault, answer: &PreparedResponse) -> Vec<Act> {
    match fault {
        // The listener is closed; an open connection ends in this way.
        Fault::Refused | Fault::Reset => vec![Act::Reset],
        Fault::Silent => vec![Act::Stall],
        Fault::CutInHead => {
            let head = answer.head.sized(100);
            vec![Act::Send(head[..head.len() / 2].to_vec()), Act::Close]
        }
        Fault::Drip => drip(to, answer),
        Fault::Empty => match &answer.shape {
            Shape::Whole(_) => sized(&answer.head, b""),
            Shape::Streamed(_) => streamed(&answer.head, &[]),
        },
        Fault::Oversized => oversized(to, answer),
        Fault::WrongContentType => sized(&Head::new(200, "text/html"), HTML),
        Fault::BadGateway => sized(&Head::new(502, "text/html"), HTML),
        Fault::Redirect => {
            let location = format!("{}/elsewhere", to.origin);
            sized(
                &Head::new(307, "text/plain").with("location", location),
                b"",
            )
        }
        Fault::InvalidRequest
        | Fault::Unauthorised
        | Fault::NoSuchModel
        | Fault::RateLimited
        | Fault::OutOfQuota
        | Fault::ServerError
        | Fault::Overloaded => error_status(to, fault),
        // The fault is part of the answer itself.
        Fault::BrokenCall => plain(to, answer),
        Fault::Stalls
        | Fault::CutBetweenEvents
        | Fault::CutInCharacter
        | Fault::NoEndMark
        | Fault::ErrorInAnswer
        | Fault::NotJson
        | Fault::NotUtf8
        | Fault::UnknownEvents
        | Fault::AfterTheEnd
        | Fault::NoUsage => match &answer.shape {
            Shape::Whole(body) => in_body(to, fault, &answer.head, body),
            Shape::Streamed(frames) => in_stream(to, fault, &answer.head, frames),
        },
    }
}

const HTML: &[u8] = b"<html><head><title>Bad Gateway</title></head><body>nginx</body></html>";

fn events(to: &To<'_>, frames: &[Frame]) -> Vec<Vec<u8>> {
    frames.iter().map(|frame| written(to.wire, frame)).collect()
}

fn sized(head: &Head, body: &[u8]) -> Vec<Act> {
    let mut bytes = head.sized(body.len());
    bytes.extend_from_slice(body);
    vec![Act::Send(bytes)]
}

/// Google sends whole bodies in chunks.
fn whole(to: &To<'_>, head: &Head, body: &[u8]) -> Vec<Act> {
    match family(to.wire) {
        Vendor::Google => vec![
            Act::Send(head.chunked()),
            Act::Send(chunk(body)),
            Act::Send(LAST_CHUNK.to_vec()),
        ],
        Vendor::OpenAi | Vendor::Anthropic => sized(head, body),
    }
}

/// The beginning of a stream that continues.
fn begun(head: &Head, events: &[Vec<u8>]) -> Vec<Act> {
    let mut acts = vec![Act::Send(head.chunked())];
    acts.extend(events.iter().map(|event| Act::Send(chunk(event))));
    acts
}

fn streamed(head: &Head, events: &[Vec<u8>]) -> Vec<Act> {
    let mut acts = begun(head, events);
    acts.push(Act::Send(LAST_CHUNK.to_vec()));
    acts
}

fn drip(to: &To<'_>, answer: &PreparedResponse) -> Vec<Act> {
    match &answer.shape {
        Shape::Whole(body) => {
            let mut bytes = answer.head.sized(body.len());
            bytes.extend_from_slice(body);
            vec![Act::Drip(bytes)]
        }
        Shape::Streamed(frames) => {
            let bytes = events(to, frames).concat();
            let mut acts = vec![Act::Drip(answer.head.chunked())];
            acts.extend(bytes.iter().map(|byte| Act::Send(chunk(&[*byte]))));
            acts.push(Act::Drip(LAST_CHUNK.to_vec()));
            acts
        }
    }
}

fn oversized(to: &To<'_>, answer: &PreparedResponse) -> Vec<Act> {
    let mut acts = match &answer.shape {
        Shape::Whole(_) => vec![
            Act::Send(answer.head.chunked()),
            Act::Send(chunk(br#"{"id":""#)),
        ],
        Shape::Streamed(frames) => {
            let mut acts = begun(&answer.head, &events(to, &frames[..frames.len().min(1)]));
            acts.push(Act::Send(chunk(b"data: {\"x\":\"")));
            acts
        }
    };
    acts.push(Act::Flood(chunk(&vec![b'x'; 256 * 1024])));
    acts
}

fn in_body(to: &To<'_>, fault: Fault, head: &Head, body: &[u8]) -> Vec<Act> {
    let half = body.len() / 2;
    match fault {
        Fault::Stalls => {
            let mut bytes = head.sized(body.len());
            bytes.extend_from_slice(&body[..half]);
            vec![Act::Send(bytes), Act::Stall]
        }
        Fault::CutBetweenEvents => {
            let mut bytes = head.sized(body.len());
            bytes.extend_from_slice(&body[..half]);
            vec![Act::Send(bytes), Act::Close]
        }
        Fault::CutInCharacter => {
            let mut bytes = format!("{:x}\r\n", body.len()).into_bytes();
            bytes.extend_from_slice(&body[..inside_character(body)]);
            vec![Act::Send(head.chunked()), Act::Send(bytes), Act::Close]
        }
        Fault::NoEndMark => whole(to, head, &body[..body.len() * 2 / 3]),
        Fault::ErrorInAnswer => whole(to, head, late_error(to).to_string().as_bytes()),
        Fault::NotJson => whole(to, head, b"upstream connect error or disconnect/reset"),
        Fault::NotUtf8 => whole(to, head, &not_utf8(body)),
        Fault::AfterTheEnd => whole(to, head, &[body, b"\n{\"more\":"].concat()),
        _ => {
            let mut value: Value = serde_json::from_slice(body).unwrap_or_default();
            match fault {
                Fault::NoUsage => frames::drop_usage(&mut value),
                _ => value["brand_new"] = json!({"x": [1, null, "two"]}),
            }
            whole(
                to,
                &head.clone().with("x-brand-new", "1"),
                value.to_string().as_bytes(),
            )
        }
    }
}

/// A position inside of the first multi-byte character, else in the middle.
fn inside_character(bytes: &[u8]) -> usize {
    match bytes.iter().position(|byte| *byte >= 0x80) {
        Some(place) => place + 1,
        None => bytes.len() / 2,
    }
}

fn not_utf8(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let place = inside_character(&bytes).saturating_sub(1);
    if let Some(byte) = bytes.get_mut(place) {
        *byte = 0xff;
    }
    bytes
}
