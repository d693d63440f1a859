//! The tools of a request, and which of them to call.

use throughline_model::json::{RawJson, Value};
use throughline_model::{Family, Path, ToolChoice, ToolDef};

use super::read;
use crate::ApiError;

/// One tool of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestTool {
    /// A function that the client runs.
    Function {
        /// What a model is offered.
        def: ToolDef,
        /// The tool as it was sent.
        json: RawJson,
    },
    /// A tool server of ours.
    Mcp(McpTool),
    /// Any other, as it was sent.
    Other {
        /// Its type.
        tag: String,
        /// Its name, if it has one.
        name: Option<String>,
        /// The tool.
        json: RawJson,
    },
}

/// A tool server that a client wants to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpTool {
    /// The server, by the name that it has with us.
    pub label: String,
    /// The tools that may be used; all of them if nothing is said.
    pub allowed: Option<ToolFilter>,
    /// Which calls need somebody's leave.
    pub require_approval: RequireApproval,
    /// The tool as it was sent.
    pub json: RawJson,
}

/// Some tools of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// By name; any name if nothing is said.
    pub names: Option<Vec<String>>,
    /// Those that say that they only read, or those that do not.
    pub read_only: Option<bool>,
}

impl ToolFilter {
    /// Whether a tool is meant.
    pub fn matches(&self, name: &str, read_only: bool) -> bool {
        let named = self.names.as_ref();
        named.is_none_or(|names| names.iter().any(|known| known == name))
            && self.read_only.is_none_or(|wanted| wanted == read_only)
    }
}

/// Which calls of a server need somebody's leave, beyond those of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequireApproval {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// All.
    Always,
    /// None beyond the configured ones.
    Never,
    /// Some.
    Some {
        /// These do.
        always: Option<ToolFilter>,
        /// These do not.
        never: Option<ToolFilter>,
    },
}

impl RequireApproval {
    /// Whether a call of a tool needs leave, as far as the client says. Silence adds nothing: the
    /// configured list alone decides then.
    pub fn asks(&self, name: &str, read_only: bool) -> bool {
        let meant = |filter: &Option<ToolFilter>| {
            let filter = filter.as_ref();
            filter.is_some_and(|filter| filter.matches(name, read_only))
        };
        match self {
            Self::Unsaid | Self::Never => false,
            Self::Always => true,
            Self::Some { always, never } => {
                meant(always) || always.is_none() && never.is_some() && !meant(never)
            }
        }
    }
}

/// Which tools a model is to call, and how a client said so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPick {
    /// In words that every vendor has.
    pub choice: ToolChoice,
    /// The only tools that may be called, by name, if the client narrows them.
    pub allowed: Option<Vec<String>>,
}

/// The tools of a body.
pub(super) fn tools(body: &Value<'_>) -> Result<Vec<RequestTool>, ApiError> {
    let path = Path::Root.key("tools");
    let list = read::list(body, "tools", &Path::Root)?.unwrap_or_default();
    let mut tools = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let path = path.index(index);
        if value.as_object().is_none() {
            return Err(read::wrong_type(&path, "an object", value));
        }
        tools.push(tool(value, &path)?);
    }
    Ok(tools)
}

fn tool(value: &Value<'_>, path: &Path<'_>) -> Result<RequestTool, ApiError> {
    let tag = read::required(value, "type", path)?;
    match &*tag {
        "function" => Ok(RequestTool::Function {
            def: function(value, path)?,
            json: RawJson::of(value),
        }),
        "mcp" => Ok(RequestTool::Mcp(server(value, path)?)),
        _ => Ok(RequestTool::Other {
            tag: tag.into_owned(),
            name: value.get("name").and_then(Value::as_str).map(Into::into),
            json: RawJson::of(value),
        }),
    }
}

fn function(value: &Value<'_>, path: &Path<'_>) -> Result<ToolDef, ApiError> {
    const LONGEST: usize = 128;
    let name = read::required(value, "name", path)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > LONGEST || !name.bytes().all(plain) {
        let what = format!(
            "a name has 1 to {LONGEST} letters, digits, '_' and '-' (it must match \
             '^[a-zA-Z0-9_-]+$')"
        );
        return Err(read::outside(&path.key("name"), "invalid_value", &what));
    }
    read::flag(value, "strict", path)?;
    let parameters = read::object(value, "parameters", path)?;
    Ok(ToolDef {
        family: Family::FUNCTION,
        name: name.into_owned(),
        description: read::text(value, "description", path)?.map(Into::into),
        parameters: parameters.map(RawJson::of),
    })
}

