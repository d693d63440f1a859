//! What a call must bring: the schema of its arguments, and whether what the model wrote fits it.
//!
//! Nothing is coerced here: a text that is not JSON, or not what the schema asks for, is an
//! [`ArgumentError`] whose text says where and what was expected, so that the model can correct its
//! call. The record keeps what the model wrote, byte for byte.

mod error;
mod parameters;
mod schema;
mod written;

#[cfg(test)]
mod tests;

use throughline_model::json::RawJson;
use throughline_model::{Status, ToolCall};

use super::ToolSpec;
use crate::trials::planted;
pub use error::{ArgumentError, Violation};
pub use parameters::Parameters;
pub use schema::SchemaError;

/// The arguments of a call, if they are what the tool takes.
///
/// A call without arguments counts as one with an empty object. A call that was cut off is refused even if
/// what there is of its arguments fits: they are not what the model meant to write.
pub fn prepare(spec: &ToolSpec, call: &ToolCall) -> Result<RawJson, ArgumentError> {
    let arguments = spec.parameters.check(&call.arguments)?;
    match call.status {
        Some(Status::Incomplete) if !planted("loop-cut-call-run") => Err(ArgumentError::Incomplete),
        _ => Ok(arguments),
    }
}
