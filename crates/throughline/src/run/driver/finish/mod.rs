//! Ending a run: publishing, parking, failing.

mod settle;

pub(in crate::run::driver) use settle::refused;
pub(crate) use settle::told;
