//! The HTTP APIs, one folder for each vendor's.

mod delivery;
pub mod openai;
