//! MCP tools against a server made with the official Python SDK. `THROUGHLINE_PYTHON` names an
//! interpreter that has it; without that, the tests say that they were skipped.

mod http;
mod setup;
mod stdio;
