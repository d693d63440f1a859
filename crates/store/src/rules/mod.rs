//! The rules of the record: preconditions and state transitions, as pure functions.
//!
//! An engine loads the facts, asks the rule and writes what it decides, so that all engines refuse
//! the same things for the same reasons. SQLite also carries the most important conditions in its
//! statements; a statement that changes no row leads here to find out why.

pub(crate) mod approvals;
pub(crate) mod begin;
pub(crate) mod calls;
pub(crate) mod cursors;
pub(crate) mod damage;
pub(crate) mod import;
pub(crate) mod items;
pub(crate) mod lease;
pub(crate) mod publish;
pub(crate) mod redact;
pub(crate) mod remote_call;
pub(crate) mod step;
pub(crate) mod threads;

use std::fmt::Display;

use crate::{Error, ThreadId, trials};

/// The same error; damage is in this thread unless it names another.
pub(crate) fn in_thread(error: Error, thread: &ThreadId) -> Error {
    match trials::planted("damage-unnamed") {
        true => error,
        false => error.located(|site| site.in_thread(thread)),
    }
}

/// What was asked for is not there.
pub(crate) fn not_found(what: &'static str, id: impl Display) -> Error {
    Error::NotFound {
        what,
        id: id.to_string(),
    }
}

/// A name that is taken.
pub(crate) fn exists(what: &'static str, id: impl Display) -> Error {
    Error::Exists {
        what,
        id: id.to_string(),
    }
}

/// Something that cannot be stored.
pub(crate) fn invalid(what: &'static str, why: impl Into<String>) -> Error {
    Error::Invalid {
        what,
        why: why.into(),
    }
}
