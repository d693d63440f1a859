use serde::Serialize;
use throughline_model::json::RawJson;
use throughline_model::{Content, Output};

use super::ToolError;

/// The result of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ToolOutput {
    /// What the model is shown.
    pub output: Output,
    /// Whether the run ends with this round.
    pub terminate: bool,
}

impl ToolOutput {
    /// A text result.
    pub fn text(text: impl Into<String>) -> Self {
        Output::Text(text.into()).into()
    }

    /// A JSON result.
    pub fn json(json: RawJson) -> Self {
        Output::Json(json).into()
    }

    /// A result of text and media.
    pub fn parts(parts: Vec<Content>) -> Self {
        Output::Parts(parts).into()
    }

    /// Ends the run with this round.
    #[must_use]
    pub fn and_terminate(mut self) -> Self {
        self.terminate = true;
        self
    }
}

impl From<Output> for ToolOutput {
    fn from(output: Output) -> Self {
        Self {
            output,
            terminate: false,
        }
    }
}

/// The return types of tool functions: nothing, text, [`Json`], a [`ToolOutput`], or a `Result` of
/// these.
pub trait IntoToolOutput {
    /// Converts the value, or returns its error.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

/// A value that the model is shown as JSON.
///
/// ```
/// use throughline::tool::{IntoToolOutput, Json};
///
/// let output = Json(vec![1, 2]).into_tool_output()?.output;
/// assert_eq!(format!("{output:?}"), "Json([1,2])");
/// # Ok::<(), throughline::tool::ToolError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

impl IntoToolOutput for String {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoToolOutput for &str {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoToolOutput for Output {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self.into())
    }
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let text = serde_json::to_string(&self.0)?;
        Ok(ToolOutput::json(RawJson::new(&text)?))
    }
}

impl<T: IntoToolOutput, E: Into<ToolError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        self.map_err(Into::into)?.into_tool_output()
    }
}
