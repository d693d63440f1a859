//! Writing: one writer thread, one connection, group commit.
//!
//! Operations wait in a queue (`queue`). The writer thread (`writer`) takes all that wait, applies
//! them in one transaction and commits it once (`group`), so that concurrent callers share an
//! fsync. `connection` is the connection that the writer thread owns, with what it knows about the
//! write-ahead log; `wal_file` syncs that log outside of a commit.

pub(super) mod connection;
mod group;
pub(super) mod job;
pub(super) mod queue;
pub(super) mod statements;
mod wal_file;
pub(super) mod writer;
