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
    let choice = choice(body, &mut tools)?;
    Ok((tools, choice))
}

fn function(tool: &Value<'_>, path: &Path<'_>) -> Result<ToolDef, ApiError> {
    if tool.as_object().is_none() {
        return Err(read::wrong_type(path, "an object", tool));
    }
    let tag = read::required(tool, "type", path)?;
    if tag != "function" {
        let tag: String = tag.chars().take(64).collect();
        return Err(ApiError::invalid(format!(
            "'{path}': a tool of the type '{tag}' can be sent only to upstreams that speak Chat \
             Completions. Others take functions."
        ))
        .code("unsupported_tool")
        .param(path.to_string()));
    }
    let function = read::object(tool, "function", path)?;
    let path = path.key("function");
    let function = function.ok_or_else(|| read::missing(&path))?;
    Ok(ToolDef {
        name: read::required(function, "name", &path)?.into_owned(),
        description: read::text(function, "description", &path)?.map(Into::into),
        parameters: read::object(function, "parameters", &path)?.map(RawJson::of),
        strict: read::flag(function, "strict", &path)?,
        ..ToolDef::default()
    })
}

/// The choice. A choice among some of the tools leaves only those on offer.
fn choice(body: &Value<'_>, tools: &mut Vec<(usize, ToolDef)>) -> Result<ToolChoice, ApiError> {
    let path = Path::Root.key("tool_choice");
    let Some(choice) = read::member(body, "tool_choice") else {
        return Ok(ToolChoice::Auto);
    };
    let named = |name: &str, tools: &[(usize, ToolDef)]| {
        let is_offered = tools.iter().any(|(_, tool)| tool.name == name);
        is_offered.then(|| name.to_owned()).ok_or_else(|| {
            let name: String = name.chars().take(128).collect();
            ApiError::invalid(format!("The tool choice '{name}' is not among 'tools'."))
                .code("invalid_value")
                .param("tool_choice")
        })
    };
    let mode = |word: &str| match word {
        "none" => Ok(ToolChoice::None),
        "auto" => Ok(ToolChoice::Auto),
        "required" => Ok(ToolChoice::Required),
        word => Err(read::wrong_value(
            &path,
            word,
            &["none", "auto", "required"],
        )),
    };
    let choice = if let Some(word) = choice.as_str() {
        mode(&word)?
    } else if choice.as_object().is_none() {
        return Err(read::wrong_type(&path, "a string or an object", choice));
    } else {
        match &*read::required(choice, "type", &path)? {
            "function" => {
                let function = read::object(choice, "function", &path)?;
                let path = path.key("function");
                let function = function.ok_or_else(|| read::missing(&path))?;
                ToolChoice::Named(named(&read::required(function, "name", &path)?, tools)?)
            }
            "allowed_tools" => {
                let allowed = read::object(choice, "allowed_tools", &path)?;
                let path = path.key("allowed_tools");
                let allowed = allowed.ok_or_else(|| read::missing(&path))?;
                let names = allowed_names(allowed, &path)?;
                tools.retain(|(_, tool)| names.contains(&tool.name));
                mode(&read::required(allowed, "mode", &path)?)?
            }
            word => {
                return Err(read::wrong_value(
                    &path,
                    word,
                    &["function", "allowed_tools"],
                ));
            }
        }
    };
    match (&choice, tools.is_empty()) {
        (ToolChoice::Required, true) => Err(ApiError::invalid(
            "'tool_choice' demands a call, and 'tools' offers none.",
        )
        .code("invalid_value")
        .param("tool_choice")),
        _ => Ok(choice),
    }
}

fn allowed_names(allowed: &Value<'_>, path: &Path<'_>) -> Result<Vec<String>, ApiError> {
    let list = read::list(allowed, "tools", path)?.unwrap_or_default();
    let root = path.key("tools");
    let names = list.iter().enumerate().map(|(index, tool)| {
        let name = tool.at(&["function", "name"]).and_then(Value::as_str);
        name.map(Into::into)
            .ok_or_else(|| read::missing(&root.index(index).key("function")))
    });
    names.collect()
}
