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

use throughline_model::Wire;

use crate::compose::ComposeFormat;
use crate::openai_responses::{self, Dialect, Flavour};
use crate::validate::ValidateFormat;
use crate::validate::report::PathStyle;
use crate::vendors::VendorFormat;
use crate::{Codec, WireType};

pub use types::ITEM_TYPES;
pub(crate) use types::is_response_only;

/// Foundry's item types, then those that it shares with OpenAI.
static TABLES: &[&[WireType]] = &[&ITEM_TYPES, &openai_responses::ITEM_TYPES];

static FOUNDRY: Dialect = Dialect {
    wire: Wire::Foundry,
    tables: TABLES,
    renamed_type: types::renamed_type,
    flavour: Flavour::Foundry,
    roles: &types::ROLES,
    error_codes: &[&openai_responses::ERROR_CODES],
};

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::Foundry,
    codec: &CODEC,
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

/// The codec of Azure Foundry: that of OpenAI Responses with its own item types.
pub static CODEC: Codec = Codec {
    wire: Wire::Foundry,
    types: TABLES,
    document_kind: openai_responses::decode::document_kind,
    decode_messages: decode::messages,
    encode_items: encode::items,
    decode_request: decode::request,
    encode_request: encode::request,
    decode_response: decode::response,
    encode_response: encode::response,
    stream: stream::decoder,
    streams_as_array: false,
    encode_stream: stream::encode_stream,
    decode_error: decode::error,
    encode_error: encode::error,
};
