//! MCP tools with a server made with the official Python SDK. `THROUGHLINE_PYTHON` names an
//! interpreter that has it; without it, the tests print that they were skipped.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and the test command shows what was skipped"
)]

mod http;
mod setup;
mod stdio;
