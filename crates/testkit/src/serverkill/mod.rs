//! The server under kills: its scripted upstream, a client that sees every byte, and a ledger
//! outside of all processes.
//!
//! Every turn has a unique name (`c3.17`), which is part of its input and of the model's answer. So
//! each request to the upstream contains the names of the whole chain, in order, and an answer
//! names the model call that it comes from.

mod exchange;
mod ledger;
mod model;
mod stream_log;

pub use exchange::{Exchange, Request};
pub use ledger::{Counts, Guard, ModelCall, ServerLedger, Turn};
pub use model::{mark, model, said};
pub use stream_log::{Event, StreamLog};
