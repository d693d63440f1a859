//! Stateful Responses for any vendor, over HTTP.
mod error;
pub mod responses;
pub use error::ApiError;
