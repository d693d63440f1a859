//! The configuration, for commands that ask vendors.

use std::path::PathBuf;

use throughline::Threads as AllThreads;
use throughline_server::{Config, Upstreams};
use throughline_store::{RunFilter, RunState, Store, ThreadId};

use super::Context;
use crate::args::{Args, Command, Threads};
use crate::failure::Failure;
use crate::serve;

/// The configuration, if a command needs one. Its store is the store of the command.
pub(super) fn of(args: &Args, command: &Command) -> Result<Option<Config>, Failure> {
    let Some(file) = file(command) else {
        return Ok(None);
    };
    let config = Config::load(&serve::sources_of(args, file));
    config
        .map(Some)
        .map_err(|error| serve::config_failure(&error))
}

/// The file that a command names, if it needs a configuration.
fn file(command: &Command) -> Option<Option<&PathBuf>> {
    match command {
        Command::Threads(Threads::HandOver(args)) => Some(args.config.as_ref()),
        Command::Threads(Threads::Delete(args)) if args.at_vendors => Some(args.config.as_ref()),
        _ => None,
    }
}

impl Context<'_> {
    /// The upstreams of the configuration.
    pub(super) fn upstreams(&self) -> Result<Upstreams, Failure> {
        let Some(config) = &self.config else {
            return Err(Failure::usage("this command has no configuration"));
        };
        Upstreams::of(config).map_err(|error| serve::config_failure(&error))
    }

    /// The threads of the tenant.
    pub(super) fn threads(&self, store: &Store) -> AllThreads {
        AllThreads::scoped(store, self.scope.clone())
    }

    /// Refuse if a run of a thread is in one of these states, on any branch.
    pub(super) async fn check_no_run(
        &self,
        store: &Store,
        thread: &ThreadId,
        states: &[RunState],
    ) -> Result<(), Failure> {
        let filter = RunFilter {
            thread: Some(thread.clone()),
            states: states.to_vec(),
        };
        let found = store.runs(&self.scope, &filter, None, 1).await;
        let found = found.map_err(|error| self.failure(&error))?.found;
        match found.first() {
            None => Ok(()),
            Some(run) => Err(Failure::other(format!(
                "{} on thread {thread} is {}; wait for it, or settle it with 'throughline runs \
                 publish {}' or 'discard'",
                run.id,
                run.state.as_str(),
                run.id
            ))),
        }
    }
}
