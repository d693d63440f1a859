//! Agents that lose nothing.
//!
//! An agent has instructions, tools and a [`ChatClient`]; running it makes model calls and tool
//! calls until it stops, and every exit says why and returns the whole transcript.
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
//! Where things are: `client` speaks to models, `tool` is what a model may call, `agent` puts both
//! together, `run` is the loop (its decisions are the pure `run/machine`), `thread` is what a store
//! keeps of a conversation, `prompt` is what a model is shown of it, `telemetry` is what can be
//! watched of all this.

mod agent;
mod client;
mod memory;
mod prompt;
mod run;
mod telemetry;
pub mod testing;
mod thread;
mod tool;
mod trials;

pub use agent::{Agent, AgentBuilder};
pub use client::{
    Abilities, Breaker, BreakerPolicy, BreakerState, ChatClient, ChatRequest, ClientError,
    ClientEvent, ClientExt, Compacts, Demo, ErrorKind, EventStream, GiveUpReason, HistoryOwner,
    Layer, LossSink, Observer, PersistEachCall, PersistMark, Retry, RetryPolicy, SERVICE_STORAGE,
    Secret, ServiceStorage, Stability, StoresHistory, TimeoutPhase, Update, Updates,
};
#[cfg(feature = "http")]
pub use client::{
    Anthropic, Bounds, CachedTokens, ClientBuilder, CommandTokens, EndMark, Foundry, Gemini,
    Header, HeaderValue, HistoryForm, HttpBody, HttpMethod, HttpRequest, HttpResponse,
    HttpSettings, HttpTransport, OpenAi, ProxyChoice, RequestBody, Timeouts, Token, TokenError,
    TokenProvider, Transport, TransportError, TransportFault, VendorClient,
};
pub use memory::{MemoryBudget, OutOfMemory, Reservation};
pub use prompt::{Compaction, Condensed, MOST_LOSSES, Rendering, View, condense};
pub use run::order;
pub use run::{
    Additions, AttachError, Attached, BadEvent, BadLimit, BuildError, Calling, ContextProvider,
    Input, Keep, Limits, MessageFilter, Need, OnRepeat, Outcome, ProviderContext, ProviderError,
    ProviderScope, ProviderSpec, ProviderState, Remedy, Run, RunEnd, RunError, RunEvent, RunFailed,
    RunOptions, RunStream, RunUsage, StateError, Step, Told, Typed, TypedError, TypedRun,
};
#[cfg(feature = "otel")]
pub use telemetry::OtelMetrics;
pub use telemetry::{
    HistogramValue, Instrument, Metric, MetricSink, Metrics, MetricsSnapshot, Point, PointValue,
    Shape,
};
pub use thread::{
    Awaits, Deleted, DiscardedRun, HistoryPolicy, Mailbox, MessageStore, MessageStoreError, OnBusy,
    OnInterrupt, OnLost, OnOpenCalls, OnPark, OnServiceId, Owner, OwnerError, Parity, Pending,
    Persistence, StopReason, Thread, ThreadJsonError, Threads, VendorCopy, Views,
};
pub use throughline_compact as compact;
pub use throughline_model as model;
pub use throughline_store as store;
pub use throughline_store::{RunId, ThreadId};
#[cfg(feature = "http")]
pub use throughline_wire::compose::TokenLimit;
pub use throughline_wire::render::{
    self, Markers, MarkersError, Native, Target, TextEmbed, ToolHistoryStrategy,
};
pub use throughline_wire::{Loss, LossKind};
pub use tool::{
    Approval, ArgumentError, CallContext, Dependencies, Effect, FnTool, IntoToolOutput, Json,
    Parameters, Probe, Runs, SchemaError, SetError, Tool, ToolError, ToolFault, ToolFn, ToolOutput,
    ToolSet, ToolSpec, Violation, declare, declare_args, prepare, tool,
};
#[cfg(feature = "mcp")]
pub use tool::{MCP_IDEMPOTENCY_KEY, McpError, McpServer, McpTools};

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
