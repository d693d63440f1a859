//! Agents on stores, for tests: engines, processes, counting tools, and short forms of histories.
//!
//! A [`Stage`] is an empty store of one engine. [`Stage::process`] opens it as a separate process;
//! after [`Process::kill`] nothing that process does reaches the store, and others may take over
//! its runs.

mod calls;
mod fake;
mod how;
mod process;
mod short;

pub use calls::MadeCalls;
pub use fake::Fake;
pub use how::How;
pub use process::{Engine, Process, Stage};
pub use short::{result_text, said, short};

/// Runs a test on every engine, whole and streamed.
///
/// # Panics
///
/// When the test does.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a test is written where it is called"
)]
pub fn everywhere(test: impl AsyncFn(&Stage, How)) {
    for engine in Engine::ALL {
        for how in How::ALL {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            let stage = Stage::new(engine);
            runtime.block_on(test(&stage, how));
            // Tasks of processes that count as dead never end.
            runtime.shutdown_background();
        }
    }
}
