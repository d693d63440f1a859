//! What a WebSocket knows of its latest response that is not stored, so that the next one can continue
//! it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use throughline::Thread;
use throughline::client::{MemoryBudget, Reservation};
use throughline_store::RunId;

/// The latest response with `store: false`. One connection has one.
pub(in crate::api::openai::responses) struct SocketChain(Mutex<SocketState>);

struct SocketState {
    kept: Option<KeptResponse>,
    /// The size of the history that was taken out.
    continued: usize,
    memory: Reservation,
}

struct KeptResponse {
    run: RunId,
    thread: Thread,
    /// What its history takes of memory, about.
    bytes: usize,
}

impl SocketState {
    fn evict(&mut self) {
        self.kept = None;
        self.continued = 0;
        self.memory.follow(0);
    }
}

impl SocketChain {
    pub(super) fn new(memory: &MemoryBudget) -> Self {
        Self(Mutex::new(SocketState {
            kept: None,
            continued: 0,
            memory: memory.reservation(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, SocketState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Take out the thread of a response that is to be continued. What continues it is kept in its
    /// place; if that does not begin, there is nothing to continue any more.
    pub(in crate::api::openai::responses) fn take(&self, run: RunId) -> Option<Thread> {
        let mut state = self.state();
        let kept = state.kept.take_if(|kept| kept.run == run)?;
        state.continued = kept.bytes;
        Some(kept.thread)
    }

    /// Keep the thread of a response that begins. `bytes` are those of its request.
    pub(in crate::api::openai::responses) fn keep(&self, run: RunId, thread: Thread, bytes: usize) {
        let mut state = self.state();
        let bytes = bytes + std::mem::take(&mut state.continued);
        state.kept = Some(KeptResponse { run, thread, bytes });
        state.memory.follow(bytes);
    }

    /// The history of the latest response has grown.
    pub(super) fn grow(&self, by: usize) {
        let mut state = self.state();
        if let Some(kept) = &mut state.kept {
            kept.bytes += by;
            let bytes = kept.bytes;
            state.memory.follow(bytes);
        }
    }

    /// Forget the latest response.
    pub(super) fn evict(&self) {
        self.state().evict();
    }

    /// A continuation of a response failed: if that is the latest one, or was taken out, forget it.
    pub(super) fn evict_continued(&self, run: Option<RunId>) {
        let mut state = self.state();
        if state.kept.as_ref().is_none_or(|kept| Some(kept.run) == run) {
            state.evict();
        }
    }
}
