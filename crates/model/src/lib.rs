//! The words of Throughline: messages, contents, ids, events.
//!
//! This crate defines what a conversation *is*; it does no I/O, has no async and knows no vendor's
//! rules. Vendor formats are read and written by `throughline-wire`, durability is the business of
//! the store.
//!
//! The pieces, from small to large:
//!
//! - [`CallId`]: the id of a tool call, with its [`Origin`]. Its origin tells whether the wire
//!   issued it.
//! - [`Content`]: one content of a message (text, reasoning, media, a tool call, its result, …),
//!   with its vendor's own form in [`Vendor`].
//! - [`Message`]: a role and its contents. [`stored`] is its versioned JSON form.
//! - [`pairs`]: which result answers which call, by occurrence.
//! - [`Event`] and [`Fold`]: the events as which streamed and whole responses are read.
//! - [`tokens`]: about how many tokens a message has, by one pass over it.
//!
//! ```
//! use throughline_model::{CallId, Content, Message, Outcome, Output, Role, ToolCall};
//!
//! let call = ToolCall::function(CallId::natural("call_1").unwrap(), "get_tide", "{}");
//! let result = call.answer(Outcome::Ok, Output::Text("04:12".into()));
//! let asked = Message::new(Role::Assistant, vec![Content::from(call)]);
//! let answered = Message::new(Role::Tool, vec![Content::from(result)]);
//! let history = [asked, answered];
//! assert_eq!(throughline_model::pairs(&history).len(), 1);
//!
//! let text = history[0].to_json();
//! assert_eq!(Message::from_json(&text).unwrap(), history[0]);
//! ```

pub mod json;
pub mod stored;
pub mod tokens;

mod call_id;
mod content;
mod event;
mod extra;
mod family;
mod heap_size;
mod id;
mod message;
mod message_heap_size;
mod message_serde;
mod pair;
mod path;
mod request;
mod response;
mod usage;
mod vendor;

pub use call_id::{CallId, IdField, IdFields, Origin, Scope};
pub use content::{
    ApprovalRequest, ApprovalResponse, Arguments, Body, Citation, Content, Fault, Media, MediaKind,
    MediaSource, Opaque, Outcome, Output, Pairing, Reasoning, Runner, Status, Text, ToolCall,
    ToolResult,
};
pub use event::{Event, Fold, Place};
pub use extra::Extra;
pub use family::Family;
pub use heap_size::HeapSize;
pub use id::{InvalidId, MessageId};
pub use message::{Message, Role, Source};
pub use pair::{ContentAt, Pair, occurrence_in, open_calls, pairs};
pub use path::Path;
pub use request::{AnswerShape, Effort, Request, Settings, ToolChoice, ToolDef, Verbosity};
pub use response::{Response, Stop, VendorError};
pub use usage::Usage;
pub use vendor::{Form, Vendor, Wire};
