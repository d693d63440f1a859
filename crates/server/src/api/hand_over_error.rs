//! Why the owner of a thread cannot be changed, as every API words it.

use throughline::thread::OwnerError;

use super::store_error;
use crate::error::ApiError;

/// An owner that was not changed.
pub(super) fn owner(error: &OwnerError) -> ApiError {
    match error {
        OwnerError::Store(error) => store_error::of(error),
        error => ApiError::server(error.to_string()),
    }
}
