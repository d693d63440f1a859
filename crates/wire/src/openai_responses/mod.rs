//! OpenAI Responses: a flat list of items.
//!
//! A response is one assistant message of ours, whatever number of items it has; neighbouring
//! results are one tool message. Items come back one by one in their order.

pub(crate) mod body;
pub(crate) mod compose;
pub(crate) mod decode;
pub(crate) mod encode;
mod hosted_results;
mod parts;
pub(crate) mod render;
pub(crate) mod stream;
mod translate;
mod types;
pub(crate) mod validate;

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

pub(crate) use types::ERROR_CODES;
pub use types::ITEM_TYPES;

/// Whose Responses a dialect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    OpenAi,
    Foundry,
}

/// What differs between vendors that speak Responses.
pub(crate) struct Dialect {
    pub(crate) wire: Wire,
    /// Item types, the vendor's own before those it shares.
    pub(crate) tables: &'static [&'static [WireType]],
    /// The item type of a tag that none of the tables has as it is spelled.
    pub(crate) renamed_type: fn(&str) -> Option<&'static WireType>,
    pub(crate) flavour: Flavour,
    /// The roles that messages may have.
    pub(crate) roles: &'static [&'static str],
    /// The codes that the error of a response may have.
    pub(crate) error_codes: &'static [&'static [&'static str]],
}

impl Dialect {
    /// The item type of a tag.
    fn item_type(&self, tag: &str) -> Option<&'static WireType> {
        self.tables
            .iter()
            .flat_map(|table| table.iter())
            .find(|row| row.tag == tag)
            .or_else(|| (self.renamed_type)(tag))
    }
}

static OPENAI: Dialect = Dialect {
    wire: Wire::OpenAiResponses,
    tables: &[&ITEM_TYPES],
    renamed_type: |_| None,
    flavour: Flavour::OpenAi,
    roles: &["user", "assistant", "system", "developer"],
    error_codes: &[&ERROR_CODES, &types::OPENAI_ERROR_CODES],
};

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::OpenAiResponses,
    codec: &OpenAiResponses,
    render: &render::RENDER,
    compose: ComposeFormat {
        write: compose::write,
        hosted_tool: compose::hosted_tool,
    },
    validate: ValidateFormat {
        paths: PathStyle::Brackets,
        check: validate::check,
    },
    approval_item: |answer| render::approval_item(Wire::OpenAiResponses, answer),
};

/// The codec of OpenAI Responses.
#[derive(Clone, Copy, Debug)]
pub struct OpenAiResponses;

impl Codec for OpenAiResponses {
    fn wire(&self) -> Wire {
        OPENAI.wire.clone()
    }

    fn types(&self) -> &'static [&'static [WireType]] {
        OPENAI.tables
    }

    fn document_kind(&self, value: &Value<'_>) -> DocumentKind {
        decode::document_kind(value)
    }

    fn decode_messages(&self, items: &[Value<'_>]) -> Result<Vec<Message>, DecodeError> {
        decode::messages(&OPENAI, items, &Path::Root)
    }

    fn encode_items(&self, messages: &[Message], losses: &mut Losses) -> Vec<String> {
        encode::items(&OPENAI, messages, losses)
    }

    fn encode_messages(&self, messages: &[Message], losses: &mut Losses) -> String {
        array(&self.encode_items(messages, losses))
    }

    fn decode_request(&self, body: &Value<'_>) -> Result<Request, DecodeError> {
        decode::request(&OPENAI, body)
    }

    fn encode_request(&self, request: &Request, losses: &mut Losses) -> String {
        body::request(&OPENAI, request, losses)
    }

    fn decode_response(&self, body: &Value<'_>) -> Result<Response, DecodeError> {
        decode::response(&OPENAI, body)
    }

    fn encode_response(&self, response: &Response, losses: &mut Losses) -> String {
        body::response(&OPENAI, response, losses)
    }

    fn stream(&self) -> Box<dyn StreamDecoder> {
        Box::new(stream::Decoder::new(&OPENAI))
    }

    fn streams_as_array(&self) -> bool {
        false
    }

    fn encode_stream(&self, response: &Response, losses: &mut Losses) -> Vec<Frame> {
        stream::encode_stream(&OPENAI, response, losses)
    }

    fn decode_error(&self, body: &Value<'_>) -> Option<VendorError> {
        decode::error(&OPENAI.wire, body)
    }

    fn encode_error(&self, error: &VendorError) -> String {
        openai::encode_error(&OPENAI.wire, error)
    }
}
