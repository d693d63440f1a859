use std::time::Duration;

use throughline_model::{Family, ToolDef};
use throughline_store::Effect;

use super::Parameters;

/// Whether somebody must agree before a tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Approval {
    /// Nobody.
    #[default]
    Never,
    /// Somebody, for each call.
    Always,
}

/// Who runs a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Runs {
    /// The loop.
    #[default]
    Here,
    /// Whoever started the run: the tool is only declared, its calls wait for results from outside.
    Outside,
}

/// What is known of a tool. Everything but the name has a safe default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name, as the model calls it.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// What it takes.
    pub parameters: Parameters,
    /// What a lost result means.
    pub effect: Effect,
    /// Whether somebody must agree first.
    pub approval: Approval,
    /// Who runs it.
    pub runs: Runs,
    /// How long one call may take.
    pub timeout: Option<Duration>,
}

impl ToolSpec {
    /// A tool without arguments that is run here, at most once for each call.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            parameters: Parameters::none(),
            effect: Effect::Once,
            approval: Approval::Never,
            runs: Runs::Here,
            timeout: None,
        }
    }

    /// The tool as it is offered to a model.
    pub fn to_def(&self) -> ToolDef {
        ToolDef {
            family: Family::FUNCTION,
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: Some(self.parameters.as_json().clone()),
        }
    }
}
