//! The HTTP APIs, one folder for each vendor's.

mod delivery;
mod hand_over_error;
pub mod openai;
mod query;
pub(crate) mod read;
mod store_error;
