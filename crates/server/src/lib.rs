//! Stateful Responses for any vendor, over HTTP.
//!
//! [`serve`] takes a [`Config`] and gives a [`Server`] that listens. What it is told is in `config`,
//! whom it asks in `upstreams`, the tools that it runs itself in `mcp`, and what every request and
//! answer have in common in `net`.

pub mod api;
mod config;
mod error;
mod mcp;
mod net;
mod service;
mod suggest;
mod trials;
mod upstreams;

pub use config::{
    AgentConfig, Auth, CompactionConfig, Config, ConfigError, Credential, Dialect, Flags, KEYS,
    Keeping, Key, Kind, LimitsConfig, LogFormat, McpConfig, McpReach, Origin, SHORT, Section,
    ServerConfig, Sources, Takes, Unsupported, UpstreamConfig, When,
};
pub use error::ApiError;
pub use mcp::McpServers;
pub use net::{
    Answered, App, BadLog, Caller, HttpCounters, Payload, RequestId, ServeError, Server, Signals,
    Stopping, json, log_to_stderr, resume, serve, serve_on, serve_with,
};
pub use service::SweepCounters;
pub use upstreams::{ModelInfo, Route, Upstream, Upstreams};
