//! The HTTP APIs: one folder for each vendor's, and `native` for ours.

mod delivery;
mod hand_over_error;
pub mod native;
pub mod openai;
mod query;
pub(crate) mod read;
mod store_error;
