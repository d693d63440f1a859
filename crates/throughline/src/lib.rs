//! Agents that lose nothing.
//!
//! An agent has instructions, tools and a [`ChatClient`]; running it makes model calls and tool
//! calls until it stops, and every exit says why and returns the whole transcript.
//!
//! Where things are: `client` speaks to models, `tool` is what a model may call, `agent` is the
//! loop (its decisions are the pure `agent/turn`), `history` is what a thread holds and what a
//! model is shown of it.

mod agent;
mod client;
mod history;
mod telemetry;
mod tool;

pub use client::{
    Abilities, ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, Layer, StoresHistory,
    TimeoutPhase,
};
pub use history::{Rendering, View};
pub use throughline_model as model;
pub use throughline_store::{RunId, ThreadId};
pub use tool::{
    Approval, ArgumentError, CallContext, Dependencies, Effect, FnTool, IntoToolOutput, Json,
    Parameters, Runs, SchemaError, SetError, Tool, ToolError, ToolFault, ToolFn, ToolOutput,
    ToolSet, ToolSpec, Violation, declare, declare_args, prepare, tool,
};
#[cfg(feature = "mcp")]
pub use tool::{MCP_IDEMPOTENCY_KEY, McpError, McpServer, McpTools};
