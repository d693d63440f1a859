//! What a model is shown of a conversation: a view that only grows, what was rendered of it, and how
//! a long one is put in short.

mod compaction;
mod condense;
mod summary;
mod view;

pub use compaction::Compaction;
pub(crate) use compaction::{Asked as AskedOf, Between, Compacted, Decided, number};
pub use condense::{Condensed, condense};
pub(crate) use summary::{Hand, Writing, Wrote};
pub use view::{MOST_LOSSES, Rendering, View};
