//! Vendor formats, both ways: decode what a vendor sent into messages, encode messages for a
//! vendor. No I/O, no clocks, no async.
//!
//! - [`Codec`] is what each format offers; [`codec`] finds it by [`Wire`].
//! - [`render`](mod@render) makes of any history what a vendor accepts, [`compose`](mod@compose)
//!   writes the body of a model call around it, [`validate`](mod@validate) says what a vendor
//!   would refuse.
//! - [`sse`] reads and writes event streams; each codec turns their frames into model events.
//! - [`http`] reads what stands around a body: rate limits, retry advice, request ids.
//! - [`transcript`] reads and writes whole files of any shape, [`convert`] goes from one format
//!   to another.
//!
//! Nothing that a vendor sent is lost on the way back to the same vendor; what another vendor
//! cannot take is listed as a [`Loss`], never dropped silently.
//!
//! ```
//! use throughline_wire::{codec, Losses, Wire};
//! use throughline_model::json;
//!
//! let text = r#"[{"role":"user","content":"hi"},{"type":"brand_new","x":1.0}]"#;
//! let responses = codec(&Wire::OpenAiResponses).unwrap();
//! let items = json::parse(text).unwrap();
//! let messages = responses.decode_messages(items.as_array().unwrap()).unwrap();
//! let mut losses = Losses::default();
//! assert_eq!(responses.encode_messages(&messages, &mut losses), text);
//! assert!(losses.is_empty());
//! ```

pub mod anthropic;
pub mod compose;
pub mod foundry;
pub mod gemini;
pub mod gemini_interactions;
pub mod http;
pub mod openai_chat;
pub mod openai_responses;
pub mod render;
pub mod sse;
pub mod transcript;
pub mod validate;

mod approval;
mod closed_schema;
mod codec;
mod convert;
mod error;
mod flat;
mod foreign;
mod format;
mod google;
mod loss;
mod media;
mod message_writer;
mod native;
mod object_builder;
mod openai;
mod read;
mod template;
mod truncated_call;
mod vendors;
mod wire_type;

pub use approval::approval_answer;
pub use codec::{Codec, DocumentKind, StreamDecoder, assemble, codec};
pub use convert::{
    ConvertOptions, Converted, Repairing, convert, convert_transcript, render_transcript,
};
pub use error::{DecodeError, Problem};
pub use format::{Format, UnknownFormat};
pub use loss::{Loss, LossKind, Losses};
pub use throughline_model::Wire;
pub use wire_type::{ArgumentsAt, IdClass, ItemRole, OutputAt, WireType};
