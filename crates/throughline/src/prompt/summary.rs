//! A summary that a model is writing while runs go on.

use std::fmt;
use std::sync::{Arc, OnceLock};

use throughline_compact::{Narrated, Part, Refused, ToolHistory};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A summary that is being written. Branches of a conversation share it; when none of them waits for
/// it any more, it is no longer written.
pub(crate) struct Writing {
    part: Part,
    wrote: Arc<OnceLock<Wrote>>,
    _waited_for: DropGuard,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Wrote {
    pub(crate) said: Result<String, Refused>,
    /// Tokens that were billed: of what was sent, and of what was written.
    pub(crate) billed: (u64, u64),
}

/// The end of whoever writes. One that is dropped without a word has failed.
pub(crate) struct Hand {
    wrote: Arc<OnceLock<Wrote>>,
    pub(crate) unwanted: CancellationToken,
}

impl Writing {
    pub(crate) fn begin(part: Part) -> (Arc<Self>, Hand) {
        let wrote = Arc::new(OnceLock::new());
        let unwanted = CancellationToken::new();
        let writing = Self {
            part,
            wrote: Arc::clone(&wrote),
            _waited_for: unwanted.clone().drop_guard(),
        };
        (Arc::new(writing), Hand { wrote, unwanted })
    }

    /// What came of it, held against the record; `None` while it is being written.
    pub(super) fn read(&self, history: &mut ToolHistory) -> Option<Narrated> {
        let wrote = self.wrote.get()?;
        let narrated = match &wrote.said {
            Ok(said) => history.narrate(&self.part, said),
            Err(why) => Narrated::refused(self.part.epoch, *why),
        };
        let (input, output) = wrote.billed;
        Some(narrated.costing(input, output))
    }
}

impl Hand {
    pub(crate) fn done(self, wrote: Wrote) {
        let _ = self.wrote.set(wrote);
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // Whoever waits must not wait for ever.
        let _ = self.wrote.set(Wrote {
            said: Err(Refused::Failed),
            billed: (0, 0),
        });
    }
}

impl fmt::Debug for Writing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writing")
            .field("epoch", &self.part.epoch)
            .field("wrote", &self.wrote.get().is_some())
            .finish()
    }
}
