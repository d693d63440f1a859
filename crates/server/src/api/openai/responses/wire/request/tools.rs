//! The tools of a request, and which of them to call.

use throughline_model::json::{RawJson, Value};
use throughline_model::{Family, Path, ToolChoice, ToolDef, Vendor, Wire};

use super::items::ToolName;
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
    /// A tool of the client that takes free text.
    Custom {
        /// Its name.
        name: String,
        /// What it does, for the model.
        description: Option<String>,
        /// The tool as it was sent.
        json: RawJson,
    },
    /// Functions and custom tools of the client under a name of their own.
    Namespace {
        /// The name.
        name: String,
        /// The tools in it.
        tools: Vec<RequestTool>,
        /// The namespace as it was sent.
        json: RawJson,
    },
    /// One that a vendor runs, or of a type that is not known here, as it was sent.
    Hosted {
        /// Its type.
        tag: String,
        /// Its name, if it has one.
        name: Option<String>,
        /// The tool.
        json: RawJson,
    },
}

impl RequestTool {
    /// The client's tools in it: itself, or those of a namespace.
    pub fn names(&self) -> Vec<ToolName> {
        let of = |name: &str, custom| {
            vec![ToolName {
                namespace: None,
                name: name.to_owned(),
                custom,
            }]
        };
        match self {
            Self::Function { def, .. } => of(&def.name, false),
            Self::Custom { name, .. } => of(name, true),
            Self::Namespace { name, tools, .. } => {
                let inner = tools.iter().flat_map(Self::names);
                let within = |tool: ToolName| ToolName {
                    namespace: Some(name.clone()),
                    ..tool
                };
                inner.map(within).collect()
            }
            Self::Mcp(_) | Self::Hosted { .. } => Vec::new(),
        }
    }
}

/// A tool server that a client wants to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpTool {
    /// The server, by the name that it has with us.
    pub label: String,
    /// The tools that may be used; all of them if absent.
    pub allowed: Option<ToolFilter>,
    /// Which calls need approval.
    pub require_approval: RequireApproval,
    /// The tool as it was sent.
    pub json: RawJson,
}

/// Some tools of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// By name; any name if absent.
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

/// Which calls of a server need approval, beyond those of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequireApproval {
    /// The request does not have it.
    #[default]
    Unset,
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
    /// Whether a call of a tool needs approval, as far as the client says. Silence adds nothing: the
    /// configured list alone decides then.
    pub fn asks(&self, name: &str, read_only: bool) -> bool {
        let meant = |filter: &Option<ToolFilter>| {
            let filter = filter.as_ref();
            filter.is_some_and(|filter| filter.matches(name, read_only))
        };
        match self {
            Self::Unset | Self::Never => false,
            Self::Always => true,
            Self::Some { always, never } => {
                meant(always) || always.is_none() && never.is_some() && !meant(never)
            }
        }
    }
}

/// Which tools a model is to call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSelection {
    /// In words that every vendor has.
    pub choice: ToolChoice,
    /// The only tools that may be called, if the client narrows them.
    pub allowed: Option<AllowedTools>,
}

/// The only tools that may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedTools {
    /// By name; tools of a vendor by their type.
    pub names: Vec<String>,
    /// All tools of these servers.
    pub servers: Vec<String>,
}

impl AllowedTools {
    /// Whether a tool may be called, which may be one of a server.
    pub fn has(&self, name: &str, server: Option<&str>) -> bool {
        let among = |list: &[String], wanted: &str| list.iter().any(|one| one == wanted);
        among(&self.names, name) || server.is_some_and(|server| among(&self.servers, server))
    }
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
        "custom" => Ok(RequestTool::Custom {
            name: tool_name(value, path)?,
            description: read::text(value, "description", path)?.map(Into::into),
            json: RawJson::of(value),
        }),
        "namespace" => namespace(value, path),
        _ => Ok(RequestTool::Hosted {
            tag: tag.into_owned(),
            name: value.get("name").and_then(Value::as_str).map(Into::into),
            json: RawJson::of(value),
        }),
    }
}

/// Tools of the client under a name of their own.
fn namespace(value: &Value<'_>, path: &Path<'_>) -> Result<RequestTool, ApiError> {
    let list = read::list(value, "tools", path)?.unwrap_or_default();
    let inner = path.key("tools");
    let mut tools = Vec::with_capacity(list.len());
    for (index, one) in list.iter().enumerate() {
        let path = inner.index(index);
        if one.as_object().is_none() {
            return Err(read::wrong_type(&path, "an object", one));
        }
        let found = tool(one, &path)?;
        if !matches!(
            found,
            RequestTool::Function { .. } | RequestTool::Custom { .. }
        ) {
            let what = "a namespace holds functions and custom tools";
            return Err(read::out_of_range(&path.key("type"), "invalid_value", what));
        }
        tools.push(found);
    }
    Ok(RequestTool::Namespace {
        name: tool_name(value, path)?,
        tools,
        json: RawJson::of(value),
    })
}

