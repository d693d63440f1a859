//! Items: what a client sends as input and reads as output, and nothing else: no I/O, no async, no
//! clock.
//!
//! - `input`: the items that a client sends, as messages.
//! - `output`: what was said, as the items that a client reads; `listing` for whole histories.
//! - `envelope`: reasoning that a client carries for us.
//! - `compaction_token`: a conversation in short that a client carries for us.
//! - `read`: members of a request body, with the errors that clients know.

pub(crate) mod compaction_token;
pub(crate) mod envelope;
pub(crate) mod ids;
pub(crate) mod input;
mod listing;
pub(crate) mod output;
pub(crate) mod read;
mod same;
mod tool_name;
mod tools;

pub(crate) use compaction_token::PURPOSE as COMPACTION_PURPOSE;
pub use compaction_token::{BadCompactionToken, CompactionToken, OpenedToken};
pub(crate) use envelope::named;
pub use ids::{ItemId, ItemPlace};
pub use input::{InputItem, InputItems, InputPart, duplicate_item, messages_of, not_ours, parts};
pub use listing::{Item, Listing, MessagePosition, PositionedMessage, input_items};
pub(crate) use output::OWN_WIRE;
pub use same::same_item;
pub use tool_name::ToolName;
pub use tools::{AwaitingApproval, KnownCall, Labels, ServerTool, ToolList};
