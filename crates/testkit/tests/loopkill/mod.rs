//! Campaigns with agents at work that are killed at named points of the loop and of the store.
//!
//! Models and tools are in processes of their own, and the ledger is here: nothing that dies knows
//! what is expected of it. Each campaign is a test, of which every run of the tests does a
//! twentieth; `cargo xtask campaign` runs them in full.

mod approvals;
mod compactions;
mod crowd;
mod kills;
mod line;
mod orphans;
mod process;
mod queue;
mod readers;
mod thread;
