//! Replayed agent sessions, and what an agent needs of its past.
//!
//! A session is a list of messages; each message of the model was one model call, and the agent
//! that prepares that call sees only what came before it. What later calls use is a [`Need`], what
//! must still be known at the end is a [`Fact`]. A name alone is little use, so there are also names
//! with what they belong to ([`BoundNeed`]), the text that an [`Edit`] replaces, errors that are not
//! resolved ([`Failure`]), numbers and plain words ([`RareValue`]), and names that the model writes
//! about ([`Mention`]). This module shares no code with what it measures,
//! so that both cannot be wrong in the same way.

mod atoms;
mod bills;
mod bound;
mod edits;
mod facts;
mod failures;
mod generated;
mod maker;
mod needs;
mod past;
mod prose;
mod questions;
mod session;
mod synthetic;
mod text;
mod values;
mod vendors;

pub use atoms::{atoms, stands_in};
pub use bills::{Billed, billed};
pub use bound::{BoundNeed, all_owners, bound_needs};
pub use edits::{Edit, editable_text, edits, without_line_numbers};
pub use facts::{Fact, FactKind, error_line, facts, folded};
pub use failures::{Failure, failures};
pub use generated::generated;
pub use needs::{Need, Origin, needs};
pub use prose::{Mention, mentions};
pub use questions::{Question, questions};
pub use session::{Session, Unreadable, recorded, sessions_in};
pub use synthetic::{long, synthetic};
pub use text::{argument_strings, message_texts};
pub use values::{RareValue, ValueKind, rare_values};
pub use vendors::is_refused;

/// How many tool calls ago something must have been to count as the past.
pub const RECENT: usize = 6;
