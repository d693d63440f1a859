use throughline_model::json::Value;
use throughline_model::{Event, Fold, Message, Path, Request, Response, VendorError, Wire};

use crate::message_writer::array;
use crate::sse::Frame;
use crate::{DecodeError, Losses, WireType, vendors};

/// What a JSON object of a format is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// The body of a request.
    Request,
    /// The body of a response.
    Response,
    /// One message or item.
    Message,
    /// The body of an error.
    Error,
    /// None of the above.
    Unknown,
}

/// One vendor format, both ways.
///
/// Decoding and encoding through the same codec gives back the same JSON (key order aside): nothing
/// is repaired, reordered, added or dropped. Encoding contents of another vendor expresses what it
/// can and lists the rest as losses. Every method is a pure function.
pub struct Codec {
    pub(crate) wire: Wire,
    pub(crate) types: &'static [&'static [WireType]],
    pub(crate) document_kind: fn(&Value<'_>) -> DocumentKind,
    pub(crate) decode_messages: fn(&[Value<'_>], &Path<'_>) -> Result<Vec<Message>, DecodeError>,
    pub(crate) encode_items: fn(&[Message], &mut Losses) -> Vec<String>,
    pub(crate) decode_request: fn(&Value<'_>) -> Result<Request, DecodeError>,
    pub(crate) encode_request: fn(&Request, &mut Losses) -> String,
    pub(crate) decode_response: fn(&Value<'_>) -> Result<Response, DecodeError>,
    pub(crate) encode_response: fn(&Response, &mut Losses) -> String,
    pub(crate) stream: fn() -> Box<dyn StreamDecoder>,
    pub(crate) streams_as_array: bool,
    pub(crate) encode_stream: fn(&Response, &mut Losses) -> Vec<Frame>,
    pub(crate) decode_error: fn(&Value<'_>) -> Option<VendorError>,
    pub(crate) encode_error: fn(&VendorError) -> String,
}

impl Codec {
    /// The format that this codec reads and writes.
    pub fn wire(&self) -> Wire {
        self.wire.clone()
    }

    /// The types of items or contents that the format knows, as tables.
    pub fn types(&self) -> &'static [&'static [WireType]] {
        self.types
    }

    /// What a JSON object of this format is.
    pub fn document_kind(&self, value: &Value<'_>) -> DocumentKind {
        (self.document_kind)(value)
    }

    /// Read an array of messages or items.
    pub fn decode_messages(&self, items: &[Value<'_>]) -> Result<Vec<Message>, DecodeError> {
        (self.decode_messages)(items, &Path::Root)
    }

    /// Write messages as the format's own messages or items, each as JSON text.
    pub fn encode_items(&self, messages: &[Message], losses: &mut Losses) -> Vec<String> {
        (self.encode_items)(messages, losses)
    }

    /// Write an array of messages or items as JSON text.
    pub fn encode_messages(&self, messages: &[Message], losses: &mut Losses) -> String {
        array(&self.encode_items(messages, losses))
    }

    /// Read the body of a request.
    pub fn decode_request(&self, body: &Value<'_>) -> Result<Request, DecodeError> {
        (self.decode_request)(body)
    }

    /// Write the body of a request as JSON text.
    pub fn encode_request(&self, request: &Request, losses: &mut Losses) -> String {
        (self.encode_request)(request, losses)
    }

    /// Read the body of a response.
    pub fn decode_response(&self, body: &Value<'_>) -> Result<Response, DecodeError> {
        (self.decode_response)(body)
    }

    /// Write the body of a response as JSON text.
    pub fn encode_response(&self, response: &Response, losses: &mut Losses) -> String {
        (self.encode_response)(response, losses)
    }

    /// A reader of one streamed response.
    pub fn stream(&self) -> Box<dyn StreamDecoder> {
        (self.stream)()
    }

    /// Whether a JSON array of partial responses is a stream of this format.
    pub fn streams_as_array(&self) -> bool {
        self.streams_as_array
    }

    /// Write a whole response as the frames of a stream.
    pub fn encode_stream(&self, response: &Response, losses: &mut Losses) -> Vec<Frame> {
        (self.encode_stream)(response, losses)
    }

    /// Read the body of an error; `None` if it is not one of this format.
    pub fn decode_error(&self, body: &Value<'_>) -> Option<VendorError> {
        (self.decode_error)(body)
    }

    /// Write the body of an error as JSON text.
    pub fn encode_error(&self, error: &VendorError) -> String {
        (self.encode_error)(error)
    }
}

/// The codec of a format; `None` for one that this version does not know.
pub fn codec(wire: &Wire) -> Option<&'static Codec> {
    vendors::find(wire).map(|vendor| vendor.codec)
}

/// Reads the frames of one streamed response as model events.
///
/// Feeding its events to a [`Fold`] gives the response that the codec would have read from the
/// whole body.
pub trait StreamDecoder: Send {
    /// Take one frame. After an error the response is lost; nothing more should be pushed.
    fn push(&mut self, frame: &Frame) -> Result<Vec<Event>, DecodeError>;

    /// The input is over. Gives what was held back; nothing if the vendor ended properly.
    fn end(&mut self) -> Result<Vec<Event>, DecodeError>;
}

/// Read all frames of a streamed response.
pub fn assemble(codec: &Codec, frames: &[Frame]) -> Result<Response, DecodeError> {
    let mut decoder = codec.stream();
    let mut fold = Fold::new();
    let root = Path::Root.key("event");
    for (index, frame) in frames.iter().enumerate() {
        let events = decoder
            .push(frame)
            .map_err(|error| error.inside(&root.index(index)))?;
        for event in events {
            fold.push(event);
        }
    }
    for event in decoder.end()? {
        fold.push(event);
    }
    Ok(fold.finish())
}
