//! Runs: one turn of an agent on a thread, from its input to its end.
//!
//! The state machine in `machine` decides what to do next, and `driver` does it.

mod driver;
mod end;
mod event;
mod events;
mod handle;
mod host;
mod input;
mod limits;
mod machine;
mod options;
pub mod order;
mod outcome;
mod provider;
pub(crate) mod recall;
pub(crate) mod setup;
mod typed;
mod usage;

pub use end::RunEnd;
pub use event::RunEvent;
pub use events::{AttachError, Attached, BadEvent};
pub use handle::{Run, RunStream};
pub use host::LeftRuns;
pub use input::Input;
pub use limits::{BadLimit, Calling, Limits};
pub use options::{ExpectedHead, OnRepeat, RunOptions};
pub use outcome::{Outcome, Remedy, RunError, RunFailed, Step};
pub use provider::{
    Additions, Completion, ContextProvider, Keep, MessageFilter, Need, ProviderContext,
    ProviderError, ProviderScope, ProviderSpec, ProviderState, StateError,
};
pub use setup::BuildError;
pub use typed::{Typed, TypedError, TypedRun};
pub use usage::RunUsage;
