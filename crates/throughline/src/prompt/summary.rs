//! A summary that a model writes while runs continue.

use std::fmt;
use std::sync::{Arc, OnceLock};

use throughline_compact::{NarrativeOutcome, NarrativeRejection, NarrativeScope, ToolHistory};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A summary that is being written. Branches of a conversation share it; the writer is cancelled
/// when the last of them drops it.
pub(crate) struct PendingSummary {
    part: NarrativeScope,
    wrote: Arc<OnceLock<SummaryResult>>,
    _waited_for: DropGuard,
}

/// The result of writing a summary.
#[derive(Debug)]
pub(crate) struct SummaryResult {
    pub(crate) said: Result<String, NarrativeRejection>,
    /// Billed tokens: input, output.
    pub(crate) billed: (u64, u64),
}

/// The writer's end of a [`PendingSummary`]. A writer that is dropped without a result has failed.
pub(crate) struct SummaryWriter {
    wrote: Arc<OnceLock<SummaryResult>>,
    pub(crate) unwanted: CancellationToken,
}

impl PendingSummary {
    pub(crate) fn begin(part: NarrativeScope) -> (Arc<Self>, SummaryWriter) {
        let wrote = Arc::new(OnceLock::new());
        let unwanted = CancellationToken::new();
        let writing = Self {
            part,
            wrote: Arc::clone(&wrote),
            _waited_for: unwanted.clone().drop_guard(),
        };
        (Arc::new(writing), SummaryWriter { wrote, unwanted })
    }

    /// The result, checked against the record; `None` while the summary is being written.
    pub(super) fn read(&self, history: &mut ToolHistory) -> Option<NarrativeOutcome> {
        let wrote = self.wrote.get()?;
        let narrated = match &wrote.said {
            Ok(said) => history.narrate(&self.part, said),
            Err(why) => NarrativeOutcome::refused(self.part.epoch, *why),
        };
        let (input, output) = wrote.billed;
        Some(narrated.costing(input, output))
    }
}

impl SummaryWriter {
    pub(crate) fn done(self, wrote: SummaryResult) {
        let _ = self.wrote.set(wrote);
    }
}

impl Drop for SummaryWriter {
    fn drop(&mut self) {
        // A run that waits for the summary must not wait forever.
        let _ = self.wrote.set(SummaryResult {
            said: Err(NarrativeRejection::Failed),
            billed: (0, 0),
        });
    }
}

impl fmt::Debug for PendingSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingSummary")
            .field("epoch", &self.part.epoch)
            .field("wrote", &self.wrote.get().is_some())
            .finish()
    }
}
