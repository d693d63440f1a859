//! Stateful Responses for any vendor, over HTTP.

mod config;
mod error;
mod near;

pub use config::{
    AgentConfig, Auth, Config, ConfigError, Credential, Dialect, Flags, KEYS, Keeping, Key, Kind,
    LimitsConfig, LogFormat, McpConfig, McpReach, Origin, SHORT, Section, ServerConfig, Sources,
    Takes, UpstreamConfig,
};
pub use error::ApiError;
