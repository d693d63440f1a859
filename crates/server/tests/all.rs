//! The integration tests of this crate, in one executable.

mod clients;
mod config;
mod http;
mod schema;
