//! Gemini generateContent: contents with parts.
//!
//! A content of the model is one assistant message of ours. In a content of the user, function
//! responses are a tool message and everything else a user message; together they are one content
//! again on the way back. Every part is one content of ours.
//!
//! Ids are optional here and are never invented: what came without an id goes back without, and
//! calls and results from elsewhere are written without, unless the call that is answered came
//! from Gemini with one.
//!
//! What is not here on purpose: signatures for calls of other vendors, and the order that the
//! service demands of a history. Both belong to rendering.

mod candidate;
pub(crate) mod compose;
mod decode;
pub(crate) mod encode;
mod encode_stream;
mod pairing;
mod partial_args;
mod parts;
pub(crate) mod render;
mod response_body;
mod stream;
mod tools;
mod translate;
mod types;
mod validate;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod translate_tests;

use throughline_model::json::Value;
use throughline_model::{Message, Path, Request, Response, VendorError, Wire};

use crate::compose::ComposeFormat;
use crate::message_writer::array;
use crate::sse::Frame;
use crate::validate::ValidateFormat;
use crate::validate::report::PathStyle;
use crate::vendors::VendorFormat;
use crate::{Codec, DecodeError, DocumentKind, Losses, StreamDecoder, WireType, google};

pub use types::PART_TYPES;

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::Gemini,
    codec: &Gemini,
    render: &render::RENDER,
    compose: ComposeFormat {
        write: compose::write,
        hosted_tool: compose::hosted_tool,
    },
    validate: ValidateFormat {
        paths: PathStyle::Brackets,
        check: validate::check,
    },
    approval_item: |_| None,
};

/// The codec of Gemini generateContent.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

impl Codec for Gemini {
    fn wire(&self) -> Wire {
        Wire::Gemini
    }

    fn types(&self) -> &'static [&'static [WireType]] {
        static TABLES: [&[WireType]; 1] = [&PART_TYPES];
        &TABLES
    }

    fn document_kind(&self, value: &Value<'_>) -> DocumentKind {
        decode::document_kind(value)
    }

    fn decode_messages(&self, items: &[Value<'_>]) -> Result<Vec<Message>, DecodeError> {
        decode::messages(items, &Path::Root)
    }

    fn encode_items(&self, messages: &[Message], losses: &mut Losses) -> Vec<String> {
        encode::contents(messages, losses)
    }

    fn encode_messages(&self, messages: &[Message], losses: &mut Losses) -> String {
        array(&self.encode_items(messages, losses))
    }

    fn decode_request(&self, body: &Value<'_>) -> Result<Request, DecodeError> {
        decode::request(body)
    }

    fn encode_request(&self, request: &Request, losses: &mut Losses) -> String {
        encode::request(request, losses)
    }

    fn decode_response(&self, body: &Value<'_>) -> Result<Response, DecodeError> {
        decode::response(body)
    }

    fn encode_response(&self, response: &Response, losses: &mut Losses) -> String {
        encode::response(response, losses)
    }

    fn stream(&self) -> Box<dyn StreamDecoder> {
        Box::new(stream::Decoder::default())
    }

    fn streams_as_array(&self) -> bool {
        true
    }

    fn encode_stream(&self, response: &Response, losses: &mut Losses) -> Vec<Frame> {
        encode_stream::encode_stream(response, losses)
    }

    fn decode_error(&self, body: &Value<'_>) -> Option<VendorError> {
        google::decode_error(&Wire::Gemini, body)
    }

    fn encode_error(&self, error: &VendorError) -> String {
        google::encode_error(&Wire::Gemini, error)
    }
}
