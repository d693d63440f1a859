//! The client's tools as a model is offered them.
//!
//! An upstream that speaks this API gets them as they were written. Elsewhere a tool that takes free
//! text is a function with one text, and a namespace is its functions under longer names; calls are
//! shown to the client in the form that it declared. Tools of a vendor are offered in the words of
//! the upstream's vendor, if that has them.

use std::sync::Arc;

use async_trait::async_trait;
use throughline::Tool;
use throughline::tool::{CallContext, Parameters, Runs, ToolError, ToolOutput, ToolSpec};
use throughline_model::json::{RawJson, Value};
use throughline_model::{Family, ToolChoice, ToolDef, Vendor, Wire};

use super::wire::{AllowedTools, CreateRequest, RequestTool};
use crate::api::openai::items::ToolName;

/// The client's tools as a model is offered them.
#[derive(Default)]
pub(crate) struct OfferedTools {
    /// Those that the client runs.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// Those that the vendor runs.
    pub(crate) hosted: Vec<ToolDef>,
    /// What the client declared of each tool, by the name that the model knows.
    declared: Vec<(String, DeclaredTool)>,
}

/// What a client declared.
struct DeclaredTool {
    /// Which of the request's tools it is, or is in.
    index: usize,
    /// Its name there.
    name: String,
}

impl OfferedTools {
    /// The tools of a request. `native` says whether the upstream speaks this API.
    pub(crate) fn of(request: &CreateRequest, native: bool) -> Self {
        let mut offered = Self::default();
        for (index, tool) in request.tools().iter().enumerate() {
            match native {
                true => offered.add_native(tool, index),
                false => offered.add(tool, None, index),
            }
        }
        if let Some(allowed) = &request.tool_choice().allowed {
            offered.retain_allowed(allowed);
        }
        offered
    }

    /// The place of a tool in the request.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.declared_as(name).map(|place| place.index)
    }

    fn declared_as(&self, name: &str) -> Option<&DeclaredTool> {
        let found = self.declared.iter().find(|(known, _)| known == name);
        found.map(|(_, place)| place)
    }

    /// Keep what the client allows, by the names that it declared.
    fn retain_allowed(&mut self, allowed: &AllowedTools) {
        let has = |offered: &Self, name: &str| {
            let declared = offered.declared_as(name).map_or(name, |place| &place.name);
            allowed.has(declared, None)
        };
        let mut tools = std::mem::take(&mut self.tools);
        tools.retain(|tool| has(self, &tool.spec().name));
        let mut hosted = std::mem::take(&mut self.hosted);
        hosted.retain(|tool| has(self, &tool.name));
        (self.tools, self.hosted) = (tools, hosted);
    }

    /// A tool for an upstream that speaks this API.
    fn add_native(&mut self, tool: &RequestTool, index: usize) {
        match tool {
            RequestTool::Function { def, .. } => self.declare(index, &def.name, function_spec(def)),
            RequestTool::Custom { name, json, .. } => {
                let mut spec = client_spec(name);
                spec.vendor = Some(Vendor::item(Wire::OpenAiResponses, json.clone()));
                self.declare(index, name, spec);
            }
            RequestTool::Namespace { name, tools, json } => {
                // The upstream gets the namespace as one definition; calls name the tools in it.
                let family = Family::of("namespace");
                self.add_hosted_tool(index, name, family, json);
                for inner in tools.iter().flat_map(RequestTool::names) {
                    let mut spec = client_spec(&inner.name);
                    spec.offered = false;
                    self.declare(index, &inner.name, spec);
                }
            }
            RequestTool::Hosted { .. } => self.add_hosted(tool, index),
            RequestTool::Mcp(_) => {}
        }
    }

    /// A tool for an upstream that knows functions.
    fn add(&mut self, tool: &RequestTool, namespace: Option<&str>, index: usize) {
        let offered = |name: &str, custom| {
            ToolName {
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
                custom,
            }
            .offered()
        };
        match tool {
            RequestTool::Function { def, .. } => {
                let mut spec = function_spec(def);
                spec.name = offered(&def.name, false);
                self.declare(index, &def.name, spec);
            }
            RequestTool::Custom {
                name,
                description,
                json,
            } => {
                let mut spec = client_spec(&offered(name, true));
                spec.description = description_with_grammar(description.as_deref(), json);
                spec.parameters = Parameters::unchecked(&single_text_schema());
                self.declare(index, name, spec);
            }
            RequestTool::Namespace { name, tools, .. } => {
                for inner in tools {
                    self.add(inner, Some(name), index);
                }
            }
            RequestTool::Hosted { .. } => self.add_hosted(tool, index),
            RequestTool::Mcp(_) => {}
        }
    }

    fn add_hosted(&mut self, tool: &RequestTool, index: usize) {
        if let RequestTool::Hosted { tag, json, .. } = tool {
            self.add_hosted_tool(index, tag, family_of(tag), json);
        }
    }

    fn declare(&mut self, index: usize, name: &str, spec: ToolSpec) {
        self.record(&spec.name, index, name);
        self.tools.push(Arc::new(ClientTool(spec)));
    }

    fn record(&mut self, offered: &str, index: usize, name: &str) {
        let place = DeclaredTool {
            index,
            name: name.to_owned(),
        };
        self.declared.push((offered.to_owned(), place));
    }

    fn add_hosted_tool(&mut self, index: usize, name: &str, family: Family, json: &RawJson) {
        self.record(name, index, name);
        self.hosted.push(ToolDef {
            family,
            name: name.to_owned(),
            vendor: Some(Vendor::item(Wire::OpenAiResponses, json.clone())),
            ..ToolDef::default()
        });
    }
}

