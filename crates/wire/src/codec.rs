use throughline_model::json::Value;
use throughline_model::{Event, Fold, Message, Path, Request, Response, VendorError, Wire};

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
/// Decoding and encoding through the same codec gives back the same JSON (key order aside):
/// nothing is repaired, reordered, added or dropped. Encoding what came from elsewhere expresses
/// what it can and lists the rest as losses. Every method is a pure function.
pub trait Codec: Send + Sync {
    /// The format that this codec reads and writes.
    fn wire(&self) -> Wire;

    /// The types of items or contents that the format knows, as tables.
    fn types(&self) -> &'static [&'static [WireType]];

    /// What a JSON object of this format is.
    fn document_kind(&self, value: &Value<'_>) -> DocumentKind;

    /// Read an array of messages or items.
    fn decode_messages(&self, items: &[Value<'_>]) -> Result<Vec<Message>, DecodeError>;

    /// Write messages as the format's own messages or items, each as JSON text.
    fn encode_items(&self, messages: &[Message], losses: &mut Losses) -> Vec<String>;

    /// Write an array of messages or items as JSON text.
    fn encode_messages(&self, messages: &[Message], losses: &mut Losses) -> String;

    /// Read the body of a request.
    fn decode_request(&self, body: &Value<'_>) -> Result<Request, DecodeError>;

    /// Write the body of a request as JSON text.
    fn encode_request(&self, request: &Request, losses: &mut Losses) -> String;

    /// Read the body of a response.
    fn decode_response(&self, body: &Value<'_>) -> Result<Response, DecodeError>;

    /// Write the body of a response as JSON text.
    fn encode_response(&self, response: &Response, losses: &mut Losses) -> String;

    /// A reader of one streamed response.
    fn stream(&self) -> Box<dyn StreamDecoder>;

    /// Whether a JSON array of partial responses is a stream of this format.
    fn streams_as_array(&self) -> bool;

    /// Write a whole response as the frames of a stream.
    fn encode_stream(&self, response: &Response, losses: &mut Losses) -> Vec<Frame>;

    /// Read the body of an error; `None` if it is not one of this format.
    fn decode_error(&self, body: &Value<'_>) -> Option<VendorError>;

    /// Write the body of an error as JSON text.
    fn encode_error(&self, error: &VendorError) -> String;
}

/// The codec of a format; `None` for one that this version does not know.
pub fn codec(wire: &Wire) -> Option<&'static dyn Codec> {
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
pub fn assemble(codec: &dyn Codec, frames: &[Frame]) -> Result<Response, DecodeError> {
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
