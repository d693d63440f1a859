//! The words of the Responses API, and nothing else: no I/O, no async, no clock.
//!
//! - `request`: the body of a create request, checked and kept.
//! - `input`: the items that a client sends, as messages.
//! - `items`: what was said, as the items that a client reads; `listing` for whole histories.
//! - `envelope`: reasoning that a client carries for us.
//! - `parcel`: a conversation in short that a client carries for us.
//! - `object`: the Response object.
//! - `project`: the events of a run as the frames of a stream. The number of a frame and its bytes
//!   follow from the events before it, for every reader and after every restart.

mod base64;
mod echo;
mod envelope;
mod frame;
mod ids;
mod ignored;
mod input;
mod items;
mod listing;
mod object;
mod parcel;
mod pieces;
mod project;
mod read;
mod request;
mod same;
mod scene;

pub(in crate::responses) use envelope::named;
pub use frame::{DONE, Frame};
pub use ids::{ItemId, ItemPlace};
pub(crate) use ignored::{Handling, MEMBERS, handling, is_content, left_out, of_history, of_loss};
pub use ignored::{Ignored, Unsupported};
pub use input::{InputItem, InputItems, InputPart, duplicate_item, messages_of, not_ours, parts};
pub(crate) use items::OWN_WIRE;
pub use listing::{Item, Listing, Spoke, Spoken, input_items};
pub(in crate::responses) use object::Tally;
pub(in crate::responses) use parcel::PURPOSE as PARCEL_PURPOSE;
pub use parcel::{BadParcel, Brought, Parcel};
pub use pieces::{Pieces, Shared, held_bytes};
pub use project::Projector;
pub use request::{
    Allowed, CompactionAsked, CreateRequest, Extras, Include, Managed, McpTool, RequestTool,
    RequireApproval, ToolFilter, ToolName, ToolPick, Wished,
};
pub use same::same_item;
pub use scene::{Asked, Dialect, Ending, KnownCall, Labels, Scene, ServerTool, ToolList};
