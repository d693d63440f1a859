//! The server under kills: what its upstream says, a client that sees every byte, and a ledger kept
//! outside of all processes.
//!
//! Every turn has a name of its own (`c3.17`), which stands in what the caller says and in what the
//! model answers. So each request to the upstream shows the whole chain that it goes on, in order,
//! and an answer says which asking of the model it comes from.

mod exchange;
mod ledger;
mod model;
mod told;

pub use exchange::{Exchange, Request};
pub use ledger::{Counts, Guard, ModelCall, ServerLedger, Turn};
pub use model::{mark, model, said};
pub use told::{Event, Told};
