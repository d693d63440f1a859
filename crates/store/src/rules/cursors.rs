//! Whether a cursor is one of its thread, and what its branch shares with that of the head.

use crate::trials;
use crate::{Error, Position, Result, ThreadId};

use super::invalid;

/// The part of a timeline that belongs to a branch: the timeline and its last position there. A
/// branch is a list of them, from its end backwards.
pub(crate) type Stretch = (i64, Position);

/// This store made the cursor, for this tenant and thread.
pub(crate) fn sealed(thread: &ThreadId, fits: bool) -> Result<()> {
    match trials::unless("cursor-unsealed", !fits) {
        true => Err(Error::BadCursor {
            thread: thread.clone(),
        }),
        false => Ok(()),
    }
}

/// A cursor of the caller's choice stands within its thread, which ends at `last`.
pub(crate) fn within(thread: &ThreadId, position: Position, last: Position) -> Result<()> {
    match trials::unless("cursor-beyond", position > last) {
        true => {
            let why = format!("{thread} ends at position {last}, before {position}");
            Err(invalid("a cursor", why))
        }
        false => Ok(()),
    }
}

/// The timeline of a branch that holds a position; none, 0, for the position before the first one.
pub(crate) fn holding(branch: &[Stretch], position: Position) -> i64 {
    let holds = |(_, last): &&Stretch| trials::unless("line-position", *last >= position);
    match branch.iter().rfind(holds).or(branch.first()) {
        Some((timeline, _)) if position > 0 => *timeline,
        _ => 0,
    }
}

/// The branch of the head holds the place of a cursor. `own` is the branch that ends there.
pub(crate) fn unmoved(thread: &ThreadId, head: &[Stretch], own: &[Stretch]) -> Result<()> {
    let Some((_, position)) = own.first().filter(|(_, position)| *position > 0) else {
        return Ok(());
    };
    let shared = own.iter().find_map(|(timeline, last)| {
        let (_, of_head) = head.iter().find(|(other, _)| other == timeline)?;
        Some(*last.min(of_head))
    });
    let common = shared.unwrap_or(0);
    match trials::unless("cursor-moved", common < *position) {
        true => Err(Error::CursorMoved {
            thread: thread.clone(),
            common,
        }),
        false => Ok(()),
    }
}
