//! Tools that are functions, and tools that are only declared.

mod form;
mod schema;

pub(crate) use schema::{schema_of, unwrapped};

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use throughline_model::json::RawJson;

use super::{
    Approval, CallContext, Effect, Parameters, Runs, Tool, ToolError, ToolOutput, ToolSpec,
};
pub use form::ToolFn;
use schema::Derived;

type ToolFuture = BoxFuture<'static, Result<ToolOutput, ToolError>>;
type Body = Arc<dyn Fn(RawJson, CallContext) -> ToolFuture + Send + Sync>;

/// A tool that is a function ([`tool`]), or that is only declared ([`declare`]).
#[derive(Clone)]
pub struct FnTool {
    spec: ToolSpec,
    body: Body,
}

/// Makes a tool of a function.
///
/// The function is `async` and takes its arguments (a type that derives `Deserialize` and
/// `JsonSchema`), a [`CallContext`], both, or nothing. It returns anything that is
/// [`IntoToolOutput`](super::IntoToolOutput), or a `Result` of it with any error.
///
/// The schema is derived once. An argument type that is not a struct or a map becomes the single
/// field `input`, because vendors accept objects only.
///
/// A tool runs at most once per call unless [`FnTool::effect`] says otherwise.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use throughline::tool::Effect;
/// use throughline::{Tool, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct TideArgs {
///     /// Name of the port.
///     port: String,
/// }
///
/// let tide = tool("get_tide", "When is high water?", |args: TideArgs| async move {
///     format!("{}: 04:12", args.port)
/// })
/// .effect(Effect::ReadOnly);
///
/// assert_eq!(
///     tide.spec().parameters.as_json().get(),
///     r#"{"type":"object","properties":{"port":{"type":"string","description":"Name of the port."}},"required":["port"]}"#
/// );
/// ```
pub fn tool<F, M>(name: impl Into<String>, description: impl Into<String>, function: F) -> FnTool
where
    F: ToolFn<M>,
{
    let Derived {
        parameters,
        wrapped,
    } = function.parameters();
    let body = move |arguments: RawJson, context: CallContext| {
        if wrapped {
            function.call(unwrapped(&arguments), context)
        } else {
            function.call(arguments.get(), context)
        }
    };
    FnTool {
        spec: ToolSpec {
            description: Some(description.into()),
            parameters,
            ..ToolSpec::named(name)
        },
        body: Arc::new(body),
    }
}

/// Declares a tool that the application runs: its calls wait for results from the application.
///
/// ```
/// use throughline::tool::{Parameters, Runs, declare};
/// use throughline::Tool;
///
/// let schema = r#"{"type": "object", "properties": {"question": {"type": "string"}}}"#;
/// let ask = declare("ask_user", "Ask the person at the screen", Parameters::parse(schema)?);
/// assert_eq!(ask.spec().runs, Runs::Outside);
/// # Ok::<(), throughline::tool::SchemaError>(())
/// ```
pub fn declare(
    name: impl Into<String>,
    description: impl Into<String>,
    parameters: Parameters,
) -> FnTool {
    FnTool {
        spec: ToolSpec {
            description: Some(description.into()),
            parameters,
            runs: Runs::Outside,
            ..ToolSpec::named(name)
        },
        body: Arc::new(|_, _| {
            let reason = "the tool is only declared, its result comes from outside";
            std::future::ready(Err(ToolError::new(reason))).boxed()
        }),
    }
}

/// Like [`declare`], with the schema of a type.
///
/// ```
/// use schemars::JsonSchema;
/// use throughline::tool::declare_args;
/// use throughline::Tool;
///
/// #[derive(JsonSchema)]
/// #[expect(dead_code, reason = "only its schema is of use here")]
/// struct Question {
///     text: String,
/// }
///
/// let ask = declare_args::<Question>("ask_user", "Ask the person at the screen");
/// assert!(ask.spec().parameters.as_json().get().contains(r#""required":["text"]"#));
/// ```
pub fn declare_args<T: JsonSchema>(
    name: impl Into<String>,
    description: impl Into<String>,
) -> FnTool {
    declare(name, description, schema::of::<T>().parameters)
}

impl FnTool {
    /// Sets what happens after a lost result; by default the tool runs at most once.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Sets how long one call may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = Some(timeout);
        self
    }

    /// Requires approval of each call before it runs.
    #[must_use]
    pub fn needs_approval(mut self) -> Self {
        self.spec.approval = Approval::Always;
        self
    }

    /// Converts it for lists of tools.
    pub fn into_tool(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

impl From<FnTool> for Arc<dyn Tool> {
    fn from(tool: FnTool) -> Self {
        tool.into_tool()
    }
}

#[async_trait]
impl Tool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        (self.body)(arguments.clone(), context).await
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FnTool").field(&self.spec).finish()
    }
}
