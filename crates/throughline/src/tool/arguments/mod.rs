//! Schemas of arguments, and the check of what a model wrote against them.
//!
//! Nothing is coerced: a text that is not JSON, or that the schema refuses, is an [`ArgumentError`]
//! whose text says where the mistake is and what was expected, so that the model can correct its
//! call. The record keeps the original text, byte for byte.

mod error;
mod parameters;
mod parse_error;
mod schema;

#[cfg(test)]
mod tests;

use throughline_model::json::RawJson;
use throughline_model::{Status, ToolCall};

use super::ToolSpec;
use crate::trials::planted;
pub use error::{ArgumentError, Violation};
pub use parameters::Parameters;
pub use schema::SchemaError;

/// Checks the arguments of a call and returns them as an object.
///
/// A call without arguments has an empty object. A call that was cut off is refused even if its
/// partial arguments are valid, because the model did not finish writing them.
pub fn prepare(spec: &ToolSpec, call: &ToolCall) -> Result<RawJson, ArgumentError> {
    let arguments = spec.parameters.check(&call.arguments)?;
    match call.status {
        Some(Status::Incomplete) if !planted("loop-cut-call-run") => Err(ArgumentError::Incomplete),
        _ => Ok(arguments),
    }
}
