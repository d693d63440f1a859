use throughline_model::{Settings, ToolChoice, ToolDef};

use crate::history::View;

/// One model call: what the model is given and how it is to answer.
#[derive(Clone, Copy, Debug)]
pub struct ChatRequest<'a> {
    /// The model to ask, if not the client's own.
    pub model: Option<&'a str>,
    /// What the application says above everyone.
    pub instructions: Option<&'a str>,
    /// The conversation so far, new input included.
    pub view: &'a View,
    /// Tools on offer.
    pub tools: &'a [ToolDef],
    /// Whether and which of them to call.
    pub choice: &'a ToolChoice,
    /// How to answer.
    pub settings: &'a Settings,
}
