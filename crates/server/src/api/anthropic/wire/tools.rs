//! The functions of a request, and which of them to call.

use throughline_model::json::{RawJson, Value};
use throughline_model::{Path, ToolChoice, ToolDef};

use crate::api::read;
use crate::error::ApiError;

/// The functions that a model is offered with their places in the request, and the choice among them.
pub(super) fn tools(body: &Value<'_>) -> Result<(Vec<(usize, ToolDef)>, ToolChoice), ApiError> {
    let root = Path::Root.key("tools");
    let list = read::list(body, "tools", &Path::Root)?.unwrap_or_default();
    let mut tools = Vec::with_capacity(list.len());
    for (index, tool) in list.iter().enumerate() {
        tools.push((index, function(tool, &root.index(index))?));
    }
    let choice = choice(body, &tools)?;
    Ok((tools, choice))
}

fn function(tool: &Value<'_>, path: &Path<'_>) -> Result<ToolDef, ApiError> {
    if tool.as_object().is_none() {
        return Err(read::wrong_type(path, "an object", tool));
    }
    let tag = read::text(tool, "type", path)?;
    if let Some(tag) = tag.filter(|tag| tag != "custom") {
        let tag: String = tag.chars().take(64).collect();
        return Err(ApiError::invalid(format!(
            "'{path}': a tool of the type '{tag}' can be sent only to upstreams that speak Anthropic's \
             Messages. Others take tools with an 'input_schema'."
        ))
        .code("unsupported_tool")
        .param(path.to_string()));
    }
    let schema = read::object(tool, "input_schema", path)?;
    let schema = schema.ok_or_else(|| read::missing(&path.key("input_schema")))?;
    Ok(ToolDef {
        name: read::required(tool, "name", path)?.into_owned(),
        description: read::text(tool, "description", path)?.map(Into::into),
        parameters: Some(RawJson::of(schema)),
        strict: read::flag(tool, "strict", path)?,
        ..ToolDef::default()
    })
}

fn choice(body: &Value<'_>, tools: &[(usize, ToolDef)]) -> Result<ToolChoice, ApiError> {
    let path = Path::Root.key("tool_choice");
    let Some(choice) = read::object(body, "tool_choice", &Path::Root)? else {
        return Ok(ToolChoice::Auto);
    };
    let known = ["auto", "any", "tool", "none"];
    match read::one_of(choice, "type", &known, &path)? {
        None => Err(read::missing(&path.key("type"))),
        Some("auto") => Ok(ToolChoice::Auto),
        Some("none") => Ok(ToolChoice::None),
        Some("any") if tools.is_empty() => Err(not_offered("any")),
        Some("any") => Ok(ToolChoice::Required),
        Some(_) => {
            let name = read::required(choice, "name", &path)?;
            match tools.iter().any(|(_, tool)| tool.name == name) {
                true => Ok(ToolChoice::Named(name.into_owned())),
                false => Err(not_offered(&name)),
            }
        }
    }
}

fn not_offered(name: &str) -> ApiError {
    let name: String = name.chars().take(128).collect();
    ApiError::invalid(format!("The tool choice '{name}' is not among 'tools'."))
        .code("invalid_value")
        .param("tool_choice")
}
