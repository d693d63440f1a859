//! Whole transcript files: which shapes there are, reading and writing them.
//!
//! Shape in is shape out. An array of messages or items gives an array, a request body gives a
//! request body. A response body or a captured event stream is read as its messages and gives an
//! array, a single message is an array of one.
//!
//! ```
//! use throughline_wire::transcript::{read, write, Limits};
//! use throughline_wire::{Format, Losses};
//!
//! let responses: Format = "openai-responses".parse().unwrap();
//! let file = br#"{"model":"gpt","input":"hi","temperature":0.20}"#;
//! let transcript = read(file, &responses, Limits::default()).unwrap();
//! assert_eq!(transcript.request.messages[0].text(), "hi");
//! let back = write(&transcript, &responses, &mut Losses::default());
//! assert_eq!(back.as_bytes(), file);
//! ```

mod neutral;
mod trajectory;

#[cfg(test)]
mod tests;

use throughline_model::json::{self, Value};
use throughline_model::{Message, Path, Request, Role};

use crate::sse;
use crate::{Codec, DecodeError, DocumentKind, Format, Losses, Problem, assemble, codec};

/// How much one file may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole file.
    pub file_bytes: usize,
    /// JSON: depth and number of values.
    pub json: json::Limits,
    /// Event streams: bytes of a line and of an event.
    pub sse: sse::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 256 << 20,
            json: json::Limits {
                // A file may hold years of conversations.
                values: 8_000_000,
                ..json::Limits::default()
            },
            sse: sse::Limits::default(),
        }
    }
}

/// What shape a transcript has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptShape {
    /// A list of messages.
    Array,
    /// A request body.
    Request,
}

/// A transcript: a list of messages, or a request that holds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// The shape of the file.
    pub shape: TranscriptShape,
    /// System text, messages, tools, and what else a request has.
    pub request: Request,
}

impl Transcript {
    fn of(messages: Vec<Message>) -> Self {
        Self {
            shape: TranscriptShape::Array,
            request: Request {
                messages,
                ..Request::default()
            },
        }
    }
}

/// Read a file.
pub fn read(bytes: &[u8], format: &Format, limits: Limits) -> Result<Transcript, DecodeError> {
    if bytes.len() > limits.file_bytes {
        let limit = limits.file_bytes;
        return Err(DecodeError::new(&Path::Root, Problem::TooLarge { limit }));
    }
    let wire = match format {
        Format::Neutral => {
            return neutral::read(&json::parse_bytes(bytes, limits.json)?);
        }
        Format::Vendor(wire) => wire,
    };
    let Some(codec) = codec(wire) else {
        let name = wire.as_str().to_owned();
        return Err(DecodeError::new(&Path::Root, Problem::NoCodec { name }));
    };
    if is_event_stream(bytes) {
        let frames = frames(bytes, limits.sse)?;
        return Ok(Transcript::of(assemble(codec, &frames)?.messages));
    }
    document(codec, &json::parse_bytes(bytes, limits.json)?)
}

/// Whether a file is a capture of an event stream rather than JSON.
fn is_event_stream(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let start = bytes
        .iter()
        .position(|byte| !byte.is_ascii_whitespace())
        .unwrap_or(0);
    let rest = &bytes[start..];
    [&b"event:"[..], b"data:", b":", b"id:", b"retry:"]
        .iter()
        .any(|field| rest.starts_with(field))
}

/// The frames of a captured stream; a last frame without its blank line counts.
fn frames(bytes: &[u8], limits: sse::Limits) -> Result<Vec<sse::Frame>, DecodeError> {
    let mut decoder = sse::Decoder::new(limits);
    let mut frames = Vec::new();
    // In pieces, so that a line beyond the limit is refused without being buffered.
    for chunk in bytes.chunks(64 << 10) {
        decoder.push(chunk);
        while let Some(frame) = decoder.next_frame()? {
            frames.push(frame);
        }
    }
    if let sse::End::Unterminated(frame) = decoder.finish()? {
        frames.push(frame);
    }
    Ok(frames)
}

fn document(codec: &Codec, value: &Value<'_>) -> Result<Transcript, DecodeError> {
    if let Some(items) = value.as_array() {
        return array(codec, items);
    }
    match codec.document_kind(value) {
        DocumentKind::Request => Ok(Transcript {
            shape: TranscriptShape::Request,
            request: codec.decode_request(value)?,
        }),
        DocumentKind::Response => Ok(Transcript::of(codec.decode_response(value)?.messages)),
        DocumentKind::Error => {
            let message = codec.decode_error(value).map(|error| error.message);
            let message = message.unwrap_or_default();
            Err(DecodeError::new(
                &Path::Root,
                Problem::ErrorBody { message },
            ))
        }
        DocumentKind::Message | DocumentKind::Unknown => Ok(Transcript::of(
            codec.decode_messages(std::slice::from_ref(value))?,
        )),
    }
}

fn array(codec: &Codec, items: &[Value<'_>]) -> Result<Transcript, DecodeError> {
    let responses = items
        .iter()
        .all(|item| codec.document_kind(item) == DocumentKind::Response);
    // A list of partial responses is how one vendor streams without an event stream.
    if responses && codec.streams_as_array() && !items.is_empty() {
        let frames: Vec<_> = items
            .iter()
            .map(|item| sse::Frame {
                event: None,
                data: item.raw().to_owned(),
                id: None,
                retry: None,
            })
            .collect();
        return Ok(Transcript::of(assemble(codec, &frames)?.messages));
    }
    Ok(Transcript::of(codec.decode_messages(items)?))
}

/// Write a transcript in a format; what the format cannot express is noted.
pub fn write(transcript: &Transcript, format: &Format, losses: &mut Losses) -> String {
    let codec = match format {
        Format::Neutral => return neutral::write(transcript),
        Format::Vendor(wire) => codec(wire),
    };
    let Some(codec) = codec else {
        return String::from("null");
    };
    match transcript.shape {
        TranscriptShape::Request => codec.encode_request(&transcript.request, losses),
        TranscriptShape::Array => {
            let request = &transcript.request;
            if request.system.is_empty() {
                return codec.encode_messages(&request.messages, losses);
            }
            let mut messages = vec![Message::new(Role::System, request.system.clone())];
            messages.extend(request.messages.iter().cloned());
            codec.encode_messages(&messages, losses)
        }
    }
}
