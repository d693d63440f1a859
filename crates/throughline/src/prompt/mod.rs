//! What a model is sent of a conversation: a view that only grows, its cached renderings, and
//! compaction of long histories.

mod compaction;
mod condense;
mod summary;
mod view;

pub use compaction::Compaction;
pub(crate) use compaction::{Compacted, PlannedCompaction, PromptRequest, RunOnly, number};
pub use condense::{Condensed, condense};
pub(crate) use summary::{PendingSummary, SummaryResult, SummaryWriter};
pub use view::{MOST_LOSSES, Rendering, View};
