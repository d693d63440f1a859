//! Where a publication ends, and what state it leaves its run in.

use crate::{End, Ending, Publish, Run, RunState, Stopped, Through};

/// The state of a run that is published and ended.
pub(crate) fn state_of(ending: Ending) -> RunState {
    match ending {
        Ending::Committed => RunState::Committed,
        Ending::Cancelled => RunState::Cancelled,
    }
}

/// Whether a run was ended by this publication, if its items, its results and what it takes from the
/// queue are there too.
pub(crate) fn is_same(run: &Run, publish: &Publish) -> bool {
    run.state == state_of(publish.ending)
        && run.next_step == publish.step + 1
        && run.note == publish.note
}

/// Whether a run was ended like this, if the events are there too.
pub(crate) fn is_ended(run: &Run, end: &End) -> bool {
    run.state == stopped(end.how).0 && run.note == end.note
}

/// The state of a run that is ended without a publication, and whether its approvals are withdrawn.
pub(crate) fn stopped(how: Stopped) -> (RunState, bool) {
    match how {
        Stopped::Failed => (RunState::Failed, true),
        Stopped::Discarded => (RunState::Discarded, true),
        Stopped::Unpublished => (RunState::Unpublished, false),
    }
}

/// Whether a publication ends with the items of the last step, not with the last item that is stored.
pub(crate) fn is_to_last_step(publish: &Publish) -> bool {
    publish.through == Through::LastStep && publish.items.is_empty()
}
