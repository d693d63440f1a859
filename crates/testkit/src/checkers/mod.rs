//! Checkers that know nothing of the code under test: they get what clients saw, and judge.

pub mod append_log;
pub mod edn;