fn tool_name(value: &Value<'_>, path: &Path<'_>) -> Result<String, ApiError> {
    const LONGEST: usize = 128;
    let name = read::required(value, "name", path)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > LONGEST || !name.bytes().all(plain) {
        let what = format!(
            "a name has 1 to {LONGEST} letters, digits, '_' and '-' (it must match \
             '^[a-zA-Z0-9_-]+$')"
        );
        return Err(read::out_of_range(
            &path.key("name"),
            "invalid_value",
            &what,
        ));
    }
    Ok(name.into_owned())
}

fn function(value: &Value<'_>, path: &Path<'_>) -> Result<ToolDef, ApiError> {
    let parameters = read::object(value, "parameters", path)?;
    Ok(ToolDef {
        family: Family::FUNCTION,
        name: tool_name(value, path)?,
        description: read::text(value, "description", path)?.map(Into::into),
        parameters: parameters.map(RawJson::of),
        strict: read::flag(value, "strict", path)?,
        vendor: Some(Vendor::item(Wire::OpenAiResponses, RawJson::of(value))),
    })
}

fn server(value: &Value<'_>, path: &Path<'_>) -> Result<McpTool, ApiError> {
    let label = read::required(value, "server_label", path)?;
    for key in ["server_url", "connector_id", "tunnel_id"] {
        if read::member(value, key).is_some() {
            let what = "servers are configured here and chosen by 'server_label' alone";
            return Err(read::out_of_range(
                &path.key(key),
                "unsupported_value",
                what,
            ));
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
        return Ok(RequireApproval::Unset);
    };
    if found.as_object().is_some() {
        let path = path.key(KEY);
        return Ok(RequireApproval::Some {
            always: filter(found, "always", &path)?,
            never: filter(found, "never", &path)?,
        });
    }
    Ok(
        match read::one_of(value, KEY, &["always", "never"], path)? {
            Some("always") => RequireApproval::Always,
            _ => RequireApproval::Never,
        },
    )
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

/// Which of the tools to call. A tool of a vendor is chosen by its type.
pub(super) fn choice(body: &Value<'_>, tools: &[RequestTool]) -> Result<ToolSelection, ApiError> {
    const KEY: &str = "tool_choice";
    let Some(found) = read::member(body, KEY) else {
        return Ok(ToolSelection::default());
    };
    let path = Path::Root.key(KEY);
    if found.as_text().is_some() {
        let word = read::one_of(body, KEY, &["none", "auto", "required"], &Path::Root)?;
        return Ok(ToolSelection::from(options(word)));
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
                return Err(no_such_tool(&path, &name));
            }
            Ok(ToolSelection::from(ToolChoice::Named(name.into_owned())))
        }
        "mcp" => {
            read::required(found, "server_label", &path)?;
            let name = read::text(found, "name", &path)?;
            Ok(ToolSelection::from(match name {
                Some(name) => ToolChoice::Named(name.into_owned()),
                None => ToolChoice::Required,
            }))
        }
        "allowed_tools" => {
            let mode = read::one_of(found, "mode", &["auto", "required"], &path)?;
            let list = read::list(found, "tools", &path)?.unwrap_or_default();
            let mut allowed = AllowedTools::default();
            for tool in list {
                let text = |key| tool.get(key).and_then(Value::as_str).map(Into::into);
                match (text("name"), text("server_label"), text("type")) {
                    (Some(name), _, _) => allowed.names.push(name),
                    (None, Some(label), _) => allowed.servers.push(label),
                    (None, None, Some(tag)) => allowed.names.push(tag),
                    (None, None, None) => {}
                }
            }
            Ok(ToolSelection {
                choice: options(mode),
                allowed: Some(allowed),
            })
        }
        tag => {
            let known = tools.iter().any(|tool| tool.is_named(tag));
            if !known && !has_others(body) {
                return Err(no_such_tool(&path, tag));
            }
            Ok(ToolSelection::from(ToolChoice::Named(tag.to_owned())))
        }
    }
}

fn no_such_tool(path: &Path<'_>, name: &str) -> ApiError {
    let name: String = name.chars().take(128).collect();
    let what = format!("the tool choice '{name}' is not in the 'tools' parameter");
    read::out_of_range(path, "invalid_value", &what)
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

impl From<ToolChoice> for ToolSelection {
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
            Self::Custom { name, .. } => name == wanted,
            Self::Namespace { tools, .. } => tools.iter().any(|tool| tool.is_named(wanted)),
            Self::Hosted { name, tag, .. } => {
                // It loads others.
                tag == "tool_search" || tag == wanted || name.as_deref() == Some(wanted)
            }
            // Which tools a server has is not known here.
            Self::Mcp(_) => true,
        }
    }
}
