//! The campaigns, in one executable.

#[cfg(feature = "agents")]
mod loopkill;
mod record;
#[cfg(feature = "server")]
mod recorded;
#[cfg(feature = "server")]
mod serverkill;
mod trials;

use std::process::Command;

/// Starts the program `name` of the worker executable.
fn worker(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worker"));
    command.arg(name);
    command
}
