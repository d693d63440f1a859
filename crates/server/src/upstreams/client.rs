//! The client for an upstream: a vendor's, with a breaker around it and retries around that.

use std::error::Error;
use std::sync::Arc;

use throughline::client::{
    Bounds, Breaker, BreakerPolicy, ClientBuilder, ClientError, ClientExt, CommandTokens, Markers,
    MemoryBudget, Retry, StoresHistory, Transport,
};
use throughline::telemetry::Metrics;
use throughline::{Anthropic, ChatClient, Demo, Foundry, Gemini, OpenAi};

use crate::config::{
    CompactionConfig, ConfigError, Credential, HistoryLocation, Kind, UpstreamConfig,
};

/// What all clients share.
pub(super) struct SharedSettings<'a> {
    pub(super) compaction: &'a CompactionConfig,
    /// One pool of connections.
    pub(super) transport: Arc<dyn Transport>,
    pub(super) metrics: &'a Metrics,
    pub(super) memory: &'a MemoryBudget,
    /// The largest answer.
    pub(super) answer_bytes: u64,
}

/// Make the client, and the breaker around it.
pub(super) fn make(
    config: &UpstreamConfig,
    shared: &SharedSettings<'_>,
) -> Result<(Arc<dyn ChatClient>, Breaker), ConfigError> {
    let (compaction, metrics) = (shared.compaction, shared.metrics);
    let policy = match config.kind {
        Kind::Demo => BreakerPolicy::never(),
        _ => BreakerPolicy::default(),
    };
    let breaker = Breaker::observed_by(policy, Arc::new(metrics.clone()));
    let builder = match config.kind {
        Kind::OpenAiResponses => OpenAi::responses(""),
        Kind::OpenAiChat => OpenAi::chat(""),
        Kind::Anthropic => Anthropic::new(""),
        Kind::Gemini => Gemini::new(""),
        Kind::Foundry => Foundry::new(config.base_url.as_deref().unwrap_or_default(), ""),
        Kind::Demo => {
            let client = check_history(config, demo(metrics, &breaker))?;
            return Ok((client, breaker));
        }
    };
    let mut builder = builder
        .any_model()
        .upstream(config.name.clone())
        .transport(Arc::clone(&shared.transport))
        .tool_history(compaction.strategy)
        .memory(shared.memory)
        .bounds(Bounds {
            body_bytes: shared.answer_bytes,
            answer_bytes: shared.answer_bytes,
            ..Bounds::default()
        })
        .shared_breaker(breaker.clone())
        .observer(Arc::new(metrics.clone()));
    if let (Some(url), false) = (&config.base_url, config.kind == Kind::Foundry) {
        builder = builder.base_url(url.clone());
    }
    // Unchanged ones are shared by all clients, and so is what was rendered with them.
    if compaction.markers != Markers::default() {
        builder = builder.text_markers(compaction.markers.clone());
    }
    let built = sign(builder, &config.credential).build();
    let client = check_history(config, built.map_err(|error| refused(config, &error))?)?;
    Ok((client, breaker))
}

fn demo(metrics: &Metrics, breaker: &Breaker) -> Arc<dyn ChatClient> {
    Demo::new()
        .layer(breaker.clone())
        .layer(Retry::default().observed_by(Arc::new(metrics.clone())))
}

fn sign(builder: ClientBuilder, credential: &Credential) -> ClientBuilder {
    match credential {
        Credential::None => builder,
        Credential::Key(key) => builder.api_key(key.clone()),
        Credential::Command(words) => {
            let mut words = words.iter();
            let tokens = CommandTokens::new(words.next().cloned().unwrap_or_default());
            builder.token_provider(Arc::new(tokens.args(words.cloned())))
        }
    }
}

/// A client that can keep conversations where it is to keep them.
fn check_history(
    config: &UpstreamConfig,
    client: Arc<dyn ChatClient>,
) -> Result<Arc<dyn ChatClient>, ConfigError> {
    let stores = client.abilities().stores_history;
    match (config.history, stores) {
        (HistoryLocation::Service, StoresHistory::Never) => Err(wrong(
            config,
            "history",
            format!(
                "\"service\" needs a vendor that keeps conversations, and {} keeps none; \
                 take it out, or write \"local\"",
                config.kind.as_str()
            ),
        )),
        (HistoryLocation::Local, StoresHistory::Always) => Err(wrong(
            config,
            "history",
            format!(
                "{} always keeps conversations; write \"service\"",
                config.kind.as_str()
            ),
        )),
        (HistoryLocation::Local, StoresHistory::Never | StoresHistory::Optional)
        | (HistoryLocation::Service, StoresHistory::Optional | StoresHistory::Always) => Ok(client),
    }
}

fn wrong(config: &UpstreamConfig, key: &str, problem: String) -> ConfigError {
    ConfigError::Wrong {
        origin: config.origin.clone(),
        key: format!("upstream.{}.{key}", config.name),
        problem,
    }
}

/// What a builder refuses, with its reasons. Neither holds a key.
fn refused(config: &UpstreamConfig, error: &ClientError) -> ConfigError {
    let mut problem = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        problem.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    let key = match problem.contains("base_url") {
        true => "base_url",
        false => "api_key_env",
    };
    wrong(config, key, problem)
}
