//! Campaigns with a server that is killed while clients use it.
//!
//! The server and its upstream are processes; clients, readers and the ledger are in the test. Each
//! campaign is a test, of which every test run does a twentieth; `cargo xtask campaign R1 R8 R10`
//! runs them in full.

mod approvals;
mod callers;
mod conversation_kills;
mod conversations;
mod cuts;
mod ends;
mod expiry;
mod kills;
mod memory;
pub(crate) mod process;
mod readers;
mod settle;
mod transports;
mod world;
