use throughline_model::json::RawJson;
use throughline_model::{Content, Output};

/// What a tool gives back.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ToolOutput {
    /// What the model reads.
    pub output: Output,
    /// Whether the run shall end with this round.
    pub terminate: bool,
}

impl ToolOutput {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Output::Text(text.into()).into()
    }

    /// JSON.
    pub fn json(json: RawJson) -> Self {
        Output::Json(json).into()
    }

    /// Text and media.
    pub fn parts(parts: Vec<Content>) -> Self {
        Output::Parts(parts).into()
    }

    /// The same, and the run ends with this round.
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
