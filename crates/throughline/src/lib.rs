//! Durable agents for any model vendor.
//!
//! An agent has instructions, tools and a [`ChatClient`]. A run of it makes model calls and tool
//! calls until it stops; every run ends with a stop reason and the whole transcript.
//!
//! ```
//! use throughline::{Agent, Demo};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::builder(Demo::new())
//!     .instructions("You know the harbour.")
//!     .build()?;
//! let outcome = agent.run("How many messages are there?").await?;
//! println!("{} ({})", outcome.text(), outcome.stop);
//! # Ok(())
//! # }
//! ```
//!
//! The names that most programs need are at the root; the rest is in a module for each noun:
//!
//! - [`agent`]: building agents, running them, options, limits, outcomes, context providers;
//! - [`thread`]: conversations in a store, who keeps their history, policies;
//! - [`mod@tool`]: functions as tools, tool sets, MCP servers;
//! - [`client`]: the [`ChatClient`] trait, vendors, retries, transports;
//! - [`telemetry`]: metrics and spans;
//! - [`testing`]: a scripted client and a manual clock for tests of your own;
//! - [`model`], [`store`] and [`compact`]: the crates below, re-exported.

pub mod agent;
pub mod client;
mod memory;
mod prompt;
mod run;
pub mod telemetry;
pub mod testing;
pub mod thread;
pub mod tool;
mod trials;

pub use agent::{Agent, Outcome, RunEvent};
#[cfg(feature = "http")]
pub use client::{Anthropic, Foundry, Gemini, OpenAi};
pub use client::{ChatClient, Demo};
pub use thread::{StopReason, Thread, Threads};
pub use throughline_compact as compact;
pub use throughline_model as model;
pub use throughline_store as store;
pub use tool::{Tool, tool};

// The examples of the guide and of the README are tested like those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/agents.md")]
struct Guide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/compaction.md")]
struct CompactionGuide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/threads.md")]
struct ThreadGuide;
