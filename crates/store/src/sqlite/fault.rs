//! Why an operation stops, and what SQLite's errors mean to a caller.

use rusqlite::ErrorCode;

use crate::Error;

/// Why an operation stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// A precondition does not hold. Nothing was written, so the rest of the group goes on.
    Refused(Error),
    /// The storage failed, perhaps half-way: the transaction has to go.
    Broken(Error),
}

/// What an operation on a connection gives.
pub(super) type Done<T> = Result<T, Stop>;

impl Stop {
    /// What a caller is told.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Refused(error) | Self::Broken(error) => error,
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(storage(&error))
    }
}

/// An error of SQLite as a caller sees it.
pub(super) fn storage(error: &rusqlite::Error) -> Error {
    let corrupt = |detail: String| Error::Corrupt {
        place: "the file".into(),
        detail,
    };
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => Error::Full,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Locked,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => corrupt(error.to_string()),
            _ => Error::Io {
                detail: error.to_string(),
            },
        },
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => corrupt(error.to_string()),
        _ => Error::Io {
            detail: error.to_string(),
        },
    }
}

/// What was asked for is not there.
pub(super) fn missing(what: &'static str, id: &dyn std::fmt::Display) -> Stop {
    Stop::Refused(Error::NotFound {
        what,
        id: id.to_string(),
    })
}

/// A name that is taken.
pub(super) fn exists(what: &'static str, id: &dyn std::fmt::Display) -> Stop {
    Stop::Refused(Error::Exists {
        what,
        id: id.to_string(),
    })
}

/// Something that cannot be stored.
pub(super) fn invalid(what: &'static str, why: impl Into<String>) -> Stop {
    Stop::Refused(Error::Invalid {
        what,
        why: why.into(),
    })
}

/// Something stored that is not as it was stored.
pub(super) fn corrupt(place: impl Into<String>, detail: impl Into<String>) -> Stop {
    Stop::Refused(Error::Corrupt {
        place: place.into(),
        detail: detail.into(),
    })
}
