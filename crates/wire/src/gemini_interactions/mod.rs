//! Gemini Interactions: a flat list of typed steps.
//!
//! The model's steps between two inputs are one assistant message of ours; neighbouring function
//! results are one tool message. Steps come back one by one in their order. Every call has an id
//! and every result the id of its call.

pub(crate) mod compose;
mod decode;
pub(crate) mod encode;
mod encode_stream;
mod media;
mod parts;
mod render;
mod stream;
mod streamed_step;
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

pub use types::STEP_TYPES;

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::GeminiInteractions,
    codec: &GeminiInteractions,
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

/// The codec of Gemini Interactions.
#[derive(Clone, Copy, Debug)]
pub struct GeminiInteractions;

impl Codec for GeminiInteractions {
    fn wire(&self) -> Wire {
        Wire::GeminiInteractions
    }

    fn types(&self) -> &'static [&'static [WireType]] {
        static TABLES: [&[WireType]; 1] = [&STEP_TYPES];
        &TABLES
    }

    fn document_kind(&self, value: &Value<'_>) -> DocumentKind {
        decode::document_kind(value)
    }

    fn decode_messages(&self, items: &[Value<'_>]) -> Result<Vec<Message>, DecodeError> {
        decode::messages(items, &Path::Root)
    }

    fn encode_items(&self, messages: &[Message], losses: &mut Losses) -> Vec<String> {
        encode::steps(messages, losses)
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
        false
    }

    fn encode_stream(&self, response: &Response, losses: &mut Losses) -> Vec<Frame> {
        encode_stream::encode_stream(response, losses)
    }

    fn decode_error(&self, body: &Value<'_>) -> Option<VendorError> {
        google::decode_error(&Wire::GeminiInteractions, body)
    }

    fn encode_error(&self, error: &VendorError) -> String {
        google::encode_error(&Wire::GeminiInteractions, error)
    }
}
