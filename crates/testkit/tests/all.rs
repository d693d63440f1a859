//! The campaigns, in one executable.

#[cfg(feature = "agents")]
mod loopkill;
mod record;
#[cfg(feature = "server")]
mod serverkill;
mod trials;

use std::process::Command;

/// A process of the worker executable, as the program `name`.
fn worker(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worker"));
    command.arg(name);
    command
}
