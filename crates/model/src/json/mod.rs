//! JSON that loses nothing: a borrowed tree that knows the source text of every value.
//!
//! Vendors compare signatures, fingerprints and argument texts byte for byte, so a value that
//! we do not understand must come back exactly as it was. Values borrow from the text they were
//! read from: numbers keep their digits, strings their escapes, objects their order and their
//! duplicate keys, and an unpaired surrogate (`"\ud800"`) is legal. Reading is bounded (depth,
//! number of values), and errors name line and column.
//!
//! What is not here on purpose: mapping to Rust types by derive. Reading foreign JSON is a
//! decision per field (absent, null and empty are three things), and it is spelled out.
//!
//! This module uses the standard library only and nothing else of the crate, so that the
//! workspace's chores can read JSON with it too.

mod error;
mod locate;
mod parse;
mod raw;
mod text;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub use error::{JsonError, JsonErrorKind};
pub use parse::{Limits, parse, parse_bytes, parse_with};
pub use raw::RawJson;
pub use text::{Escapes, Text};
pub use value::{Member, Node, Value};
pub use write::{ArrayWriter, ObjectWriter, pretty, push_compact, push_compact_with, push_string};
