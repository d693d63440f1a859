//! Replayed agent sessions, and what an agent needs of its past.
//!
//! A session is a list of messages; each message of the model was one model call, and the agent
//! that prepares that call sees only what came before it. What later calls use is a [`Need`], what
//! must still be known at the end is a [`Fact`]. This module shares no code with what it measures,
//! so that both cannot be wrong in the same way.

mod atoms;
mod bills;
mod facts;
mod needs;
mod session;
mod synthetic;
mod text;
mod vendors;

pub use atoms::{atoms, stands_in};
pub use bills::{Billed, billed};
pub use facts::{Fact, FactKind, error_line, facts, folded};
pub use needs::{Need, Origin, needs};
pub use session::{Session, Unreadable, recorded};
pub use synthetic::{long, synthetic};
pub use text::{argument_strings, message_texts};
pub use vendors::is_refused;

/// How many tool calls ago something must have been to count as the past.
pub const RECENT: usize = 6;
