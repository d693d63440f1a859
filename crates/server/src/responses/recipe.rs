//! What it takes to answer a request: whom to ask, with which tools, under which rules.

use std::sync::Arc;

use async_trait::async_trait;
use throughline::{
    Agent, Approval, CallContext, Limits, OnPark, OnRepeat, Parameters, RunOptions, Runs, Tool,
    ToolError, ToolOutput, ToolSpec,
};
use throughline_model::json::RawJson;
use throughline_model::{ToolChoice, ToolDef};

use super::host::Host;
use super::showing;
use super::wire::{CreateRequest, McpTool, RequestTool, ServerTool, ToolList};
use crate::config::Kind;
use crate::error::ApiError;
use crate::http::App;
use crate::upstreams::{Route, Upstream};

/// What it takes to answer a request.
pub(crate) struct Recipe {
    pub(crate) agent: Agent,
    pub(crate) options: RunOptions,
    pub(crate) host: Host,
    pub(crate) upstream: Arc<Upstream>,
}

/// The recipe for a request. `listed` are the tool servers that the chain has listed already.
pub(crate) async fn recipe(
    app: &App,
    request: Arc<CreateRequest>,
    listed: &[String],
) -> Result<Recipe, ApiError> {
    let route = app.upstreams.route(request.model())?;
    let mut host = Host::plain(Arc::clone(&request));
    let served = served(app, &request, &route).await?;
    for list in served.lists {
        if !listed.contains(&list.label) {
            host.lists.push(list);
        }
    }
    host.listed = listed.to_vec();
    host.listed
        .extend(host.lists.iter().map(|list| list.label.clone()));
    host.tools = served.names;
    made(app, &route, host, served.tools)
}

/// The recipe for a run that was begun before, as it was kept.
pub(crate) async fn again(app: &App, host: &Host) -> Result<Recipe, ApiError> {
    let route = app.upstreams.route(host.request.model())?;
    let served = served(app, &host.request, &route).await?;
    made(app, &route, host.clone(), served.tools)
}

fn made(
    app: &App,
    route: &Route,
    host: Host,
    served: Vec<Arc<dyn Tool>>,
) -> Result<Recipe, ApiError> {
    let request = &host.request;
    let defs: Vec<ToolDef> = served.iter().map(|tool| tool.spec().to_def()).collect();
    let mut tools = served;
    let allowed = request.tool_choice().allowed.as_deref();
    tools.retain(|tool| allowed.is_none_or(|names| names.contains(&tool.spec().name)));
    for tool in request.tools() {
        let RequestTool::Function { def, .. } = tool else {
            continue;
        };
        if tools.iter().any(|known| known.spec().name == def.name) {
            return Err(clash(&def.name));
        }
        if allowed.is_none_or(|names| names.contains(&def.name)) {
            tools.push(Arc::new(Declared::of(def)));
        }
    }
    let mut settings = request.settings();
    if route.upstream.kind == Kind::OpenAiResponses {
        settings.extra = request.extra_for_responses(&defs);
    }
    let agent = route.agent.as_deref();
    let instructions = [
        agent.and_then(|agent| agent.instructions.as_deref()),
        request.instructions(),
    ];
    let instructions: Vec<&str> = instructions.into_iter().flatten().collect();
    let extras = request.extras();
    let options = RunOptions {
        tools,
        choice: choice(request),
        settings: Some(settings),
        model: route.model.clone(),
        limits: Some(limits(app, request)),
        instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
        persistence: extras
            .persistence
            .or_else(|| agent.and_then(|agent| agent.persistence)),
        on_interrupt: extras.on_interrupt,
        on_open_calls: extras.on_open_calls,
        on_park: Some(OnPark::Publish),
        on_repeat: OnRepeat::Tell,
        compaction: Some(showing::compaction(
            &app.config.compaction,
            route.upstream.window,
            request.compaction(),
        )),
        host: Some(host.to_json()),
        ..RunOptions::default()
    };
    let upstream = Arc::clone(&route.upstream);
    let agent = app.runs.agent(&upstream.name, || agent_of(app, &upstream));
    let agent = agent.map_err(|error| {
        ApiError::server(format!(
            "The upstream {} cannot be used: {error}",
            upstream.name
        ))
    })?;
    Ok(Recipe {
        agent,
        options,
        upstream,
        host,
    })
}

fn agent_of(app: &App, upstream: &Upstream) -> Result<Agent, throughline::BuildError> {
    Agent::builder(Arc::clone(&upstream.client))
        .name(upstream.name.clone())
        .history(app.config.history)
        .metrics(app.metrics.clone())
        .build()
}

