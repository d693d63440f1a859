//! Azure Foundry: the OpenAI Responses protocol with items of its own.
//!
//! The service runs nine tools whose call and output are two items with one `call_id`; it adds
//! memory searches, workflow actions, requests for consent and structured outputs. Everything else
//! is that of [`openai_responses`], with two or three members more, which
//! are kept.

pub(crate) mod compose;
mod render;
mod types;
mod validate;

#[cfg(test)]
mod tests;

use throughline_model::Wire;

use crate::compose::ComposeFormat;
use crate::openai_responses::{self, Dialect, Flavour, body, decode, encode, stream};
use crate::validate::ValidateFormat;
use crate::validate::report::PathStyle;
use crate::vendors::VendorFormat;
use crate::{Codec, WireType, openai};

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

/// The codec of Azure Foundry: that of OpenAI Responses with its own item types. Every item that is
/// made has its `type`, which Foundry demands of messages too. Foundry's own items come whole in
/// `output_item.done`; their progress events have no neutral form and are passed on. What came from
/// Foundry goes back as it was, with `agent_reference`, `response_id` and `created_by`: the renderer
/// leaves out what the service sends but does not take.
pub static CODEC: Codec = Codec {
    wire: Wire::Foundry,
    types: TABLES,
    document_kind: decode::document_kind,
    decode_messages: |items, path| decode::messages(&FOUNDRY, items, path),
    encode_items: |messages, losses| encode::items(&FOUNDRY, messages, losses),
    decode_request: |body| decode::request(&FOUNDRY, body),
    encode_request: |request, losses| body::request(&FOUNDRY, request, losses),
    decode_response: |body| decode::response(&FOUNDRY, body),
    encode_response: |response, losses| body::response(&FOUNDRY, response, losses),
    stream: || Box::new(stream::Decoder::new(&FOUNDRY)),
    streams_as_array: false,
    encode_stream: |response, losses| stream::encode_stream(&FOUNDRY, response, losses),
    decode_error: |body| decode::error(&FOUNDRY.wire, body),
    encode_error: |error| openai::encode_error(&FOUNDRY.wire, error),
};
