//! Stateful Responses for any vendor, over HTTP.
mod error;
pub use error::ApiError;
