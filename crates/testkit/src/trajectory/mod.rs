//! Agent sessions that are replayed, and what an agent needs of its past while it works.
//!
//! A session is a list of messages; each message of the model was one model call, and the agent that
//! prepares that call sees only what came before it. What later calls make use of is a [`Need`],
//! what must still be known at the end is a [`Fact`]. All of this reads the sessions with an eye of
//! its own: it shares no code with what it measures, so that both cannot be wrong in the same way.

mod atoms;
mod bills;
mod facts;
mod needs;
mod said;
mod session;
mod synthetic;
mod vendors;

pub use atoms::{atoms, stands_in};
pub use bills::{Billed, billed};
pub use facts::{Fact, FactKind, error_line, facts, folded};
pub use needs::{Need, Origin, needs};
pub use said::{argument_strings, said};
pub use session::{Session, Unreadable, recorded};
pub use synthetic::{long, synthetic};
pub use vendors::is_refused;

/// How many tool calls back something must lie to count as the past.
pub const RECENT: usize = 6;
