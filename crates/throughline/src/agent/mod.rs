//! Agents: instructions, tools and a client, and the loop that runs them.
//!
//! What to do next is decided by the pure machine in `turn`; `driver` does it.

mod builder;
mod driver;
mod end;
mod event;
mod events;
mod inner;
mod input;
mod limits;
mod options;
pub mod order;
mod outcome;
mod recall;
mod run;
mod stop;
mod turn;
mod typed;
mod usage;

pub use builder::{AgentBuilder, BuildError};
pub(crate) use driver::{Calls, pending_of};
pub use end::RunEnd;
pub use event::RunEvent;
pub use events::{AttachError, Attached, BadEvent};
pub use inner::Agent;
pub use input::Input;
pub use limits::{BadLimit, Calling, Limits};
pub use options::{OnRepeat, RunOptions};
pub use outcome::{Outcome, Pending, Remedy, RunError, RunFailed, Step};
pub use run::{Run, RunStream};
pub use stop::StopReason;
pub use turn::Awaits;
pub use typed::{Typed, TypedError, TypedRun};
pub use usage::RunUsage;
