//! The engines: where the record is kept.

pub(crate) mod memory;
#[cfg(feature = "sqlite")]
pub mod sqlite;
