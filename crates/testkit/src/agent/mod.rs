//! A small agent for campaigns. Its actions follow from the id of the run, so that any process can
//! resume a run of a killed one, and the test knows the expected result.
//!
//! It reports what it is about to do and what was acknowledged ([`AgentEvent`]); a [`Ledger`]
//! outside of its process compares the reports with the store.

mod driver;
mod event;
mod ledger;
mod script;
pub mod turns;

pub use driver::{Driver, EventSink, Halt};
pub use event::AgentEvent;
pub use ledger::{Audit, Ledger};
pub use script::{DispatchMode, Script, ScriptCall};