/// The choice in the names that the model knows.
pub(crate) fn choice(request: &CreateRequest, native: bool) -> ToolChoice {
    match &request.tool_choice().choice {
        ToolChoice::Named(name) if !native => {
            let names = request.tools().iter().flat_map(RequestTool::names);
            let meant = names
                .filter(|tool| tool.name == *name)
                .map(|tool| tool.offered());
            ToolChoice::Named(meant.into_iter().next().unwrap_or_else(|| name.clone()))
        }
        choice => choice.clone(),
    }
}

/// The client's tools that a model knows by another name or in another form.
pub(crate) fn renamed(request: &CreateRequest) -> impl Iterator<Item = (String, ToolName)> {
    let names = request.tools().iter().flat_map(RequestTool::names);
    let other = names.filter(|tool| tool.custom || tool.namespace.is_some());
    other.map(|tool| (tool.offered(), tool))
}

/// The family of a vendor's tool by the type that OpenAI's API has for it.
fn family_of(tag: &str) -> Family {
    match tag {
        "code_interpreter" => Family::CODE_INTERPRETER,
        "file_search" => Family::FILE_SEARCH,
        "image_generation" => Family::IMAGE_GENERATION,
        "computer" | "computer_use_preview" => Family::COMPUTER,
        "shell" => Family::SHELL,
        "local_shell" => Family::LOCAL_SHELL,
        "apply_patch" => Family::APPLY_PATCH,
        "tool_search" => Family::TOOL_SEARCH,
        tag if tag.starts_with("web_search") => Family::WEB_SEARCH,
        tag => Family::named(tag),
    }
}

/// A function that the client runs.
fn function_spec(def: &ToolDef) -> ToolSpec {
    let mut spec = client_spec(&def.name);
    spec.description = def.description.clone();
    spec.strict = def.strict;
    spec.vendor = def.vendor.clone();
    spec.parameters = match &def.parameters {
        Some(schema) => Parameters::unchecked(schema),
        None => Parameters::any(),
    };
    spec
}

fn client_spec(name: &str) -> ToolSpec {
    let mut spec = ToolSpec::named(name);
    spec.runs = Runs::Outside;
    spec.parameters = Parameters::any();
    spec
}

/// The schema of a function that takes one text.
fn single_text_schema() -> RawJson {
    RawJson::object(|object| {
        object.str("type", "object");
        object.raw("properties", r#"{"input":{"type":"string"}}"#);
        object.raw("required", r#"["input"]"#);
        object.bool("additionalProperties", false);
    })
}

/// What a tool does, and which grammar its text has.
fn description_with_grammar(description: Option<&str>, json: &RawJson) -> Option<String> {
    let value = json.value();
    let grammar = value.at(&["format", "definition"]).and_then(Value::as_str);
    let grammar = grammar.map(|grammar| format!("The text must follow this grammar:\n{grammar}"));
    let texts: Vec<&str> = [description, grammar.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// A tool that the client runs.
struct ClientTool(ToolSpec);

#[async_trait]
impl Tool for ClientTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: &RawJson, _: CallContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::new("the client runs this tool"))
    }
}
