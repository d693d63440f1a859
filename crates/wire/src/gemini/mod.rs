//! Gemini generateContent: contents with parts.
//!
//! A content of the model is one neutral assistant message. In a content of the user, function
//! responses are a tool message and everything else a user message; together they are one content
//! again on the way back. Every part is one neutral content.
//!
//! Ids are optional here and are never invented: what came without an id goes back without, and
//! calls and results of other vendors are written without, unless the call that is answered came
//! from Gemini with one.
//!
//! What is not here on purpose: signatures for calls of other vendors, and the order that the
//! service demands of a history. Both belong to rendering.

mod candidate;
pub(crate) mod compose;
mod decode;
pub(crate) mod encode;
mod encode_stream;
mod pairing;
mod partial_args;
mod parts;
pub(crate) mod render;
mod response_body;
mod stream;
mod tools;
mod translate;
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

pub use types::PART_TYPES;

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::Gemini,
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
    approval_item: |_| None,
};

/// The codec of Gemini generateContent.
pub static CODEC: Codec = Codec {
    wire: Wire::Gemini,
    types: &[&PART_TYPES],
    document_kind: decode::document_kind,
    decode_messages: decode::messages,
    encode_items: encode::contents,
    decode_request: decode::request,
    encode_request: encode::request,
    decode_response: decode::response,
    encode_response: encode::response,
    stream: || Box::new(stream::Decoder::default()),
    streams_as_array: true,
    encode_stream: encode_stream::encode_stream,
    decode_error: |body| google::decode_error(&Wire::Gemini, body),
    encode_error: |error| google::encode_error(&Wire::Gemini, error),
};
