//! OpenAI Responses: a flat list of items.
//!
//! A response is one neutral assistant message, whatever number of items it has; neighbouring
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

use throughline_model::Wire;

use crate::compose::ComposeFormat;
use crate::openai;
use crate::validate::ValidateFormat;
use crate::validate::report::PathStyle;
use crate::vendors::VendorFormat;
use crate::{Codec, WireType};

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
    codec: &CODEC,
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
pub static CODEC: Codec = Codec {
    wire: Wire::OpenAiResponses,
    types: &[&ITEM_TYPES],
    document_kind: decode::document_kind,
    decode_messages: |items, path| decode::messages(&OPENAI, items, path),
    encode_items: |messages, losses| encode::items(&OPENAI, messages, losses),
    decode_request: |body| decode::request(&OPENAI, body),
    encode_request: |request, losses| body::request(&OPENAI, request, losses),
    decode_response: |body| decode::response(&OPENAI, body),
    encode_response: |response, losses| body::response(&OPENAI, response, losses),
    stream: || Box::new(stream::Decoder::new(&OPENAI)),
    streams_as_array: false,
    encode_stream: |response, losses| stream::encode_stream(&OPENAI, response, losses),
    decode_error: |body| decode::error(&OPENAI.wire, body),
    encode_error: |error| openai::encode_error(&OPENAI.wire, error),
};
