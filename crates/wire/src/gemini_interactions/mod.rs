//! Gemini Interactions: a flat list of typed steps.
//!
//! The model's steps between two inputs are one neutral assistant message; neighbouring function
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

use throughline_model::Wire;

use crate::compose::ComposeFormat;
use crate::validate::ValidateFormat;
use crate::validate::report::PathStyle;
use crate::vendors::VendorFormat;
use crate::{Codec, google};

pub use types::STEP_TYPES;

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::GeminiInteractions,
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

/// The codec of Gemini Interactions.
pub static CODEC: Codec = Codec {
    wire: Wire::GeminiInteractions,
    types: &[&STEP_TYPES],
    document_kind: decode::document_kind,
    decode_messages: decode::messages,
    encode_items: encode::steps,
    decode_request: decode::request,
    encode_request: encode::request,
    decode_response: decode::response,
    encode_response: encode::response,
    stream: || Box::new(stream::Decoder::default()),
    streams_as_array: false,
    encode_stream: encode_stream::encode_stream,
    decode_error: |body| google::decode_error(&Wire::GeminiInteractions, body),
    encode_error: |error| google::encode_error(&Wire::GeminiInteractions, error),
};
