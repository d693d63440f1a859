//! The allocator option of `throughline serve`.
//!
//! By default mimalloc keeps freed pages and returns them to the system on a later allocation. An idle
//! server allocates little, so after a few large requests it would keep hundreds of megabytes resident
//! on top of `limits.memory`. With `MIMALLOC_PURGE_DELAY=0` freed pages are returned immediately.
//! mimalloc reads the variable when the process starts, therefore the process sets it and executes
//! itself again. The processor time of a turn does not change measurably.

/// The variable that mimalloc reads.
const VARIABLE: &str = "MIMALLOC_PURGE_DELAY";

/// Set the variable and execute this program again, unless the environment has the variable.
#[cfg(unix)]
pub(crate) fn purge_freed_memory_at_once() {
    use std::os::unix::process::CommandExt as _;

    if std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // `exec` returns only if it fails; then this process continues without the option.
    let _ = std::process::Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, "0")
        .exec();
}

/// There is no `exec` outside of Unix.
#[cfg(not(unix))]
pub(crate) fn purge_freed_memory_at_once() {}
