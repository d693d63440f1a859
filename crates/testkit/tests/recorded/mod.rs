//! Campaigns with clients that send their whole conversation, on a server that records them.
//!
//! The server is a process on SQLite; clients, the upstream and the reference of what the record must be
//! are in the test. Every test run does a part of each; `THROUGHLINE_SCALE=20` does 1,000 sessions.

mod client;
mod kills;
mod record;
mod sessions;
mod vendor;
