use std::fmt;
use std::sync::Arc;

use throughline_model::{Settings, ToolChoice};

use super::limits::{Calling, Limits};
use crate::tool::Tool;

/// What a caller may choose for one run; what is absent is the agent's.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// Tools for this run. One that has the name of an agent's tool stands in for it.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Whether and which tools to call, for the first model call of the run; after that the model
    /// chooses.
    pub choice: ToolChoice,
    /// How the model is to answer.
    pub settings: Option<Settings>,
    /// The model to ask.
    pub model: Option<String>,
    /// How far the run may go.
    pub limits: Option<Limits>,
    /// Whether calls of a round run at once.
    pub calling: Option<Calling>,
    /// What the application says behind the agent's instructions.
    pub instructions: Option<String>,
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(|tool| &*tool.spec().name).collect();
        f.debug_struct("RunOptions")
            .field("tools", &tools)
            .field("choice", &self.choice)
            .field("settings", &self.settings)
            .field("model", &self.model)
            .field("limits", &self.limits)
            .field("calling", &self.calling)
            .finish_non_exhaustive()
    }
}
