//! Runs whose options their host keeps.

use async_trait::async_trait;
use throughline_store::RunId;

use super::handle::Run;
use super::order;

/// Makes a run again that another run finds on its thread, left by a process that has gone: with the agent
/// and the options that it was begun with, which the host keeps ([`RunOptions::host`](crate::agent::RunOptions::host)).
#[async_trait]
pub trait LeftRuns: Send + Sync {
    /// The run, as [`Agent::resume_run`](crate::Agent::resume_run) makes it; `None` if its agent cannot be had
    /// now. It is not started here. Dropping the future has no effect.
    async fn resumed(&self, run: RunId) -> Option<Run<order::Resume>>;
}
