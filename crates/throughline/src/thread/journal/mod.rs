//! Typed access to the journal of a run: the notes of steps and ends, the calls that a step made,
//! and the calls that wait.

mod calls;
mod note;
mod open;
mod pending;
mod stop;

pub(crate) use calls::{Calls, result_of};
pub(crate) use note::{EndNote, StepNote, end_of, ended, losses_of, service_of};
pub(crate) use open::{OpenCall, answer, open_calls};
pub(crate) use pending::pending_of;
pub use pending::{Awaits, Pending};
pub use stop::StopReason;
