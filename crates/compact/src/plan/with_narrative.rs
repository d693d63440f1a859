//! Adds a summary by a model to the digests of a new epoch.

use super::draft::Draft;
use crate::history::ToolHistory;
use crate::narrative::Narrative;

/// A view as it would be after an epoch, with what a model wrote beside it if that fits.
pub(super) fn with_narrative(history: &ToolHistory, draft: Draft, room: Option<u64>) -> Draft {
    let no = history.last_no + 1;
    let waiting = history.narrative.as_deref();
    let placed = if draft.major {
        // Older blocks are made into one; so are the summaries beside them.
        let held = history.epoch().map_or(&[][..], |epoch| &epoch.blocks);
        let most = history.policy.narrative.unwrap_or_default();
        let narrative = held.iter().filter_map(|block| Narrative::of(block));
        let narrative = narrative.chain(waiting.cloned());
        let narrative = narrative.reduce(|one, later| one.joined(&later, most));
        let ledgers = draft.blocks.iter().rposition(|block| block.ledger);
        narrative.map(|narrative| (ledgers.map_or(draft.blocks.len(), |at| at + 1), narrative))
    } else {
        let old = draft.blocks.iter().filter(|block| block.epoch != no);
        waiting.map(|narrative| (old.count(), narrative.clone()))
    };
    let Some((place, narrative)) = placed else {
        return draft;
    };
    let with = draft.with(history, place, narrative.block(no));
    let gains = 100 - history.policy.min_gain.min(100);
    let worth = history.view.size() * gains / 100;
    let fits = with.view.size() <= worth && room.is_none_or(|room| with.view.size() <= room);
    match fits {
        true => with,
        false => draft,
    }
}
