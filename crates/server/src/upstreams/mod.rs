//! The upstreams of the configuration, and which of them serves a model.
//!
//! A name is looked up in this order: `agent/ID`, `UPSTREAM/name`, a name in some upstream's
//! `models`, the pattern there that says most of it, and of two that say as much the one that is
//! written first.

mod client;
mod glob;
mod models;
mod services;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use throughline::ChatClient;
use throughline::client::{
    Breaker, ClientExt as _, HttpSettings, HttpTransport, MemoryBudget, Timeouts, Transport,
};
use throughline::telemetry::{Metrics, WatchCalls};

use crate::config::{AgentConfig, Config, ConfigError, HistoryLocation, Kind, Origin};
use crate::error::ApiError;
use crate::suggest::{did_you_mean, suggest};

pub use models::{ModelCache, ModelInfo, ModelListing};

/// A configured vendor endpoint.
#[derive(Clone)]
pub struct Upstream {
    /// Its name.
    pub name: String,
    /// What it speaks.
    pub kind: Kind,
    /// The client, with a breaker around it and retries around that. Its requests name the model.
    pub client: Arc<dyn ChatClient>,
    /// The same client for model calls that no agent makes, which are recorded as spans and metrics.
    pub watched: Arc<dyn ChatClient>,
    /// The breaker, whose state is shown.
    pub breaker: Breaker,
    /// Who keeps conversations.
    pub history: HistoryLocation,
    /// Bare names that go here, with `*` for anything.
    pub models: Vec<String>,
    /// Tokens that the context windows of its models hold, if configured.
    pub window: Option<u64>,
    /// What it lists itself.
    pub listed: Arc<ModelCache>,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("history", &self.history)
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// What a model's name means.
#[derive(Clone, Debug)]
pub struct Route {
    /// The agent, if the name is one's.
    pub agent: Option<Arc<AgentConfig>>,
    /// The upstream that serves it.
    pub upstream: Arc<Upstream>,
    /// The vendor's name of the model; none for the built-in one.
    pub model: Option<String>,
}

/// A pool of connections for what a section of the configuration names.
pub(crate) fn transport(section: &str) -> Result<Arc<dyn Transport>, ConfigError> {
    let http = HttpSettings {
        connect_timeout: Timeouts::default().connect,
        ..HttpSettings::default()
    };
    let transport = HttpTransport::new(&http).map_err(|error| ConfigError::Wrong {
        origin: Origin::Default,
        key: section.to_owned(),
        problem: format!("no connections can be made: {error}"),
    })?;
    Ok(Arc::new(transport))
}

/// All upstreams and agents of a configuration.
#[derive(Clone, Debug)]
pub struct Upstreams {
    /// In the order of the file.
    all: Vec<Arc<Upstream>>,
    by_name: BTreeMap<String, usize>,
    agents: BTreeMap<String, Arc<AgentConfig>>,
}

impl Upstreams {
    /// The clients for a configuration. No upstream is called yet.
    pub fn of(config: &Config) -> Result<Self, ConfigError> {
        let memory = MemoryBudget::new(config.limits.working_memory());
        Self::with_metrics(config, &Metrics::new(), &memory)
    }

    /// The same, with retries and breakers counted, and the memory that answers take.
    pub fn with_metrics(
        config: &Config,
        metrics: &Metrics,
        memory: &MemoryBudget,
    ) -> Result<Self, ConfigError> {
        let shared = client::SharedSettings {
            compaction: &config.compaction,
            transport: transport("upstream")?,
            metrics,
            memory,
            answer_bytes: config.limits.answer_bytes as u64,
        };
        let mut all = Vec::new();
        let mut by_name = BTreeMap::new();
        for upstream in &config.upstreams {
            by_name.insert(upstream.name.clone(), all.len());
            let (client, breaker) = client::make(upstream, &shared)?;
            all.push(Arc::new(Upstream {
                name: upstream.name.clone(),
                kind: upstream.kind,
                watched: Arc::clone(&client).layer(WatchCalls::new(metrics.clone())),
                client,
                breaker,
                history: upstream.history,
                models: upstream.models.clone(),
                window: upstream.window,
                listed: Arc::default(),
            }));
        }
        let named = |agent: &Arc<AgentConfig>| (agent.id.clone(), Arc::clone(agent));
        let upstreams = Self {
            all,
            by_name,
            agents: config.agents.iter().map(named).collect(),
        };
        for agent in &config.agents {
            upstreams.check_model(agent)?;
        }
        Ok(upstreams)
    }

