//! A model that answers from a script, without any network.
//!
//! [`ScriptedClient`] is a [`ChatClient`](throughline::ChatClient): each call takes the next [`Step`] of the script. It keeps
//! a copy of what it was asked, so a test can compare what the model was shown. `respond` folds the
//! very events that `stream` hands out, so both readings of a step are the same answer. Waits go by
//! tokio's clock, which a test may pause. [`StoringService`] is one that keeps conversations itself.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use throughline::model::{Message, Settings, ToolChoice};
//! use throughline::{ChatClient, ChatRequest, Kept, View};
//! use throughline_testkit::scripted::{ScriptedClient, Step};
//!
//! let client = ScriptedClient::new([
//!     Step::calls([("call_1", "get_tide", "{}")]),
//!     Step::text("High water at 04:12.").with_usage(120, 9),
//! ]);
//! let view = View::new(vec![Message::user("When is high water?")]);
//! let request = ChatRequest {
//!     model: None,
//!     instructions: None,
//!     view: &view,
//!     tools: &[],
//!     choice: &ToolChoice::Auto,
//!     settings: &Settings::default(),
//!     kept: Kept::Here,
//!     persist: None,
//!     losses: None,
//! };
//! client.respond(&request).await.unwrap();
//! let answer = client.respond(&request).await.unwrap();
//! assert_eq!(answer.messages[0].text(), "High water at 04:12.");
//! assert_eq!(client.asked()[0].messages, [Message::user("When is high water?")]);
//! # });
//! ```

mod client;
mod step;
mod storing;
#[cfg(test)]
mod tests;

pub use client::{Asked, KeptBy, Reading, ScriptedClient};
pub use step::{Chunk, Step};
pub use storing::{Ids, StoringService};
