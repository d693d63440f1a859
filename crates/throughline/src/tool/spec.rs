use std::time::Duration;

use throughline_model::{Family, Form, ToolDef, Vendor};
use throughline_store::Effect;

use super::Parameters;

/// Whether a person must approve a call before the tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Approval {
    /// No approval is needed.
    #[default]
    Never,
    /// Each call has to be approved.
    Always,
}

/// Who runs a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Runs {
    /// The loop.
    #[default]
    Here,
    /// The application: the tool is only declared, its calls wait for results from outside.
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
    /// Whether models must keep to that exactly, if it was said.
    pub strict: Option<bool>,
    /// The definition as a vendor writes it, for that vendor, if it says more than the rest.
    pub vendor: Option<Vendor>,
    /// Whether models are told of it. One that is part of another definition is not.
    pub offered: bool,
    /// What a lost result means.
    pub effect: Effect,
    /// Whether its calls have to be approved.
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
            strict: None,
            vendor: None,
            offered: true,
            effect: Effect::Once,
            approval: Approval::Never,
            runs: Runs::Here,
            timeout: None,
        }
    }

    /// A function, unless its vendor's definition says that it takes free text.
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

    /// The tool as it is offered to a model.
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
