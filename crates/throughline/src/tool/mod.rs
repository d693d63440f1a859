//! Tools that a model may call, their specs, and the context of a call.

mod arguments;
mod context;
mod error;
mod function;
#[cfg(feature = "mcp")]
mod mcp;
mod output;
mod set;
mod spec;

use async_trait::async_trait;
use throughline_model::json::RawJson;

pub use arguments::{ArgumentError, Parameters, SchemaError, Violation, prepare};
pub(crate) use context::RunHandle;
pub use context::{CallContext, Dependencies};
pub use error::{ToolError, ToolFault};
pub use function::{FnTool, ToolFn, declare, declare_args, tool};
pub(crate) use function::{schema_of, unwrapped};
#[cfg(feature = "mcp")]
pub use mcp::{IDEMPOTENCY_KEY as MCP_IDEMPOTENCY_KEY, McpError, McpServer, McpTools};
pub use output::{IntoToolOutput, Json, ToolOutput};
pub use set::{SetError, ToolSet};
pub use spec::{Approval, Runs, ToolSpec};
pub use throughline_store::Effect;

/// A tool that a model may call.
///
/// [`Tool::call`] receives an object that is valid for the schema of its [`ToolSpec`]. The future
/// may be dropped at any await when the run is cancelled or out of time. Its effects until then
/// remain, and the result is recorded as unknown unless the effect class says that the tool changes
/// nothing.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The spec of the tool.
    fn spec(&self) -> &ToolSpec;

    /// Runs the tool.
    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError>;

    /// Reports what happened to an earlier dispatch of the same call whose result was lost. Called
    /// only for tools whose effect is [`Effect::Probe`]; the default returns [`Probe::Unknown`].
    async fn probe(&self, _arguments: &RawJson, _context: CallContext) -> Result<Probe, ToolError> {
        Ok(Probe::Unknown)
    }
}

/// What happened to a call whose result was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The call had its effect, with this result.
    Done(ToolOutput),
    /// The call had no effect: it may run again.
    NotDone,
    /// It is unknown whether the call had an effect.
    Unknown,
}

#[async_trait]
impl<T: Tool + ?Sized> Tool for std::sync::Arc<T> {
    fn spec(&self) -> &ToolSpec {
        (**self).spec()
    }

    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        (**self).call(arguments, context).await
    }

    async fn probe(&self, arguments: &RawJson, context: CallContext) -> Result<Probe, ToolError> {
        (**self).probe(arguments, context).await
    }
}
