//! Memory that was freed goes back to the system at once.
//!
//! mimalloc keeps it for a while and gives it back when something else is allocated, which an idle
//! server may not do for hours: after a few large requests it would hold hundreds of megabytes that
//! nobody uses, on top of `limits.memory`. The option for that is read from the environment when a
//! process starts, so that the process is started once more in its own place. It costs no measurable
//! processor time for a turn.

/// The variable that mimalloc reads.
const VARIABLE: &str = "MIMALLOC_PURGE_DELAY";

/// Start this program again with the option, unless the environment has it already.
#[cfg(unix)]
pub(crate) fn give_back_at_once() {
    use std::os::unix::process::CommandExt as _;

    if std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // It returns only if it fails, and then this process goes on as it is.
    let _ = std::process::Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, "0")
        .exec();
}

/// Only where a process can take the place of another.
#[cfg(not(unix))]
pub(crate) fn give_back_at_once() {}
