//! Anthropic Messages: messages that hold blocks.
//!
//! Calls are blocks of assistant messages. Results of tools that the application runs are blocks of
//! the user message after it; results of tools that Anthropic runs stand beside their calls. So a
//! user message with results and text becomes a neutral tool message and a neutral user message;
//! only its first content carries the envelope, and they come back as one.
//!
//! The `input` of a call is an object. Where a stream ended inside it, the text that came is kept
//! as a JSON *string* in the place of the object: the body stays valid JSON, nothing is lost, and
//! no whole input is ever a string. Such a call has arguments as text and is marked incomplete. In
//! a whole body the vendor closes what its model left open, so that a call at the end of a response
//! that ended with `max_tokens` is marked incomplete whatever its input looks like.

pub(crate) mod compose;
mod decode;
mod encode;
mod encode_stream;
mod media;
mod parts;
mod render;
pub(crate) mod request;
mod stream;
mod translate;
mod types;
mod validate;

#[cfg(test)]
mod tests;

use throughline_model::Wire;

use crate::Codec;
use crate::compose::ComposeFormat;
use crate::validate::ValidateFormat;
use crate::validate::report::PathStyle;
use crate::vendors::VendorFormat;

pub use types::BLOCK_TYPES;

/// The member of a message that holds its blocks.
const CONTENT: &str = "content";

/// The entry of this format in the list of vendor formats.
pub(crate) static FORMAT: VendorFormat = VendorFormat {
    wire: Wire::Anthropic,
    codec: &CODEC,
    render: &render::RENDER,
    compose: ComposeFormat {
        write: compose::write,
        hosted_tool: compose::hosted_tool,
    },
    validate: ValidateFormat {
        paths: PathStyle::Dots,
        check: validate::check,
    },
    approval_item: |_| None,
};

/// The codec of Anthropic Messages.
pub static CODEC: Codec = Codec {
    wire: Wire::Anthropic,
    types: &[&BLOCK_TYPES],
    document_kind: decode::document_kind,
    decode_messages: decode::messages,
    encode_items: |messages, losses| encode::messages(messages, 0, losses),
    decode_request: request::decode_request,
    encode_request: request::encode_request,
    decode_response: decode::response,
    encode_response: encode::response,
    stream: || Box::new(stream::Decoder::default()),
    streams_as_array: false,
    encode_stream: encode_stream::encode_stream,
    decode_error: decode::error,
    encode_error: encode::error,
};
