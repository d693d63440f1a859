//! Stateful Responses for any vendor, over HTTP.
//!
//! [`serve`] takes a [`Config`] and gives a [`Server`] that listens. What it is told is in `config`,
//! whom it asks in `upstreams`, the tools that it runs itself in `mcp`, and what every request and
//! answer have in common in `http`.

mod config;
mod error;
mod http;
mod mcp;
mod near;
pub mod responses;
mod runs;
mod trials;
mod upstreams;

pub use config::{
    AgentConfig, Auth, CompactionConfig, Config, ConfigError, Credential, Dialect, Flags, KEYS,
    Keeping, Key, Kind, LimitsConfig, LogFormat, McpConfig, McpReach, Origin, SHORT, Section,
    ServerConfig, Sources, Takes, UpstreamConfig, When,
};
pub use error::ApiError;
pub use http::{
    Answered, App, BadLog, Caller, HttpCounters, Payload, RequestId, ServeError, Server, Signals,
    Stopping, json, log_to_stderr, resume, serve, serve_on, serve_with,
};
pub use mcp::McpServers;
pub use runs::SweepCounters;
pub use upstreams::{ModelInfo, Route, Upstream, Upstreams};
