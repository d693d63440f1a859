//! Resolves a request to an agent: upstream, tools, settings and limits.

use std::sync::Arc;

use async_trait::async_trait;
use throughline::agent::{Limits, OnRepeat, RunOptions};
use throughline::thread::OnPark;
use throughline::tool::{Approval, CallContext, ToolError, ToolOutput, ToolSpec};
use throughline::{Agent, Tool};
use throughline_model::ToolDef;
use throughline_model::json::RawJson;

use super::compaction_options;
use super::fixed_answer::set_answer;
use super::offered::{OfferedTools, choice, renamed};
use super::stored_request::StoredRequest;
use super::trigger::set_compaction_answer;
use super::unsupported::ModelCall;
use super::wire::{CreateRequest, McpTool, RequestTool};
use crate::api::ignored::check_unsupported;
use crate::api::openai::items::{InputItems, ServerTool, ToolList};
use crate::app::App;
use crate::config::{AgentConfig, Kind};
use crate::error::ApiError;
use crate::upstreams::{Route, Upstream};

/// What it takes to answer a request.
pub(crate) struct ResolvedTarget {
    pub(crate) agent: Agent,
    pub(crate) options: RunOptions,
    pub(crate) host: StoredRequest,
    pub(crate) upstream: Arc<Upstream>,
    /// The message store of the application that keeps the histories of new threads.
    pub(crate) message_store: Option<String>,
}

/// Resolve a new request. `listed` are the tool servers that the chain has listed already.
pub(crate) async fn resolve_target(
    app: &App,
    request: Arc<CreateRequest>,
    input: &InputItems,
    listed: &[String],
) -> Result<ResolvedTarget, ApiError> {
    let route = app.upstreams.route(request.model())?;
    let mut host = StoredRequest::plain(Arc::clone(&request));
    host.conversation = request.conversation().map(str::to_owned);
    let served = server_tools(app, &request, &route).await?;
    for list in served.lists {
        if !listed.contains(&list.label) {
            host.lists.push(list);
        }
    }
    host.listed = listed.to_vec();
    host.listed
        .extend(host.lists.iter().map(|list| list.label.clone()));
    host.tools = served.names;
    let check = UnsupportedCheck::New(input);
    let mut target = build_target(app, &route, host, served.tools, check)?;
    without_model(app, &mut target)?;
    Ok(target)
}

/// Whether a request is checked for what cannot be carried out.
#[derive(Clone, Copy)]
enum UnsupportedCheck<'i> {
    /// Check it, with the input of the request.
    New(&'i InputItems),
    /// It was checked before, and the result is stored.
    Stored,
}

/// Resolve the request of a run that was begun before, as it was stored.
pub(crate) async fn resolve_stored(
    app: &App,
    host: &StoredRequest,
) -> Result<ResolvedTarget, ApiError> {
    let route = app.upstreams.route(host.request.model())?;
    let served = server_tools(app, &host.request, &route).await?;
    let mut target = build_target(
        app,
        &route,
        host.clone(),
        served.tools,
        UnsupportedCheck::Stored,
    )?;
    without_model(app, &mut target)?;
    if let Some(item) = &host.compaction_item {
        set_compaction_answer(app, &mut target, item.clone())?;
    }
    Ok(target)
}

fn build_target(
    app: &App,
    route: &Route,
    mut host: StoredRequest,
    served: Vec<Arc<dyn Tool>>,
    check: UnsupportedCheck<'_>,
) -> Result<ResolvedTarget, ApiError> {
    let request = Arc::clone(&host.request);
    let native = route.upstream.kind.speaks_responses();
    let offered = OfferedTools::of(&request, native);
    let mut tools = served;
    let allowed = request.tool_choice().allowed.as_ref();
    let label = |name: &str| {
        let found = host.tools.iter().find(|(known, _)| known == name);
        found.map(|(_, tool)| tool.label.clone())
    };
    tools.retain(|tool| {
        let name = &tool.spec().name;
        allowed.is_none_or(|allowed| allowed.has(name, label(name).as_deref()))
    });
    for tool in &offered.tools {
        let name = &tool.spec().name;
        if tools.iter().any(|known| known.spec().name == *name) {
            return Err(duplicate_tool(name));
        }
        tools.push(Arc::clone(tool));
    }
    let mut settings = request.settings();
    if native {
        settings.extra = request.extra_for_responses(route.upstream.kind == Kind::OpenAiResponses);
    }
    let choice = choice(&request, native);
    let specs = tools
        .iter()
        .map(|tool: &Arc<dyn Tool>| tool.spec())
        .filter(|spec| spec.offered);
    let defs: Vec<ToolDef> = specs
        .map(ToolSpec::to_def)
        .chain(offered.hosted.iter().cloned())
        .collect();
    let call = ModelCall {
        route,
        request: &request,
        settings: &settings,
        choice: &choice,
        defs: &defs,
        offered: &offered,
    };
    if let UnsupportedCheck::New(input) = check {
        call.refuse_contents(input)?;
        host.functions = !native && renamed(&request).next().is_some();
        host.ignored = call.ignored()?;
        check_unsupported(&host.ignored, app.config.server.unsupported)?;
    }
    let agent = route.agent.as_deref();
    let extras = request.extras();
    let options = RunOptions {
        tools,
        hosted: offered.hosted,
        choice,
        settings: Some(settings),
        model: route.model.clone(),
        limits: Some(limits(app, &request)),
        instructions: instructions(agent, &request),
        persistence: extras
            .persistence
            .or_else(|| agent.and_then(|agent| agent.persistence)),
        on_busy: extras.on_busy,
        on_interrupt: extras.on_interrupt,
        on_open_calls: extras.on_open_calls,
        on_park: Some(OnPark::Publish),
        on_repeat: OnRepeat::Tell,
        compaction: Some(compaction_options::compaction(
            &app.config.compaction,
            route.upstream.window,
            request.compaction(),
        )),
        host: Some(host.to_json()),
        listed_agent: agent.map(|agent| agent.id.clone()),
        ..RunOptions::default()
    };
    let message_store = agent.and_then(|agent| agent.message_store.clone());
    let upstream = Arc::clone(&route.upstream);
    let agent = app
        .runs
        .agent(&upstream.name, || build_agent(app, &upstream));
    let agent = agent.map_err(|error| {
        ApiError::server(format!(
            "The upstream {} cannot be used: {error}",
            upstream.name
        ))
    })?;
    Ok(ResolvedTarget {
        agent,
        options,
        upstream,
        host,
        message_store: message_store.filter(|_| request.store()),
    })
}

