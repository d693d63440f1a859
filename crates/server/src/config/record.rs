//! `[record]`: what is kept of requests that carry their whole conversation.

use super::error::ConfigError;
use super::table::Table;

/// What becomes of a request that cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnRecordFailure {
    /// It is answered; the failure is logged and counted.
    #[default]
    Ignore,
    /// It fails.
    Error,
}

/// `[record]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RecordConfig {
    /// Whether requests that carry their whole conversation are recorded as threads.
    pub stateless: bool,
    /// What becomes of one that cannot be recorded.
    pub on_failure: OnRecordFailure,
}

pub(super) fn record(table: &Table<'_>) -> Result<RecordConfig, ConfigError> {
    let switch = [("true", true), ("false", false)];
    let failure = [
        ("ignore", OnRecordFailure::Ignore),
        ("error", OnRecordFailure::Error),
    ];
    Ok(RecordConfig {
        stateless: table.choice("stateless", &switch)?.unwrap_or_default(),
        on_failure: table.choice("on_failure", &failure)?.unwrap_or_default(),
    })
}
