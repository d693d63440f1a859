//! The server as its clients see it: published SDKs, unmodified, and chains that are long, cut and
//! raced for.
//!
//! `THROUGHLINE_CLIENTS_PYTHON`, `THROUGHLINE_CLIENTS_NODE`, `THROUGHLINE_CLIENTS_CODEX`, `THROUGHLINE_CLIENTS_CLAUDE_CODE` and
//! `THROUGHLINE_CLIENTS_ASYNC_OPENAI` say where the SDKs are; without them they are looked for where
//! `cargo xtask test` installs them. A test whose SDK is missing fails. `THROUGHLINE_CLIENTS` says
//! on which models the programs run, see `extent.rs`.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and the test command shows the counts"
)]

mod board;
mod bytes;
mod chains;
mod extent;
mod instants;
mod long;
mod native_api;
mod program;
mod sdks;
mod webhook;
mod world;
