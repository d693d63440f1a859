//! The compaction of the campaigns' histories, and the check of stored epochs.

use std::sync::Arc;

use throughline::compact::{EpochState, Policy, StoredEpoch, ToolHistory, number_count};
use throughline_store::{At, Span, Store, TenantScope, ThreadId};

use crate::record::block_on;

/// Small enough that every few turns make an epoch. No turn has more calls than stay in full, so
/// that the scripted model sees all of its own.
pub fn policy() -> Policy {
    Policy {
        threshold: 1_500,
        recent_calls: 8,
        ..Policy::default()
    }
}

/// Text of tool results besides their mark, to be compacted.
pub fn padding() -> String {
    "The quay is dry, the crane is free, and nobody has asked for either.\n".repeat(8)
}

/// Checks that a thread shows what its epoch showed when it was made, and not parts of two epochs.
/// Returns the number of the epoch.
pub fn check(store: &Store, thread: &str) -> Result<u64, String> {
    let said = |error: throughline_store::Error| error.to_string();
    let scope = TenantScope::local();
    let id = ThreadId::new(thread).map_err(|error| error.to_string())?;
    let at = At::Thread(id);
    let opened = match block_on(store.open(&scope, &at, 0)) {
        Ok(opened) => opened,
        Err(throughline_store::Error::NotFound { .. }) => return Ok(0),
        Err(error) => return Err(said(error)),
    };
    let Some(stored) = opened.state.compaction() else {
        return Ok(0);
    };
    let bad = |what: &str| format!("{thread}: {what}: {}", stored.get());
    let kept = StoredEpoch::from_json(stored.get()).ok_or_else(|| bad("no epoch can be read"))?;
    let page = block_on(store.read(&scope, &at, Span::Tail, usize::MAX)).map_err(said)?;
    let mut history = ToolHistory::new(policy());
    let mut next = 1;
    for entry in page.entries {
        let message = Arc::new(entry.message);
        let after = next + number_count(&message);
        history.push(next, message);
        next = after;
    }
    if !history.restore(&kept) {
        return Err(bad("the epoch is not of this record"));
    }
    if !history.is_intact() {
        return Err(bad("the view is not what the epoch showed"));
    }
    Ok(match kept.held {
        EpochState::Epoch(epoch) => epoch.no,
        EpochState::Undone { .. } => 0,
    })
}
