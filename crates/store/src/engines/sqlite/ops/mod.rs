//! The operations of the engine, one operation or one family of them in each file.
//!
//! A function here runs inside a transaction: reads get a connection of a reader, writes the
//! transaction of a group of writes.

pub(super) mod append;
pub(super) mod approvals;
pub(super) mod begin;
pub(super) mod calls;
pub(super) mod check;
pub(super) mod fingerprints;
pub(super) mod import;
pub(super) mod journal;
pub(super) mod lease;
pub(super) mod lists;
pub(super) mod newest_runs;
pub(super) mod open;
pub(super) mod publish;
pub(super) mod purge;
pub(super) mod read;
pub(super) mod redact;
pub(super) mod remote_call;
pub(super) mod runs;
pub(super) mod settle;
pub(super) mod steps;
pub(super) mod threads;
pub(super) mod wait_queue;
