//! Anthropic Messages: messages that hold blocks.
//!
//! Calls are blocks of assistant messages. Results of tools that the application runs are blocks
//! of the user message after it; results of tools that Anthropic runs stand beside their calls.
//! So a user message with results and text becomes a tool message and a user message of ours;
//! only its first content carries the envelope, and they come back as one.
//!
//! The `input` of a call is an object. Where a stream broke off inside it, the text that came is
//! kept as a JSON *string* in the place of the object: the body stays valid JSON, nothing is lost,
//! and no whole input is ever a string. Such a call has arguments as text and is marked incomplete.
//! In a whole body the vendor closes what its model left open, so that a call at the end of a
//! response that ended with `max_tokens` is marked incomplete whatever its input looks like.

pub(crate) mod compose;
mod decode;
mod encode;
mod encode_stream;
mod media;
mod parts;
mod render;
pub(crate) mod request;
mod stream;
mod translate;
mod types;
mod validate;

#[cfg(test)]
mod tests;

use throughline_model::json::Value;
use throughline_model::{Message, Path, Request, Response, VendorError, Wire};

use crate::compose::ComposeFormat;
use crate::message_writer::array;
use crate::sse::Frame;
use crate::validate::ValidateFormat;
use crate::validate::report::PathStyle;
use crate::vendors::VendorFormat;
use crate::{Codec, DecodeError, DocumentKind, Losses, StreamDecoder, WireType};

pub use types::BLOCK_TYPES;

/// The member of a message that holds its blocks.
const CONTENT: &str = "content";

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::Anthropic,
    codec: &Anthropic,
    render: &render::RENDER,
    compose: ComposeFormat {
        write: compose::write,
        hosted_tool: compose::hosted_tool,
    },
    validate: ValidateFormat {
        paths: PathStyle::Dots,
        check: validate::check,
    },
    approval_item: |_| None,
};

/// The codec of Anthropic Messages.
#[derive(Clone, Copy, Debug)]
pub struct Anthropic;

impl Codec for Anthropic {
    fn wire(&self) -> Wire {
        Wire::Anthropic
    }

    fn types(&self) -> &'static [&'static [WireType]] {
        static TABLES: &[&[WireType]] = &[&BLOCK_TYPES];
        TABLES
    }

    fn document_kind(&self, value: &Value<'_>) -> DocumentKind {
        decode::document_kind(value)
    }

    fn decode_messages(&self, items: &[Value<'_>]) -> Result<Vec<Message>, DecodeError> {
        decode::messages(items, &Path::Root)
    }

    fn encode_items(&self, messages: &[Message], losses: &mut Losses) -> Vec<String> {
        encode::messages(messages, 0, losses)
    }

    fn encode_messages(&self, messages: &[Message], losses: &mut Losses) -> String {
        array(&self.encode_items(messages, losses))
    }

    fn decode_request(&self, body: &Value<'_>) -> Result<Request, DecodeError> {
        request::decode_request(body)
    }

    fn encode_request(&self, request: &Request, losses: &mut Losses) -> String {
        request::encode_request(request, losses)
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
        false
    }

    fn encode_stream(&self, response: &Response, losses: &mut Losses) -> Vec<Frame> {
        encode_stream::encode_stream(response, losses)
    }

    fn decode_error(&self, body: &Value<'_>) -> Option<VendorError> {
        decode::error(body)
    }

    fn encode_error(&self, error: &VendorError) -> String {
        encode::error(error)
    }
}
