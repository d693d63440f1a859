//! The formats of the Responses API beyond its items: no I/O, no async, no clock.
//!
//! - `request`: the body of a create request, checked and kept.
//! - `object`: the Response object.
//! - `project`: the events of a run as the frames of a stream. The number of a frame and its bytes
//!   follow from the events before it, for every reader and after every restart.

pub(crate) mod context;
mod echo;
mod frame;
mod ignored;
mod object;
mod project;
pub(crate) mod request;

use crate::api::openai::items;

pub use context::{Ending, ResponseContext};
pub use frame::{DONE, Frame};
pub use ignored::Ignored;
pub(crate) use ignored::{Handling, handling, left_out, member_of, of_history, of_loss};
pub(in crate::api::openai::responses) use object::UsageTotal;
pub use project::Projector;
pub(in crate::api::openai) use request::metadata;
pub use request::{
    AllowedTools, CompactionOverride, CompactionRequest, ContextManagement, CreateRequest, Extras,
    Include, McpTool, RequestTool, RequireApproval, ToolFilter, ToolSelection,
};
