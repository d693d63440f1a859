//! Strict mock servers of vendors, with faults.
//!
//! [`Upstream`] listens on loopback and speaks one vendor's format: whole and streamed, with the
//! vendor's addresses, headers, ids, usage and framing. It refuses what the vendor refuses: wrong
//! addresses and keys, unknown members, and every history that
//! [`validate`](throughline_wire::validate) refuses, given what this server issued and stored.
//! Answers come from a [`Script`] of [`Reply`]s, and [`Fault`]s can disturb them. Stored answers and
//! conversations can be fetched, listed and deleted, with the vendor's addresses.
//!
//! Its responses are built as the vendor's JSON, not by the codec under test; only streams are
//! written with the codec and then split into smaller events.
//!
//! Absent on purpose: TLS, HTTP/2, and everything else that takes control over single bytes away.

mod counted;
mod entry;
mod fault;
mod frames;
mod gate;
mod http;
mod inflict;
mod members;
mod memory;
mod model_input;
mod recorded;
mod reply;
mod server;
mod state;
mod stored;
mod strict;
mod talk;
#[cfg(test)]
mod tests;
mod vendor;
mod vendor_body;
mod window;

pub use entry::{Entry, entries};
pub use fault::{Expected, Extent, Fault};
pub use gate::Gate;
pub use memory::Origins;
pub use model_input::ModelInput;
pub use recorded::{Recorded, Verdict};
pub use reply::{Reply, ReplyId, Script};
pub use server::{Setup, Upstream};
pub use state::Counts;
pub use stored::ChainLink;
pub use talk::talk;
pub use vendor::KEY;
pub use window::Prompts;
