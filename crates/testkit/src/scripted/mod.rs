//! The scripted client of `throughline::testing` under the names that tests use, and
//! [`StoringService`], a scripted client that stores conversations itself.

mod storing;
#[cfg(test)]
mod tests;

pub use storing::{Ids, LostHow, LostStream, StoringService};
pub use throughline::testing::{
    CallMode as Reading, RecordedCall as Asked, RecordedOwner as KeptBy, ReplyPart as Chunk,
    ScriptedClient, ScriptedReply as Step,
};
