//! Agents: instructions, tools and a client under one name.

#[expect(
    clippy::module_inception,
    reason = "the type that the module is named after"
)]
mod agent;
mod builder;

pub use agent::Agent;
pub use builder::AgentBuilder;
