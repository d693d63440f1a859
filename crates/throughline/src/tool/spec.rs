use std::time::Duration;

use throughline_model::{Family, Form, ToolDef, Vendor};
use throughline_store::Effect;

use super::Parameters;

/// Whether a call must be approved before the tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Approval {
    /// No approval is needed.
    #[default]
    Never,
    /// Each call has to be approved.
    Always,
}

/// Which side runs a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Runs {
    /// The agent loop runs the tool.
    #[default]
    Here,
    /// The application runs the tool: its calls wait for results from the application.
    Outside,
}

/// What an agent knows of a tool. Everything except the name has a safe default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// The name, as the model calls it.
    pub name: String,
    /// What the tool does, for the model.
    pub description: Option<String>,
    /// The schema of its arguments.
    pub parameters: Parameters,
    /// Whether models must follow the schema strictly; `None` leaves it to the vendor's default.
    pub strict: Option<bool>,
    /// A vendor's own form of the definition, used for that vendor.
    pub vendor: Option<Vendor>,
    /// Whether models are offered the tool. A tool that is part of another definition is not.
    pub offered: bool,
    /// What happens after a lost result.
    pub effect: Effect,
    /// Whether its calls must be approved.
    pub approval: Approval,
    /// Which side runs it.
    pub runs: Runs,
    /// How long one call may take.
    pub timeout: Option<Duration>,
}

impl ToolSpec {
    /// A tool without arguments that the loop runs, at most once per call.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            parameters: Parameters::none(),
            strict: None,
            vendor: None,
            offered: true,
            effect: Effect::Once,
            approval: Approval::Never,
            runs: Runs::Here,
            timeout: None,
        }
    }

    /// A function, unless the vendor's definition says that it takes free text.
    fn family(&self) -> Family {
        let Some(Form::Item(json)) = self.vendor.as_ref().map(|vendor| &vendor.form) else {
            return Family::FUNCTION;
        };
        let tag = json.value().get("type").map(|tag| tag.is_str("custom"));
        match tag {
            Some(true) => Family::CUSTOM,
            _ => Family::FUNCTION,
        }
    }

    /// The tool in the form in which models are offered it.
    pub fn to_def(&self) -> ToolDef {
        ToolDef {
            family: self.family(),
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: Some(self.parameters.as_json().clone()),
            strict: self.strict,
            vendor: self.vendor.clone(),
        }
    }
}
