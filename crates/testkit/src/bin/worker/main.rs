//! The programs that tests start as processes, in one executable: the first argument is the name of
//! the program.

#[cfg(feature = "agents")]
mod loop_server;
#[cfg(feature = "agents")]
mod loop_worker;
#[cfg(feature = "agents")]
mod queue_worker;
mod sdk_rendered;
mod sdk_samples;
#[cfg(feature = "server")]
mod server_worker;
mod store_agent;
#[cfg(feature = "trials")]
mod store_child;

use std::process::ExitCode;

/// The allocator of the released binary, because the memory of a server is measured.
#[cfg(feature = "server")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(
    clippy::print_stderr,
    reason = "a program says why it stops before its work is done"
)]
fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    match name.as_str() {
        #[cfg(feature = "agents")]
        "loop-server" => loop_server::main(),
        #[cfg(feature = "agents")]
        "loop-worker" => loop_worker::main(),
        #[cfg(feature = "agents")]
        "queue-worker" => queue_worker::main(),
        "sdk-rendered" => sdk_rendered::main(),
        "sdk-samples" => sdk_samples::main(),
        #[cfg(feature = "server")]
        "server-worker" => server_worker::main(),
        "store-agent" => store_agent::main(),
        #[cfg(feature = "trials")]
        "store-child" => store_child::main(),
        _ => {
            eprintln!("worker has no program {name:?}, or was built without the features for it");
            ExitCode::FAILURE
        }
    }
}

/// The arguments of the program.
fn arguments() -> impl Iterator<Item = String> {
    std::env::args().skip(2)
}
