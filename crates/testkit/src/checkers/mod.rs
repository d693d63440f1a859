//! Checkers that are independent of the code under test: they judge what clients saw.

pub mod append_log;
pub mod edn;
