//! Campaigns with agents that are killed at fault points of the loop and of the store.
//!
//! Models and tools run in processes of their own, and the ledger is in the test, so that nothing
//! that dies knows the expected result. Each campaign is a test, of which every test run does a
//! twentieth; `cargo xtask campaign` runs them in full.

mod approvals;
mod compactions;
mod crowd;
mod keepers;
mod kills;
mod line;
mod orphans;
mod process;
mod queue;
mod readers;
mod thread;
