//! Strict servers that behave like vendors, and what can go wrong with them.
//!
//! [`Upstream`] listens on loopback and speaks one vendor's format: whole and streamed, with the
//! vendor's addresses, headers, ids, figures and framing. It refuses what the vendor refuses: wrong
//! addresses and keys, unknown members, and every history that
//! [`validate`](throughline_wire::validate) objects to, given what this server issued and keeps.
//! Answers come from a [`Script`] of [`Reply`]s, and [`Fault`]s stand between them and the client.
//!
//! What it sends is made from the vendor's own JSON, not by the codec under test; streams alone are
//! written with the codec and then cut into smaller events.
//!
//! Not here on purpose: TLS, HTTP/2, and whatever else would take a byte out of our hands.

mod entry;
mod fault;
mod frames;
mod gate;
mod heard;
mod http;
mod inflict;
mod members;
mod memory;
mod recorded;
mod reply;
mod say;
mod server;
mod state;
mod strict;
mod talk;
#[cfg(test)]
mod tests;
mod vendor;
mod window;

pub use entry::{Entry, entries};
pub use fault::{Expected, Extent, Fault};
pub use gate::Gate;
pub use heard::Heard;
pub use memory::Origins;
pub use recorded::{Recorded, Verdict};
pub use reply::{Reply, ReplyId, Script};
pub use server::{Setup, Upstream};
pub use state::Counts;
pub use talk::talk;
pub use vendor::KEY;
pub use window::Prompts;
