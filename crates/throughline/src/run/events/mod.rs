//! Events of a run as they are stored, and how a run is read by somebody who did not start it.
//!
//! `codec` is the stored form of an event, `replay` tells the events of a run that stored none,
//! `attach` reads either, and
//! `logged` knows what was told. Nothing here writes.

mod attach;
mod codec;
#[cfg(test)]
mod fixture;
mod logged;
mod replay;

pub use attach::{AttachError, Attached};
pub use codec::BadEvent;
pub(crate) use codec::encode;
pub(crate) use logged::Logged;
pub(crate) use replay::{replayed, stop_of};
