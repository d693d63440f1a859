//! Stateful Responses for any vendor, over HTTP.
//!
//! [`serve`] takes a [`Config`] and gives a [`Server`] that listens; [`Server::builder`] takes parts of
//! the embedding program too. `config` is the configuration,
//! `upstreams` routes models to vendors, `mcp` has the tools that the server runs itself, `service`
//! the runs, `webhooks` posts their ends, `net` and `auth` what all requests have in common, and `api` the HTTP APIs. `app` joins
//! them for handlers, `routes` and `server` make a server of all.

pub mod api;
mod app;
mod auth;
mod config;
mod error;
mod health;
mod mcp;
mod net;
mod rate;
mod routes;
mod server;
mod service;
mod stopping;
mod suggest;
mod trials;
mod upstreams;
mod webhooks;

pub use app::{App, ServeError};
pub use auth::Caller;
pub use config::{
    AgentConfig, Auth, CompactionConfig, CompactionDefault, Config, ConfigError, Credential,
    Dialect, Flags, HistoryLocation, KEYS, Key, Kind, LimitsConfig, LogFormat, McpConfig,
    McpTransport, OnRecordFailure, Origin, RecordConfig, Runtimes, SECTIONS, SHORT, ServerConfig,
    Sources, Unsupported, UpstreamConfig, ValueType, WebhookConfig, WebhookSecret, is_named,
};
pub use error::ApiError;
pub use mcp::McpServers;
pub use net::{
    Answered, BadLog, HttpMetrics, NetState, Payload, RequestId, Signals, json, log_to_stderr,
};
pub use server::{Server, ServerBuilder, serve};
pub use service::SweepCounters;
pub use stopping::Stopping;
pub use upstreams::{ModelCache, ModelInfo, ModelListing, Route, Upstream, Upstreams};
