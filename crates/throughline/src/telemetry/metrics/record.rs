//! Which event is recorded by which instruments.

use std::time::Duration;

use throughline_model::{Outcome, Usage};

use super::{Instrument, Metrics};
use crate::client::{BreakerState, ClientEvent, ErrorKind, Observer};

const CHAT: &str = "chat";

/// The labels of a model call; unknown ones are empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallLabels<'a> {
    pub(crate) provider: &'a str,
    pub(crate) request_model: &'a str,
    pub(crate) response_model: &'a str,
}

impl Metrics {
    /// A model call ended, with or without an error.
    pub(crate) fn model_call(&self, of: CallLabels<'_>, time: Duration, error: Option<&str>) {
        let labels = [
            CHAT,
            of.provider,
            of.request_model,
            of.response_model,
            error.unwrap_or_default(),
        ];
        self.record(Instrument::OperationDuration, time.as_secs_f64(), labels);
    }

    pub(crate) fn first_event(&self, of: CallLabels<'_>, time: Duration) {
        let labels = [CHAT, of.provider, of.request_model, of.response_model];
        self.record(Instrument::TimeToFirstChunk, time.as_secs_f64(), labels);
    }

    pub(crate) fn model_error(&self, of: CallLabels<'_>, kind: ErrorKind) {
        let labels = [of.provider, of.request_model, kind.as_str()];
        self.record(Instrument::ModelErrors, 1.0, labels);
    }

    /// The tokens that a vendor reported. Unreported ones are not recorded as zero.
    pub(crate) fn tokens(&self, of: CallLabels<'_>, usage: &Usage) {
        let count = |instrument, kind, tokens: Option<u64>| {
            if let Some(tokens) = tokens {
                let labels = [CHAT, of.provider, of.request_model, of.response_model, kind];
                self.record(instrument, tokens as f64, labels);
            }
        };
        count(Instrument::TokenUsage, "input", usage.input);
        count(Instrument::TokenUsage, "output", usage.output);
        count(Instrument::TokenDetails, "cache_read", usage.cache_read);
        count(Instrument::TokenDetails, "cache_write", usage.cache_write);
        count(Instrument::TokenDetails, "reasoning", usage.reasoning);
    }

    pub(crate) fn tool(
        &self,
        [agent, tool]: [&str; 2],
        outcome: Outcome,
        error: Option<&str>,
        time: Duration,
    ) {
        let labels = [agent, tool, outcome.as_str()];
        self.record(Instrument::ToolCalls, 1.0, labels);
        let labels = [agent, tool, "function", error.unwrap_or_default()];
        self.record(Instrument::ToolDuration, time.as_secs_f64(), labels);
    }

    /// A compaction.
    pub(crate) fn compaction(&self, agent: &str, before: u64, after: u64) {
        self.record(Instrument::Compactions, 1.0, [agent]);
        for (when, tokens) in [("before", before), ("after", after)] {
            self.record(Instrument::CompactionTokens, tokens as f64, [agent, when]);
        }
    }

    pub(crate) fn run(&self, agent: &str, stop: &str, error: Option<&str>, time: Duration) {
        self.record(Instrument::Runs, 1.0, [agent, stop]);
        let labels = [agent, error.unwrap_or_default()];
        self.record(Instrument::RunDuration, time.as_secs_f64(), labels);
    }
}

/// Records events of retries and circuit breakers.
impl Observer for Metrics {
    fn observe(&self, event: &ClientEvent<'_>) {
        match *event {
            ClientEvent::Attempt { upstream, .. } => {
                self.record(Instrument::Attempts, 1.0, [upstream]);
            }
            ClientEvent::Retry { upstream, kind, .. } => {
                self.record(Instrument::Retries, 1.0, [upstream, kind.as_str()]);
            }
            ClientEvent::GaveUp {
                upstream,
                kind,
                why,
                ..
            } => {
                let labels = [upstream, kind.as_str(), why.as_str()];
                self.record(Instrument::GaveUp, 1.0, labels);
            }
            ClientEvent::FellBack { upstream, .. } => {
                self.record(Instrument::Fallbacks, 1.0, [upstream]);
            }
            ClientEvent::Breaker { upstream, state } => {
                let value = match state {
                    BreakerState::Closed => 0.0,
                    BreakerState::HalfOpen => 1.0,
                    BreakerState::Open => 2.0,
                };
                self.record(Instrument::BreakerState, value, [upstream]);
            }
        }
    }
}
