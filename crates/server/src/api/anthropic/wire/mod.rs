//! The formats of the Messages API beyond its blocks, which the codec reads: no I/O, no async.
//!
//! - `request`: the body of a request; `settings` what it sets; `tools` its functions; `sealed` the
//!   reasoning of other vendors that comes back in its blocks; `left_out` what is not carried out.
//! - `block`: the contents of an answer as blocks.
//! - `message`: the whole answer; `block_stream` the same as the frames of a stream.

mod block;
mod block_stream;
mod left_out;
mod message;
mod request;
mod sealed;
mod settings;
mod tools;

pub(super) use block_stream::BlockWriter;
pub(super) use left_out::{betas, left_out, member_of, setting_member};
pub(super) use message::{MessageBody, message_id};
pub(super) use request::MessagesRequest;
