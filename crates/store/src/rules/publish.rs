//! Where a publication ends, and what state it leaves its run in.

use crate::{Ending, ItemNo, Publish, Result, RunId, RunState, Stopped, Through};

use super::invalid;

/// The state of a run that is published and ended.
pub(crate) fn state_of(ending: Ending) -> RunState {
    match ending {
        Ending::Committed => RunState::Committed,
        Ending::Cancelled => RunState::Cancelled,
    }
}

/// The state of a run that is ended without a publication, and whether its approvals are withdrawn.
pub(crate) fn stopped(how: Stopped) -> (RunState, bool) {
    match how {
        Stopped::Failed => (RunState::Failed, true),
        Stopped::Discarded => (RunState::Discarded, true),
        Stopped::Unpublished => (RunState::Unpublished, false),
    }
}

/// The items of a run at its publication, results and items of the publication included.
pub(crate) struct StoredItems {
    pub(crate) run: RunId,
    /// The last item that is stored.
    pub(crate) last: ItemNo,
    /// The last item of the last step, or of the input.
    pub(crate) last_of_steps: ItemNo,
}

/// The last item of a publication's node; 0 for none. `is_stored` says whether an item is there.
pub(crate) fn end_of(
    publish: &Publish,
    items: &StoredItems,
    is_stored: impl FnOnce(ItemNo) -> bool,
) -> Result<ItemNo> {
    match publish.through {
        Through::LastStep if publish.items.is_empty() => Ok(items.last_of_steps),
        Through::Everything | Through::LastStep => Ok(items.last),
        Through::Item(no) if is_stored(no) => Ok(no),
        Through::Item(no) => Err(invalid(
            "the end of a node",
            format!("item {no} of {} is not stored", items.run),
        )),
    }
}
