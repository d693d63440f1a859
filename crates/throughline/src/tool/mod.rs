//! What a model may call: tools, what is known of them, and what they are told of a call.

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

/// Something that a model may call.
///
/// [`Tool::call`] gets arguments that fit the schema of its [`ToolSpec`], an object. It may be
/// dropped at any await when the run is cancelled or out of time; what it did until then stays
/// done, and its result is recorded as unknown unless its effect class says that it changes nothing.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What is known of it.
    fn spec(&self) -> &ToolSpec;

    /// Run it.
    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError>;

    /// Say what became of an earlier dispatch of the same call whose result was lost. Asked only of
    /// tools whose effect is [`Effect::Probe`]; others have no answer.
    async fn probe(&self, _arguments: &RawJson, _context: CallContext) -> Result<Probe, ToolError> {
        Ok(Probe::Unknown)
    }
}

/// What became of a call whose result was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It had its effect, with this result.
    Done(ToolOutput),
    /// It had none: the call may run again.
    NotDone,
    /// It is not known.
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
