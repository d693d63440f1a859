//! Tool calls: which may run, running them, and recording their results.

mod execute;
pub(crate) mod judge;
mod record;
mod run_tools;

pub(crate) use execute::ToolExecution;
pub(crate) use judge::PreparedCall;
pub(crate) use record::Round;
