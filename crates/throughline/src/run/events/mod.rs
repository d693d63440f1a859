//! Events of a run as they are stored, and readers that attach to a run of any process.
//!
//! `codec` is the stored form of an event, `replay` makes the events of a run that stored none,
//! `attach` reads either, and `published` collects what stored events have said. Nothing here writes.

mod attach;
mod codec;
#[cfg(test)]
mod fixture;
mod published;
mod replay;

pub use attach::{AttachError, Attached};
pub use codec::BadEvent;
pub(crate) use codec::encode;
pub(crate) use published::PublishedEvents;
pub(crate) use replay::{replayed, stop_of};
