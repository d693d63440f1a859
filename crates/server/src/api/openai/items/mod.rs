//! Items: what a client sends as input and reads as output, and nothing else: no I/O, no async, no
//! clock.
//!
//! - `input`: the items that a client sends, as messages.
//! - `output`: contents as the items that a client reads; `listing` for whole histories, `page` for a
//!   part of such a list.
//! - `compaction_token`: a compacted conversation that the client stores.

pub(crate) mod compaction_token;
mod compare;
pub(crate) mod ids;
pub(crate) mod input;
mod listing;
pub(crate) mod output;
mod page;
mod status;
mod tool_name;
mod tools;

pub(crate) use crate::api::{envelope, read};

pub(crate) use compaction_token::PURPOSE as COMPACTION_PURPOSE;
pub use compaction_token::{BadCompactionToken, CompactionToken, OpenedToken};
pub use compare::same_item;
pub(crate) use envelope::with_item_id;
pub use ids::{ItemId, ItemPlace};
pub use input::{
    InputItem, InputItems, InputPart, bad_compaction_token, duplicate_item, messages_of, parts,
};
pub use listing::{Item, Listing, MessagePosition, PositionedMessage, input_items};
pub(crate) use output::OWN_WIRE;
pub(in crate::api::openai) use page::{ItemPage, listed};
pub(crate) use status::with_status;
pub use tool_name::ToolName;
pub use tools::{AwaitingApproval, KnownCall, ServerTool, ToolIndex, ToolList};
