//! Azure Foundry: the OpenAI Responses protocol with items of its own.
//!
//! The service runs nine tools whose call and output are two items with one `call_id`; it adds
//! memory searches, workflow actions, requests for consent and structured outputs. Everything else
//! is that of [`openai_responses`], with two or three members more, which
//! are kept.

pub(crate) mod compose;
mod decode;
mod encode;
mod render;
mod stream;
mod types;
mod validate;

#[cfg(test)]
mod tests;

use throughline_model::json::Value;
use throughline_model::{Message, Request, Response, VendorError, Wire};

use crate::compose::ComposeFormat;
use crate::message_writer::array;
use crate::openai_responses::{self, Dialect, Flavour};
use crate::sse::Frame;
use crate::validate::ValidateFormat;
use crate::validate::report::PathStyle;
use crate::vendors::VendorFormat;
use crate::{Codec, DecodeError, DocumentKind, Losses, StreamDecoder, WireType};

pub use types::ITEM_TYPES;
pub(crate) use types::is_response_only;

static FOUNDRY: Dialect = Dialect {
    wire: Wire::Foundry,
    tables: &[&ITEM_TYPES, &openai_responses::ITEM_TYPES],
    renamed_type: decode::renamed_type,
    flavour: Flavour::Foundry,
    roles: &types::ROLES,
    error_codes: &[&openai_responses::ERROR_CODES],
};

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::Foundry,
    codec: &Foundry,
    render: &render::RENDER,
    compose: ComposeFormat {
        write: compose::write,
        hosted_tool: openai_responses::compose::hosted_tool,
    },
    validate: ValidateFormat {
        paths: PathStyle::Brackets,
        check: validate::check,
    },
    approval_item: |answer| openai_responses::render::approval_item(Wire::Foundry, answer),
};

/// The codec of Azure Foundry.
#[derive(Clone, Copy, Debug)]
pub struct Foundry;

impl Codec for Foundry {
    fn wire(&self) -> Wire {
        FOUNDRY.wire.clone()
    }

    fn types(&self) -> &'static [&'static [WireType]] {
        FOUNDRY.tables
    }

    fn document_kind(&self, value: &Value<'_>) -> DocumentKind {
        openai_responses::decode::document_kind(value)
    }

    fn decode_messages(&self, items: &[Value<'_>]) -> Result<Vec<Message>, DecodeError> {
        decode::messages(items)
    }

    fn encode_items(&self, messages: &[Message], losses: &mut Losses) -> Vec<String> {
        encode::items(messages, losses)
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
        stream::decoder()
    }

    fn streams_as_array(&self) -> bool {
        false
    }

    fn encode_stream(&self, response: &Response, losses: &mut Losses) -> Vec<Frame> {
        stream::encode_stream(response, losses)
    }

    fn decode_error(&self, body: &Value<'_>) -> Option<VendorError> {
        decode::error(body)
    }

    fn encode_error(&self, error: &VendorError) -> String {
        encode::error(error)
    }
}
