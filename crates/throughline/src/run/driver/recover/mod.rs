//! Recovering runs that were left: parked, interrupted or failed, or requested again.

pub(crate) mod adopt;
mod answers;
pub(crate) mod cancel;
mod carried;
pub(crate) mod end_of_run;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod take_over;

pub(crate) use carried::Carried;
pub(crate) use restore::Restoring;
