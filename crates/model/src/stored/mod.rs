//! The stored JSON form of messages: versioned, and tolerant of what a later version adds.
//!
//! A message is an object with `"v": 1`. Unknown members at any level and unknown kinds of
//! content survive reading and writing; a *known* member with a wrong type is an error that names
//! its place, never a guess. A higher `v` means that old readers would misunderstand; it is
//! refused.

mod fields;
mod read;
mod write;

#[cfg(test)]
mod tests;

use crate::json::{self, JsonError, Value};
use crate::{Content, Message, Path, Vendor};

pub use fields::Fields;

/// The version that this crate writes.
pub const VERSION: u64 = 1;

/// Why a text is not a stored message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoredError {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] JsonError),
    /// A member is not what it must be.
    #[error("{path}: expected {expected}, found {found}")]
    Corrupt {
        /// The path of the value in the document.
        path: String,
        /// What should stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A later version wrote it in a form that this one would misread.
    #[error(
        "{path}: written as version {version}, this program reads up to {VERSION}; use a newer one"
    )]
    Newer {
        /// The path of the value in the document.
        path: String,
        /// The version found.
        version: u64,
    },
}

impl Message {
    /// The stored form.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        write::message(&mut out, self);
        out
    }

    /// Append the stored form.
    pub fn write_json(&self, out: &mut String) {
        write::message(out, self);
    }

    /// Read the stored form.
    pub fn from_json(text: &str) -> Result<Self, StoredError> {
        Self::from_value(&json::parse(text)?, &Path::Root)
    }

    /// Read the stored form from a value that is part of a larger document.
    pub fn from_value(value: &Value<'_>, path: &Path<'_>) -> Result<Self, StoredError> {
        read::message(value, path)
    }
}

impl Content {
    /// Append the stored form.
    pub fn write_json(&self, out: &mut String) {
        write::content(out, self);
    }

    /// Read the stored form from a value that is part of a larger document.
    pub fn from_value(value: &Value<'_>, path: &Path<'_>) -> Result<Self, StoredError> {
        read::content(value, path)
    }
}

impl Vendor {
    /// Append the stored form.
    pub fn write_json(&self, out: &mut String) {
        write::vendor(out, self);
    }

    /// Read the stored form from a value that is part of a larger document.
    pub fn from_value(value: &Value<'_>, path: &Path<'_>) -> Result<Self, StoredError> {
        read::vendor(value, path)
    }
}
