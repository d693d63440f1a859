//! Going on with runs that were left: parked, interrupted, failed, or asked for twice.

pub(in crate::run::driver) mod adopt;
mod answers;
mod carried;
pub(in crate::run::driver) mod restore;
pub(in crate::run::driver) mod resume;
pub(in crate::run::driver) mod take_over;

pub(in crate::run::driver) use carried::Carried;
pub(in crate::run::driver) use restore::Restoring;