fn choice(request: &CreateRequest) -> ToolChoice {
    request.tool_choice().choice.clone()
}

fn limits(app: &App, request: &CreateRequest) -> Limits {
    let mut limits = app.config.limits.run.clone();
    if let Some(most) = request.max_tool_calls() {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        limits.calls = Some(limits.calls.map_or(most, |known| known.min(most)));
    }
    limits
}

/// Tools of ours that a request uses.
#[derive(Default)]
struct Served {
    tools: Vec<Arc<dyn Tool>>,
    names: Vec<(String, ServerTool)>,
    lists: Vec<ToolList>,
}

/// The tools of the servers that the agent and the request name.
async fn served(app: &App, request: &CreateRequest, route: &Route) -> Result<Served, ApiError> {
    let mut served = Served::default();
    let agents = route.agent.as_deref().map(|agent| agent.mcp.as_slice());
    for label in agents.unwrap_or_default() {
        // In a box: connecting is large, and seldom.
        served.add(label, Box::pin(app.mcp.tools(label)).await?, None)?;
    }
    for tool in request.tools() {
        let RequestTool::Mcp(wanted) = tool else {
            continue;
        };
        if served.lists.iter().any(|list| list.label == wanted.label) {
            return Err(clash(&wanted.label));
        }
        let tools = Box::pin(app.mcp.tools(&wanted.label)).await?;
        served.add(&wanted.label, tools, Some(wanted))?;
    }
    Ok(served)
}

impl Served {
    fn add(
        &mut self,
        label: &str,
        tools: Vec<Arc<dyn Tool>>,
        wanted: Option<&McpTool>,
    ) -> Result<(), ApiError> {
        let mut list = ToolList {
            label: label.to_owned(),
            tools: Vec::new(),
        };
        for tool in tools {
            let spec = tool.spec();
            let reads = spec.effect == throughline::Effect::ReadOnly;
            let allowed = wanted.and_then(|wanted| wanted.allowed.as_ref());
            if !allowed.is_none_or(|allowed| allowed.matches(&spec.name, reads)) {
                continue;
            }
            if self.names.iter().any(|(name, _)| *name == spec.name) {
                return Err(clash(&spec.name));
            }
            list.tools.push(listed(spec));
            let asks = spec.approval == Approval::Always
                || wanted.is_some_and(|one| one.require_approval.asks(&spec.name, reads));
            let served = ServerTool {
                label: label.to_owned(),
                name: spec.name.clone(),
                asks,
            };
            self.names.push((spec.name.clone(), served));
            self.tools
                .push(match asks && spec.approval != Approval::Always {
                    true => Arc::new(Asking::of(tool)),
                    false => tool,
                });
        }
        self.lists.push(list);
        Ok(())
    }
}

fn clash(name: &str) -> ApiError {
    let name: String = name.chars().take(128).collect();
    ApiError::invalid(format!(
        "Two tools are called '{name}'. Rename or leave out one of them."
    ))
    .code("duplicate_tool")
    .param("tools")
}

/// A tool as it is listed.
fn listed(spec: &ToolSpec) -> RawJson {
    RawJson::object(|object| {
        object.str("name", &spec.name);
        match &spec.description {
            Some(text) => drop(object.str("description", text)),
            None => drop(object.raw("description", "null")),
        }
        object
            .raw("input_schema", spec.parameters.as_json().get())
            .raw("annotations", "null");
    })
}

/// A function that the client runs.
struct Declared(ToolSpec);

impl Declared {
    fn of(def: &ToolDef) -> Self {
        let mut spec = ToolSpec::named(&def.name);
        spec.description = def.description.clone();
        spec.runs = Runs::Outside;
        spec.parameters = match &def.parameters {
            Some(schema) => Parameters::unchecked(schema),
            None => Parameters::any(),
        };
        Self(spec)
    }
}

#[async_trait]
impl Tool for Declared {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: &RawJson, _: CallContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::new("the client runs this tool"))
    }
}

/// A tool of ours that the client wants to be asked about.
struct Asking {
    spec: ToolSpec,
    tool: Arc<dyn Tool>,
}

impl Asking {
    fn of(tool: Arc<dyn Tool>) -> Self {
        let mut spec = tool.spec().clone();
        spec.approval = Approval::Always;
        Self { spec, tool }
    }
}

#[async_trait]
impl Tool for Asking {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        self.tool.call(arguments, context).await
    }

    async fn probe(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<throughline::Probe, ToolError> {
        self.tool.probe(arguments, context).await
    }
}
