//! The Responses API.

pub mod wire;
