//! Why an operation stops, and what SQLite's errors mean to a caller.

use rusqlite::ErrorCode;

use crate::{DamageSite, Error, Position, ThreadId, rules};

/// Why an operation stopped.
#[derive(Debug)]
pub(super) enum OpError {
    /// A precondition does not hold. Nothing was written, so the rest of the group goes on.
    Refused(Error),
    /// The storage failed, perhaps half-way: the transaction has to go.
    Broken(Error),
}

/// What an operation on a connection gives.
pub(super) type OpResult<T> = Result<T, OpError>;

impl OpError {
    /// What a caller is told.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Refused(error) | Self::Broken(error) => error,
        }
    }

    pub(super) fn map(self, change: impl FnOnce(Error) -> Error) -> Self {
        match self {
            Self::Refused(error) => Self::Refused(change(error)),
            Self::Broken(error) => Self::Broken(change(error)),
        }
    }

    /// The same; damage is in this thread unless it names another.
    pub(super) fn in_thread(self, thread: &ThreadId) -> Self {
        self.map(|error| rules::in_thread(error, thread))
    }

    /// The same; damage is at this position unless it names another.
    pub(super) fn at_position(self, position: Position) -> Self {
        self.map(|error| error.at_position(position))
    }

    /// The same; what could not be read is this, unless it is known better.
    pub(super) fn of(self, site: impl Into<DamageSite>) -> Self {
        self.map(|error| match error {
            Error::Corrupt { place, detail } if place.what.as_deref() == Some(A_ROW) => {
                Error::corrupt(site, detail)
            }
            other => other,
        })
    }
}

/// What is damaged if a value in it cannot be, and nothing else is known of it.
const A_ROW: &str = "a row";

impl From<Error> for OpError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for OpError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(storage(&error))
    }
}

/// An error of SQLite as a caller sees it.
pub(super) fn storage(error: &rusqlite::Error) -> Error {
    if let rusqlite::Error::FromSqlConversionFailure(_, _, inner) = error
        && let Some(InRow { site, detail }) = inner.downcast_ref()
    {
        return Error::corrupt(site.clone(), detail.clone());
    }
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => Error::Full,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Locked,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                Error::corrupt("the file", error.to_string())
            }
            _ => Error::Io {
                detail: error.to_string(),
            },
        },
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => Error::corrupt(A_ROW, error.to_string()),
        _ => Error::Io {
            detail: error.to_string(),
        },
    }
}

/// What was asked for is not there.
pub(super) fn not_found(what: &'static str, id: &dyn std::fmt::Display) -> OpError {
    rules::not_found(what, id).into()
}

/// A name that is taken.
pub(super) fn exists(what: &'static str, id: &dyn std::fmt::Display) -> OpError {
    rules::exists(what, id).into()
}

/// Something that cannot be stored.
pub(super) fn invalid(what: &'static str, why: impl Into<String>) -> OpError {
    rules::invalid(what, why).into()
}

/// Something stored that is not as it was stored.
pub(super) fn corrupt(place: impl Into<DamageSite>, detail: impl Into<String>) -> OpError {
    OpError::Refused(Error::corrupt(place, detail))
}

/// Damage that is found while SQLite reads a row, where only errors of SQLite can be given.
#[derive(Debug, thiserror::Error)]
#[error("{site} is damaged: {detail}")]
struct InRow {
    site: DamageSite,
    detail: String,
}

/// The error of SQLite that stands for damage in a row.
pub(super) fn corrupt_row(
    site: impl Into<DamageSite>,
    detail: impl Into<String>,
) -> rusqlite::Error {
    let inner = InRow {
        site: site.into(),
        detail: detail.into(),
    };
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Null, Box::new(inner))
}
