//! Campaigns with a server that is killed while clients talk to it.
//!
//! The server and its upstream are processes of their own; callers, readers and the ledger are
//! here. Each campaign is a test, of which every run of the tests does a twentieth;
//! `cargo xtask campaign R1 R8 R10` runs them in full.

mod approvals;
mod callers;
mod cuts;
mod ends;
mod expiry;
mod kills;
mod memory;
mod process;
mod readers;
mod settle;
mod world;
