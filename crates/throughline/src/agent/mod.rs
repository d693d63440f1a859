//! Agents: instructions, tools and a client under one name, and the types with which they are run.

#[expect(
    clippy::module_inception,
    reason = "the type that the module is named after"
)]
mod agent;
mod builder;
mod services;

pub use agent::Agent;
pub use builder::AgentBuilder;
pub use services::{HandOverError, HandedOver, ReadBack, ReadBackOutcome, ServiceClients};

pub use crate::prompt::{Compaction, Condensed, condense};
pub use crate::run::order;
pub use crate::run::{
    Additions, AttachError, Attached, BadEvent, BadLimit, BuildError, Calling, Completion,
    ContextProvider, ExpectedHead, Input, Keep, LeftRuns, Limits, MessageFilter, Need, OnRepeat,
    Outcome, ProviderContext, ProviderError, ProviderScope, ProviderSpec, ProviderState, Remedy,
    Run, RunEnd, RunError, RunEvent, RunFailed, RunOptions, RunStream, RunUsage, StateError, Step,
    Typed, TypedError, TypedRun,
};
