//! Tools that a vendor runs itself, in the words of another vendor.

use throughline_model::json::Value;
use throughline_model::{Family, Path, ToolDef};

use super::body_builder::BodyBuilder;
use crate::LossKind;
use crate::vendors;

/// A tool of the vendor, ready for its list of tools.
pub(crate) struct HostedTool<'t> {
    /// The name by which a request selects it.
    pub(crate) name: &'t str,
    /// How this vendor names it in a choice.
    pub(crate) selected_by: SelectedBy,
    /// Its definition in the vendor's format, as JSON text.
    pub(crate) json: String,
}

/// A tool on offer that is not a function.
pub(crate) struct OfferedTool<'t> {
    pub(crate) tool: &'t ToolDef,
    /// Its index in the list of tools, for losses.
    pub(crate) index: usize,
    /// Whether functions are offered too.
    pub(crate) beside_functions: bool,
}

impl OfferedTool<'_> {
    /// Note that the tool, or one of its options, cannot be expressed.
    pub(crate) fn note_loss(
        &self,
        builder: &mut BodyBuilder<'_>,
        key: Option<&str>,
        detail: impl Into<String>,
    ) {
        note_loss(builder, self.index, key, detail);
    }
}

/// How a tool of the vendor is named in a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SelectedBy {
    /// By a name, as functions are.
    Name(&'static str),
    /// By its type alone.
    Type(String),
    /// By its type and its name.
    TypeAndName(String),
    /// It cannot be demanded.
    Never,
}

/// The tools of the list that this vendor runs itself. What it has no such tool for is a loss.
pub(crate) fn hosted_tools<'p>(builder: &mut BodyBuilder<'p>) -> Vec<HostedTool<'p>> {
    let tools = builder.prompt.tools;
    let vendor = vendors::find(&builder.prompt.target.wire);
    let beside_functions = tools.iter().any(|tool| tool.family == Family::FUNCTION);
    let mut found = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        if tool.family == Family::FUNCTION {
            continue;
        }
        let offered = OfferedTool {
            tool,
            index,
            beside_functions,
        };
        match vendor.and_then(|vendor| (vendor.compose.hosted_tool)(builder, &offered)) {
            Some(one) => found.push(one),
            None => {
                let name = if tool.name.is_empty() {
                    tool.family.as_str()
                } else {
                    &tool.name
                };
                let detail = format!("{} has no tool {name}", builder.prompt.target.wire);
                note_loss(builder, index, None, detail);
            }
        }
    }
    found
}

fn note_loss(
    builder: &mut BodyBuilder<'_>,
    index: usize,
    key: Option<&str>,
    detail: impl Into<String>,
) {
    let root = Path::Root.key("tools");
    let path = root.index(index);
    match key {
        Some(key) => builder
            .losses
            .note(&path.key(key), LossKind::ToolDefinition, detail),
        None => builder.losses.note(&path, LossKind::ToolDefinition, detail),
    }
}

/// Whether a family of tools runs code in a sandbox of the vendor.
pub(crate) fn runs_code(family: &Family) -> bool {
    *family == Family::CODE_INTERPRETER || *family == Family::CODE_EXECUTION
}

/// Whether an option has no effect: null, or an empty list or object.
pub(crate) fn is_empty_option(value: &Value<'_>) -> bool {
    value.is_null()
        || value.as_array().is_some_and(<[_]>::is_empty)
        || value.as_object().is_some_and(<[_]>::is_empty)
}

/// A container that the vendor makes: it makes one anyway.
pub(crate) fn is_automatic_container(key: &str, value: &Value<'_>) -> bool {
    let only_type = |value: &Value<'_>| {
        let mut members = value.members().iter();
        members.all(|member| &*member.key.to_str() == "type" || is_empty_option(&member.value))
    };
    key == "container"
        && value.get("type").is_some_and(|tag| tag.is_str("auto"))
        && only_type(value)
}
