//! The formats of Chat Completions beyond its messages, which the codec reads: no I/O, no async.
//!
//! - `request`: the body of a request; `settings` what it sets; `tools` its functions; `left_out` what
//!   of it is not carried out.
//! - `message`: the contents of an answer as the message of a completion.
//! - `completion`: the whole answer; `chunks` the same as the frames of a stream.

mod chunks;
mod completion;
mod left_out;
mod message;
mod request;
mod settings;
mod tools;

pub(super) use chunks::ChunkWriter;
pub(super) use completion::{Completion, completion_id};
pub(super) use left_out::{left_out, member_of, setting_member};
pub(super) use request::CompletionRequest;