fn server(value: &Value<'_>, path: &Path<'_>) -> Result<McpTool, ApiError> {
    let label = read::required(value, "server_label", path)?;
    for key in ["server_url", "connector_id", "tunnel_id"] {
        if read::member(value, key).is_some() {
            let what = "servers are configured here and chosen by 'server_label' alone";
            return Err(read::outside(&path.key(key), "unsupported_value", what));
        }
    }
    let allowed = match read::member(value, "allowed_tools") {
        None => None,
        Some(list) if list.as_array().is_some() => Some(ToolFilter {
            names: Some(names(list, &path.key("allowed_tools"))?),
            read_only: None,
        }),
        Some(_) => filter(value, "allowed_tools", path)?,
    };
    Ok(McpTool {
        label: label.into_owned(),
        allowed,
        require_approval: approval(value, path)?,
        json: RawJson::of(value),
    })
}

fn approval(value: &Value<'_>, path: &Path<'_>) -> Result<RequireApproval, ApiError> {
    const KEY: &str = "require_approval";
    let Some(found) = read::member(value, KEY) else {
        return Ok(RequireApproval::Unsaid);
    };
    if found.as_object().is_some() {
        let path = path.key(KEY);
        return Ok(RequireApproval::Some {
            always: filter(found, "always", &path)?,
            never: filter(found, "never", &path)?,
        });
    }
    Ok(match read::word(value, KEY, &["always", "never"], path)? {
        Some("always") => RequireApproval::Always,
        _ => RequireApproval::Never,
    })
}

fn filter(parent: &Value<'_>, key: &str, path: &Path<'_>) -> Result<Option<ToolFilter>, ApiError> {
    let Some(object) = read::object(parent, key, path)? else {
        return Ok(None);
    };
    let path = path.key(key);
    let named = read::member(object, "tool_names");
    let path_of_names = path.key("tool_names");
    Ok(Some(ToolFilter {
        names: named.map(|list| names(list, &path_of_names)).transpose()?,
        read_only: read::flag(object, "read_only", &path)?,
    }))
}

fn names(list: &Value<'_>, path: &Path<'_>) -> Result<Vec<String>, ApiError> {
    let Some(values) = list.as_array() else {
        return Err(read::wrong_type(path, "an array of strings", list));
    };
    let mut names = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        match value.as_str() {
            Some(name) => names.push(name.into_owned()),
            None => return Err(read::wrong_type(&path.index(index), "a string", value)),
        }
    }
    Ok(names)
}

/// Which of the tools to call. Kinds of choice that we do not know leave it to the model.
pub(super) fn choice(body: &Value<'_>, tools: &[RequestTool]) -> Result<ToolPick, ApiError> {
    const KEY: &str = "tool_choice";
    let Some(found) = read::member(body, KEY) else {
        return Ok(ToolPick::default());
    };
    let path = Path::Root.key(KEY);
    if found.as_text().is_some() {
        let word = read::word(body, KEY, &["none", "auto", "required"], &Path::Root)?;
        return Ok(ToolPick::from(options(word)));
    }
    if found.as_object().is_none() {
        return Err(read::wrong_type(&path, "a string or an object", found));
    }
    let tag = read::required(found, "type", &path)?;
    match &*tag {
        "function" | "custom" => {
            let name = read::required(found, "name", &path)?;
            let known = tools.iter().any(|tool| tool.is_named(&name));
            if !known && !has_others(body) {
                let what = format!("the tool choice '{name}' is not in the 'tools' parameter");
                return Err(read::outside(&path, "invalid_value", &what));
            }
            Ok(ToolPick::from(ToolChoice::Named(name.into_owned())))
        }
        "mcp" => {
            read::required(found, "server_label", &path)?;
            let name = read::text(found, "name", &path)?;
            Ok(ToolPick::from(match name {
                Some(name) => ToolChoice::Named(name.into_owned()),
                None => ToolChoice::Required,
            }))
        }
        "allowed_tools" => {
            let mode = read::word(found, "mode", &["auto", "required"], &path)?;
            let list = read::list(found, "tools", &path)?.unwrap_or_default();
            let named = list.iter().filter_map(|tool| tool.get("name"));
            Ok(ToolPick {
                choice: options(mode),
                allowed: Some(named.filter_map(Value::as_str).map(Into::into).collect()),
            })
        }
        _ => Ok(ToolPick::default()),
    }
}

/// Whether there are tools that the request does not name: an agent's own.
fn has_others(body: &Value<'_>) -> bool {
    let model = body.get("model").and_then(Value::as_str);
    model.is_some_and(|model| model.starts_with("agent/"))
}

fn options(word: Option<&str>) -> ToolChoice {
    match word {
        Some("none") => ToolChoice::None,
        Some("required") => ToolChoice::Required,
        _ => ToolChoice::Auto,
    }
}

impl From<ToolChoice> for ToolPick {
    fn from(choice: ToolChoice) -> Self {
        Self {
            choice,
            allowed: None,
        }
    }
}

impl RequestTool {
    fn is_named(&self, wanted: &str) -> bool {
        match self {
            Self::Function { def, .. } => def.name == wanted,
            Self::Other { name, tag, .. } => {
                // These hold others.
                matches!(tag.as_str(), "namespace" | "tool_search")
                    || name.as_deref() == Some(wanted)
            }
            // Which tools a server has is not known here.
            Self::Mcp(_) => true,
        }
    }
}
