//! The HTTP APIs, one folder for each vendor's.

pub mod openai;
