//! The HTTP APIs: one folder for each vendor's, and `native` for ours.

pub(crate) mod anthropic;
mod delivery;
pub(crate) mod envelope;
mod hand_over_error;
pub(crate) mod ignored;
pub(crate) mod model_error;
pub mod native;
pub mod openai;
mod query;
pub(crate) mod read;
pub(crate) mod stateless;
mod store_error;
