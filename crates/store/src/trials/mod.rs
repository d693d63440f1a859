//! What tests do to this crate from inside: fault points, named places in the real code where
//! something can be made to go wrong, and planted mistakes, which tests must find.
//!
//! Both are compiled in with the feature `trials` only; without it each is an empty function. A
//! test steers them from outside, by environment:
//!
//! - `THROUGHLINE_FAULTS`: a list like `publish.pre=kill@3,step.commit_sent=lie`. After `@` stands
//!   at which pass it happens (the first, if nothing does; `*` is every pass, `%N` one in N by a
//!   seeded draw). What can happen: `kill` ends the process at once; `fail` reports an error and
//!   does nothing; `lie` does it and reports an error; `delay:MS` waits; `hang` never goes on.
//! - `THROUGHLINE_FAULT_SEED`: the seed of the draws.
//! - `THROUGHLINE_FAULT_LOG`: a file to which each point is written when it is first reached.
//! - `THROUGHLINE_PLANTED`: the name of the one mistake that the code makes.
//! - `THROUGHLINE_STATEMENTS`: a file to which statements with conditions on tenants are written, see
//!   `tenants`.

#![cfg_attr(
    not(feature = "trials"),
    expect(unreachable_pub, dead_code, reason = "tests alone reach them")
)]

#[cfg(feature = "trials")]
mod mistakes;
#[cfg(feature = "trials")]
mod plan;
mod planted;
mod points;
#[cfg(feature = "trials")]
pub mod tenants;

#[cfg(feature = "trials")]
pub use mistakes::{MISTAKES, Mistake};
pub use planted::planted;
#[cfg_attr(
    not(feature = "sqlite"),
    expect(unused_imports, reason = "only SQLite has statements")
)]
pub(crate) use planted::{statement, unless};
pub use points::Point;

use std::io;
use std::path::Path;
#[cfg(feature = "trials")]
use std::sync::OnceLock;

use crate::{Error, Result};

/// What an operation does, so that test plans need not know the operation itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Begin,
    RemoteCall,
    Step,
    Intend,
    Results,
    Flush,
    Publish,
    Park,
    End,
    Cancel,
    Claim,
    Answer,
    Delete,
    Purge,
    Renew,
    JoinWaitQueue,
    /// One that no run depends on.
    Other,
}

impl Op {
    /// Whether the process must be known as alive before it is done.
    pub(crate) const fn owns(self) -> bool {
        matches!(
            self,
            Self::Begin | Self::Claim | Self::Renew | Self::JoinWaitQueue
        )
    }

    /// Before it is done, when its transaction is about to be committed, and after.
    const fn points(self) -> [Option<Point>; 3] {
        use Point as P;
        match self {
            Self::Begin => [Some(P::BeginPre), None, Some(P::BeginPost)],
            Self::RemoteCall => [Some(P::CallPre), Some(P::CallCommitSent), Some(P::CallPost)],
            Self::Step => [Some(P::StepPre), Some(P::StepCommitSent), Some(P::StepPost)],
            Self::Intend => [Some(P::ToolPreIntent), None, Some(P::ToolPostIntent)],
            Self::Results => [
                Some(P::ResultPre),
                Some(P::ResultCommitSent),
                Some(P::ResultPost),
            ],
            Self::Flush => [Some(P::EventAppend), None, Some(P::EventFlush)],
            Self::Publish => [
                Some(P::PublishPre),
                Some(P::PublishCommitSent),
                Some(P::PublishPost),
            ],
            Self::Park => [Some(P::ParkPre), None, Some(P::ParkPost)],
            Self::End => [Some(P::CancelClose), None, None],
            Self::Cancel => [Some(P::CancelMark), None, None],
            Self::Claim => [Some(P::LeaseClaim), None, Some(P::RecoverClaim)],
            Self::Answer => [
                Some(P::AnswerPre),
                Some(P::AnswerCommitSent),
                Some(P::AnswerPost),
            ],
            Self::Delete => [Some(P::DeleteMark), None, None],
            Self::Purge => [Some(P::DeletePurge), None, None],
            Self::Renew | Self::JoinWaitQueue | Self::Other => [None, None, None],
        }
    }
}

/// What becomes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// It is committed.
    Send,
    /// It is not, and that is said.
    Withhold,
    /// It is, and the opposite is said.
    Deny,
}

/// Before an operation is done.
#[inline]
pub(crate) fn before(op: Op) -> Result<()> {
    op.points()[0].map_or(Ok(()), reach)
}

/// Before a transaction with these operations is committed.
#[inline]
pub(crate) fn at_commit(ops: impl Iterator<Item = Op>) -> Commit {
    if cfg!(not(feature = "trials")) {
        return Commit::Send;
    }
    let points = ops.filter_map(|op| op.points()[1]);
    let asked = points.map(ask).filter(|commit| *commit != Commit::Send);
    // All of them are passed, whatever the first one asks for.
    asked
        .fold(None, |first, next| first.or(Some(next)))
        .unwrap_or(Commit::Send)
}

/// After an operation was committed, before its caller is answered.
#[inline]
pub(crate) fn after(op: Op) -> Result<()> {
    op.points()[2].map_or(Ok(()), reach)
}

/// Pass a point where a failure means that the work stops.
#[inline]
pub(crate) fn reach(point: Point) -> Result<()> {
    match ask(point) {
        Commit::Send => Ok(()),
        Commit::Withhold | Commit::Deny => Err(failure(point)),
    }
}

/// Pass a point of the loop. It cannot report a failure here, so a plan to fail or to lie
/// ends the process: a test that steers nothing would pass for the wrong reason.
#[cfg(feature = "trials")]
pub fn pass(name: &str) {
    let point = Point::named(name);
    match point.map(ask) {
        Some(Commit::Send) => {}
        _ => plan::stop(&format!(
            "the fault point {name} can be passed, killed, held up"
        )),
    }
}

/// Sync a file, unless it is on a disk that a test has made: that says what comes of it.
#[cfg(not(feature = "trials"))]
#[inline(always)]
pub(crate) fn sync(_: &Path, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    sync()
}

/// The same, where there may be such a disk.
#[cfg(feature = "trials")]
pub(crate) fn sync(path: &Path, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let synced = SYNCED_BY.get().and_then(|synced_by| synced_by(path));
    synced.unwrap_or_else(sync)
}

#[cfg(feature = "trials")]
static SYNCED_BY: OnceLock<SyncedBy> = OnceLock::new();

/// Syncs a file; `None` if it knows nothing of it.
#[cfg(feature = "trials")]
pub type SyncedBy = fn(&Path) -> Option<io::Result<()>>;

/// Have a test disk sync files. The first one that is named stays.
#[cfg(feature = "trials")]
pub fn sync_by(synced_by: SyncedBy) {
    SYNCED_BY.get_or_init(|| synced_by);
}

/// What is said when something is made to fail.
pub(crate) fn failure(point: Point) -> Error {
    Error::Io {
        detail: format!("the fault point {} was told to fail", point.as_str()),
    }
}

#[cfg(not(feature = "trials"))]
#[inline(always)]
const fn ask(_: Point) -> Commit {
    Commit::Send
}

#[cfg(feature = "trials")]
use plan::ask;