/// Have a run without `generate` answer with nothing instead of calling a model.
fn without_model(app: &App, target: &mut ResolvedTarget) -> Result<(), ApiError> {
    match target.host.request.generate() {
        true => Ok(()),
        false => set_answer(app, target, Vec::new()),
    }
}

/// The instructions of the agent and those of the request.
fn instructions(agent: Option<&AgentConfig>, request: &CreateRequest) -> Option<String> {
    let agent = agent.and_then(|agent| agent.instructions.as_deref());
    let both: Vec<&str> = [agent, request.instructions()]
        .into_iter()
        .flatten()
        .collect();
    (!both.is_empty()).then(|| both.join("\n\n"))
}

fn build_agent(app: &App, upstream: &Upstream) -> Result<Agent, throughline::agent::BuildError> {
    let agent = Agent::builder(Arc::clone(&upstream.client))
        .name(upstream.name.clone())
        .history(app.config.history)
        .metrics(app.metrics.clone())
        .memory(&app.memory);
    app.message_stores.offer_to(agent).build()
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
struct ServerTools {
    tools: Vec<Arc<dyn Tool>>,
    names: Vec<(String, ServerTool)>,
    lists: Vec<ToolList>,
}

/// The tools of the servers that the agent and the request name.
async fn server_tools(
    app: &App,
    request: &CreateRequest,
    route: &Route,
) -> Result<ServerTools, ApiError> {
    let mut served = ServerTools::default();
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
            return Err(duplicate_tool(&wanted.label));
        }
        let tools = Box::pin(app.mcp.tools(&wanted.label)).await?;
        served.add(&wanted.label, tools, Some(wanted))?;
    }
    Ok(served)
}

impl ServerTools {
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
            let reads = spec.effect == throughline::tool::Effect::ReadOnly;
            let allowed = wanted.and_then(|wanted| wanted.allowed.as_ref());
            if !allowed.is_none_or(|allowed| allowed.matches(&spec.name, reads)) {
                continue;
            }
            if self.names.iter().any(|(name, _)| *name == spec.name) {
                return Err(duplicate_tool(&spec.name));
            }
            list.tools.push(tool_listing(spec));
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
                    true => Arc::new(ApprovalRequired::of(tool)),
                    false => tool,
                });
        }
        self.lists.push(list);
        Ok(())
    }
}

fn duplicate_tool(name: &str) -> ApiError {
    let name: String = name.chars().take(128).collect();
    ApiError::invalid(format!(
        "Two tools are called '{name}'. Rename or leave out one of them."
    ))
    .code("duplicate_tool")
    .param("tools")
}

/// A tool as it is listed.
fn tool_listing(spec: &ToolSpec) -> RawJson {
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

/// A tool of ours that the client wants to be asked about.
struct ApprovalRequired {
    spec: ToolSpec,
    tool: Arc<dyn Tool>,
}

impl ApprovalRequired {
    fn of(tool: Arc<dyn Tool>) -> Self {
        let mut spec = tool.spec().clone();
        spec.approval = Approval::Always;
        Self { spec, tool }
    }
}

#[async_trait]
impl Tool for ApprovalRequired {
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
    ) -> Result<throughline::tool::Probe, ToolError> {
        self.tool.probe(arguments, context).await
    }
}
