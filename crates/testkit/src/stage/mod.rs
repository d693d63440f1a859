//! Agents on stores, for tests: engines and processes, tools that count, short words for histories.
//!
//! A [`Stage`] is an empty store of one engine. [`Stage::process`] opens it as a process of its own;
//! [`Process::kill`] makes it a dead one: from then on nothing it does reaches the store, and others
//! may take over what it held.

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

/// Run a test on every engine, whole and streamed.
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
            // Tasks that stand for dead processes never end.
            runtime.shutdown_background();
        }
    }
}