    /// Whether an upstream serves the model of an agent, which must not be another agent, and
    /// whether no more than one of them keeps its histories.
    fn check_model(&self, agent: &AgentConfig) -> Result<(), ConfigError> {
        let wrong = |key, problem| ConfigError::Wrong {
            origin: agent.origin.clone(),
            key: format!("agent.{}.{key}", agent.id),
            problem,
        };
        if agent.model.starts_with("agent/") {
            let problem = "an agent cannot be the model of another one";
            return Err(wrong("model", problem.to_owned()));
        }
        let Some(route) = self.route_upstream(&agent.model) else {
            return Err(wrong("model", self.not_found(&agent.model).message));
        };
        let upstream = &route.upstream;
        match (&agent.message_store, upstream.history) {
            (Some(_), HistoryLocation::Service) => Err(wrong(
                "message_store",
                format!(
                    "excludes history = \"service\" of the upstream {}, which keeps its \
                     conversations itself; take one of them out",
                    upstream.name
                ),
            )),
            (Some(_), HistoryLocation::Local) | (None, _) => Ok(()),
        }
    }

    /// All upstreams, in the order of the file.
    pub fn all(&self) -> &[Arc<Upstream>] {
        &self.all
    }

    /// What a model's name means.
    pub fn route(&self, model: Option<&str>) -> Result<Route, ApiError> {
        let model = model.filter(|model| !model.is_empty()).ok_or_else(|| {
            ApiError::invalid("Missing required parameter: 'model'.")
                .code("missing_required_parameter")
                .param("model")
        })?;
        self.find(model).ok_or_else(|| self.not_found(model))
    }

    /// What a name means, if it means something.
    pub(super) fn find(&self, model: &str) -> Option<Route> {
        let Some(id) = model.strip_prefix("agent/") else {
            return self.route_upstream(model);
        };
        let agent = self.agents.get(id)?;
        Some(Route {
            agent: Some(Arc::clone(agent)),
            ..self.route_upstream(&agent.model)?
        })
    }

    /// What a name means that is no agent's.
    fn route_upstream(&self, model: &str) -> Option<Route> {
        if let Some((name, rest)) = model.split_once('/')
            && let Some(upstream) = self.by_name.get(name).and_then(|at| self.all.get(*at))
        {
            return (!rest.is_empty()).then(|| route(upstream, rest));
        }
        let patterns = self.all.iter().flat_map(|upstream| {
            let patterns = upstream.models.iter();
            patterns.map(move |pattern| (pattern.as_str(), upstream))
        });
        let matching: Vec<_> = patterns
            .filter(|(pattern, _)| glob::matches(pattern, model))
            .collect();
        // `max_by_key` returns the last maximum, and the first in the file is to win: reverse them.
        let (_, upstream) = matching
            .into_iter()
            .rev()
            .max_by_key(|(pattern, _)| (glob::is_exact(pattern), glob::literal_length(pattern)))?;
        Some(route(upstream, model))
    }

    fn not_found(&self, model: &str) -> ApiError {
        let shown: String = model.chars().take(128).collect();
        let near = self.suggestions(model);
        let meant = did_you_mean(&near);
        let help = match meant.is_empty() {
            true => "; GET /v1/models lists some, and UPSTREAM/NAME asks a certain upstream",
            false => &meant,
        };
        ApiError::not_found(format!("The model {shown:?} does not exist{help}"))
            .code("model_not_found")
            .param("model")
    }

    /// Names that may have been meant.
    fn suggestions(&self, model: &str) -> Vec<String> {
        let listed = self.models();
        let listed = listed.iter().map(|model| model.id.as_str());
        let mut found: Vec<String> = suggest(model, listed)
            .into_iter()
            .map(str::to_owned)
            .collect();
        if let Some((name, rest)) = model.split_once('/') {
            let names = self.all.iter().map(|upstream| upstream.name.as_str());
            let names = suggest(name, names.chain(["agent"]));
            found.extend(names.into_iter().map(|name| format!("{name}/{rest}")));
        }
        found.retain(|name| name.len() <= 256 && self.find(name).is_some());
        found.truncate(3);
        found
    }
}

fn route(upstream: &Arc<Upstream>, model: &str) -> Route {
    Route {
        agent: None,
        model: match upstream.kind {
            Kind::Demo => None,
            Kind::OpenAiResponses
            | Kind::OpenAiChat
            | Kind::Anthropic
            | Kind::Gemini
            | Kind::Foundry => Some(model.to_owned()),
        },
        upstream: Arc::clone(upstream),
    }
}
