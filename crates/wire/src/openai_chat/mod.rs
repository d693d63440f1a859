//! OpenAI Chat Completions, and what the many servers that speak it make of it.
//!
//! Calls are elements of an assistant message, results are messages. One assistant message is one
//! message of ours; neighbouring results are one tool message.

mod assembly;
pub(crate) mod body;
pub(crate) mod compose;
mod decode;
pub(crate) mod encode;
mod encode_stream;
mod merge;
mod message;
mod message_builder;
mod parts;
pub(crate) mod render;
mod stream;
mod types;
mod validate;

#[cfg(test)]
mod tests;

use throughline_model::json::Value;
use throughline_model::{Message, Path, Request, Response, VendorError, Wire};

use crate::compose::ComposeFormat;
use crate::message_writer::array;
use crate::openai;
use crate::sse::Frame;
use crate::validate::ValidateFormat;
use crate::validate::report::PathStyle;
use crate::vendors::VendorFormat;
use crate::{Codec, DecodeError, DocumentKind, Losses, StreamDecoder, WireType};

pub use types::ITEM_TYPES;

const WIRE: Wire = Wire::OpenAiChat;

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::OpenAiChat,
    codec: &OpenAiChat,
    render: &render::RENDER,
    compose: ComposeFormat {
        write: compose::write,
        hosted_tool: |_, _| None,
    },
    validate: ValidateFormat {
        paths: PathStyle::Brackets,
        check: validate::check,
    },
    approval_item: |_| None,
};

/// The codec of OpenAI Chat Completions.
#[derive(Clone, Copy, Debug)]
pub struct OpenAiChat;

impl Codec for OpenAiChat {
    fn wire(&self) -> Wire {
        WIRE
    }

    fn types(&self) -> &'static [&'static [WireType]] {
        static TABLES: &[&[WireType]] = &[&ITEM_TYPES];
        TABLES
    }

    fn document_kind(&self, value: &Value<'_>) -> DocumentKind {
        decode::document_kind(value)
    }

    fn decode_messages(&self, items: &[Value<'_>]) -> Result<Vec<Message>, DecodeError> {
        decode::messages(items, &Path::Root)
    }

    fn encode_items(&self, messages: &[Message], losses: &mut Losses) -> Vec<String> {
        encode::messages(messages, losses)
    }

    fn encode_messages(&self, messages: &[Message], losses: &mut Losses) -> String {
        array(&self.encode_items(messages, losses))
    }

    fn decode_request(&self, body: &Value<'_>) -> Result<Request, DecodeError> {
        decode::request(body)
    }

    fn encode_request(&self, request: &Request, losses: &mut Losses) -> String {
        body::request(request, losses)
    }

    fn decode_response(&self, body: &Value<'_>) -> Result<Response, DecodeError> {
        decode::response(body)
    }

    fn encode_response(&self, response: &Response, losses: &mut Losses) -> String {
        body::response(response, losses)
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
        openai::encode_error(&WIRE, error)
    }
}
