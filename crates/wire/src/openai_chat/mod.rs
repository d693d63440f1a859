//! OpenAI Chat Completions, and what the many servers that speak it make of it.
//!
//! Calls are elements of an assistant message, results are messages. One assistant message is one
//! neutral message; neighbouring results are one tool message.

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

use throughline_model::Wire;

use crate::Codec;
use crate::compose::ComposeFormat;
use crate::openai;
use crate::validate::ValidateFormat;
use crate::validate::report::PathStyle;
use crate::vendors::VendorFormat;

pub use types::ITEM_TYPES;

const WIRE: Wire = Wire::OpenAiChat;

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::OpenAiChat,
    codec: &CODEC,
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
pub static CODEC: Codec = Codec {
    wire: WIRE,
    types: &[&ITEM_TYPES],
    document_kind: decode::document_kind,
    decode_messages: decode::messages,
    encode_items: encode::messages,
    decode_request: decode::request,
    encode_request: body::request,
    decode_response: decode::response,
    encode_response: body::response,
    stream: || Box::new(stream::Decoder::default()),
    streams_as_array: false,
    encode_stream: encode_stream::encode_stream,
    decode_error: decode::error,
    encode_error: |error| openai::encode_error(&WIRE, error),
};
