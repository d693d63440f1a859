//! Tool calls: which may run, running them, and recording what came of them.

mod execute;
pub(in crate::run::driver) mod judge;
mod record;
mod run_tools;

pub(in crate::run::driver) use execute::Finished;
pub(in crate::run::driver) use judge::Prepared;
pub(in crate::run::driver) use run_tools::RunTools;
