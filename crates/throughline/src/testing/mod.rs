//! Testing agents without a network: a model that answers from a script, and a clock that a test
//! moves.
//!
//! [`ScriptedClient`] is a [`ChatClient`](crate::ChatClient). Each call takes the next
//! [`ScriptedReply`] of the script and is recorded as a [`RecordedCall`], so that a test can check
//! what the model was shown. `respond` folds the events that `stream` gives, so both give the same
//! answer. Pauses go by tokio's clock, which a test can pause (`#[tokio::test(start_paused = true)]`).
//! [`ManualClock`] is the time of a store: it ends leases and fills in dates.
//!
//! ```
//! use std::sync::Arc;
//! use throughline::store::{Options, Store};
//! use throughline::testing::{ManualClock, ScriptedClient, ScriptedReply};
//! use throughline::{Agent, StopReason, tool};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Arc::new(ScriptedClient::new([
//!     ScriptedReply::calls([("call_1", "high_water", "{}")]),
//!     ScriptedReply::text("High water is at 04:12."),
//! ]));
//! let options = Options {
//!     clock: Arc::new(ManualClock::at(1_790_000_000_000)),
//!     ..Options::default()
//! };
//! let store = Store::open_with("memory:", options).await?;
//! let tide = tool("high_water", "Says when high water is.", || async { "04:12" });
//! let agent = Agent::builder(model.clone()).store(&store).tool(tide).build()?;
//!
//! let outcome = agent.run("When is high water?").await?;
//! assert_eq!(outcome.stop, StopReason::Done);
//! assert_eq!(outcome.text(), "High water is at 04:12.");
//!
//! // The model was called again with the result of the tool.
//! let calls = model.asked();
//! assert_eq!(calls.len(), 2);
//! assert_eq!(calls[1].messages.len(), 3);
//! # Ok(())
//! # }
//! ```

mod client;
mod reply;

pub use client::{CallMode, RecordedCall, RecordedOwner, ScriptedClient};
pub use reply::{ReplyPart, ScriptedReply};
pub use throughline_store::ManualClock;
