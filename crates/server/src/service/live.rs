//! Runs that are being worked on, and the frames that their readers have not taken yet.
//!
//! What readers get is kept once, and only until all of them have it: each has a place of its own, so
//! a slow reader does not hold up the others, and one that leaves is not waited for. A reader that comes
//! later, or falls far behind, reads the record instead.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use throughline::client::{MemoryBudget, Reservation};
use throughline_store::RunId;
use tokio::sync::watch;

use super::pieces::{Pieces, SharedTexts, held_bytes};
use crate::error::ApiError;

/// The runs that are being worked on, by id.
///
/// Readers and retries look here first, and read the store if the run is not found: a run that is
/// missing here is never wrong, only slower. An implementation that several servers share would also
/// find the runs of other processes.
#[async_trait]
pub(crate) trait LiveRuns: Send + Sync {
    /// Register a run before its first event. Called once for each run.
    fn insert(&self, run: Arc<LiveRun>);

    /// Find a run. Dropping the future has no effect.
    async fn find(&self, run: RunId) -> Option<Arc<LiveRun>>;

    /// Remove a run whose answer is set. Called once, also when its worker panicked.
    fn remove(&self, run: RunId);

    /// How many there are.
    fn count(&self) -> usize;
}

/// The runs of this process.
#[derive(Debug, Default)]
pub(crate) struct ProcessRuns(Mutex<HashMap<RunId, Arc<LiveRun>>>);

impl ProcessRuns {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Arc<LiveRun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LiveRuns for ProcessRuns {
    fn insert(&self, run: Arc<LiveRun>) {
        self.runs().insert(run.run, run);
    }

    async fn find(&self, run: RunId) -> Option<Arc<LiveRun>> {
        self.runs().get(&run).cloned()
    }

    fn remove(&self, run: RunId) {
        self.runs().remove(&run);
    }

    fn count(&self) -> usize {
        self.runs().len()
    }
}

/// Where a run stands, for readers.
#[derive(Clone, Debug)]
pub(crate) enum RunPhase {
    /// Nothing is stored yet.
    Starting,
    /// It began; nothing is refused any more.
    Begun,
    /// It is over.
    Over(Answer),
}

/// What comes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A response, in whichever state.
    Response(Pieces),
    /// An error. A run may have begun for it, which then failed.
    Error(ApiError),
    /// The same was asked before; this run answers it.
    Repeated(RunId),
    /// The run is not over, and this process does not work on it any more.
    Unfinished(Unfinished),
}

/// Why this process stopped working on a run that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// Another process has taken it over: its end is the end.
    TakenOver,
    /// Its end could not be stored. It is resumed when the store takes writes again.
    NotStored,
}

/// A run that this process works on.
#[derive(Debug)]
pub(crate) struct LiveRun {
    /// The run.
    pub(crate) run: RunId,
    /// Whether its events are kept as frames.
    pub(crate) streamed: bool,
    /// How long readers may read nothing.
    stall: Duration,
    state: Mutex<LiveState>,
    changed: watch::Sender<()>,
    /// A reader has taken frames, or left.
    taken: watch::Sender<()>,
}

#[derive(Debug)]
struct LiveState {
    phase: RunPhase,
    frames: FrameBuffer,
    /// Whether something of it is stored.
    is_begun: bool,
}

/// How many bytes are kept for readers that are behind, if they can read them elsewhere.
const MAX_BUFFERED: usize = 256 * 1024;

/// The newest frames.
#[derive(Debug)]
struct FrameBuffer {
    kept: VecDeque<Pieces>,
    shared: SharedTexts,
    memory: Reservation,
    /// The number of the first that is kept.
    first: usize,
    bytes: usize,
    /// Whether those that are not kept can be read elsewhere.
    recorded: bool,
    /// Who reads, and which frame comes next for them.
    readers: Vec<(u64, usize)>,
    next_reader: u64,
}

/// The reader of the request that began the run: frames from before it reads are kept for it.
const REQUESTER: u64 = 0;

impl FrameBuffer {
    fn new(recorded: bool, memory: Reservation) -> Self {
        Self {
            kept: VecDeque::new(),
            shared: SharedTexts::default(),
            memory,
            first: 0,
            bytes: 0,
            recorded,
            readers: vec![(REQUESTER, 0)],
            next_reader: REQUESTER + 1,
        }
    }

    fn push(&mut self, frames: &mut Vec<Bytes>) {
        // What comes now is kept in any case: readers had no chance to take it yet.
        while self.recorded && self.bytes > MAX_BUFFERED && self.forget_first() {}
        for frame in frames.drain(..) {
            self.bytes += frame.len();
            self.kept.push_back(self.shared.pieces(frame));
        }
        self.forget_read();
    }

    /// Whether the run may add frames before a reader has taken some.
    fn has_room(&self) -> bool {
        self.recorded || self.bytes <= MAX_BUFFERED
    }

    /// Report what is kept to the memory budget.
    fn count(&mut self) {
        // Only long frames share texts, so that less than this has none to share.
        let held = match self.bytes {
            ..=MAX_BUFFERED => self.bytes,
            _ => held_bytes(&self.kept),
        };
        self.memory.follow(held);
    }

    fn forget_first(&mut self) -> bool {
        let Some(frame) = self.kept.pop_front() else {
            return false;
        };
        self.first += 1;
        self.bytes -= frame.len();
        true
    }

    /// Drop the frames that all readers have.
    fn forget_read(&mut self) {
        let next = self.readers.iter().map(|(_, next)| *next).min();
        let next = next.unwrap_or(usize::MAX);
        while self.first < next && self.forget_first() {}
        if self.kept.is_empty() {
            self.kept.shrink_to(8);
            self.shared.clear();
        }
        self.count();
    }

    /// Forget everything.
    fn forget_all(&mut self) {
        while self.forget_first() {}
        self.shared.clear();
        self.count();
    }

    fn join(&mut self, from: usize) -> u64 {
        let reader = self.next_reader;
        self.next_reader += 1;
        self.readers.push((reader, from));
        reader
    }

    fn leave(&mut self, reader: u64) {
        self.readers.retain(|(other, _)| *other != reader);
        self.forget_read();
    }

    /// What a reader gets next: nothing if there is nothing yet, an error if it is no longer here.
    fn take(&mut self, reader: u64, from: usize) -> Result<Vec<Pieces>, Lagged> {
        let place = from.checked_sub(self.first).ok_or(Lagged { from })?;
        let fresh: Vec<Pieces> = self.kept.iter().skip(place).cloned().collect();
        if let Some((_, next)) = self.readers.iter_mut().find(|(one, _)| *one == reader) {
            *next = from + fresh.len();
        }
        self.forget_read();
        Ok(fresh)
    }
}

/// The next frame of a reader is not in memory: it was dropped, or another process makes it now. The
/// reader continues from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lagged {
    /// The number of it.
    pub(crate) from: usize,
}

/// What a reader gets next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReaderEvent {
    Frames(Vec<Pieces>),
    /// The run is over, and all of it was read.
    End,
    /// The end of the run could not be stored; this many frames were read.
    NotStored(usize),
}

impl LiveRun {
    /// `recorded`: its events are stored.
    pub(crate) fn new(
        run: RunId,
        (streamed, recorded): (bool, bool),
        stall: Duration,
        memory: &MemoryBudget,
    ) -> Self {
        Self {
            run,
            streamed,
            stall,
            state: Mutex::new(LiveState {
                phase: RunPhase::Starting,
                frames: FrameBuffer::new(recorded, memory.reservation()),
                is_begun: false,
            }),
            changed: watch::Sender::new(()),
            taken: watch::Sender::new(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It began.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        state.phase = RunPhase::Begun;
        state.is_begun = true;
        drop(state);
        self.changed.send_replace(());
    }

    /// Something happened.
    pub(crate) fn push(&self, frames: &mut Vec<Bytes>) {
        if frames.is_empty() {
            return;
        }
        self.state().frames.push(frames);
        self.changed.send_replace(());
    }

    /// Wait until its readers have taken enough of what is stored nowhere: such a run goes no faster
    /// than they read. After a time without a sign of them nothing is kept for them any longer.
    pub(crate) async fn has_room(&self) {
        let mut taken = self.taken.subscribe();
        loop {
            taken.borrow_and_update();
            if self.state().frames.has_room() {
                return;
            }
            if tokio::time::timeout(self.stall, taken.changed())
                .await
                .is_err()
            {
                self.state().frames.forget_all();
                self.changed.send_replace(());
                return;
            }
        }
    }

    /// The run is over. Its last frames are stored before its readers are woken.
    pub(crate) fn end(&self, frames: &mut Vec<Bytes>, answer: Answer) {
        let mut state = self.state();
        state.frames.push(frames);
        state.phase = RunPhase::Over(match answer {
            // Its last frame says the same.
            Answer::Response(Pieces::One(whole)) => {
                Answer::Response(state.frames.shared.pieces(whole))
            }
            answer => answer,
        });
        drop(state);
        self.changed.send_replace(());
    }

    /// This process stops working on the run before its end. Readers get no terminal event.
    pub(crate) fn leave(&self, left: Unfinished) {
        self.end(&mut Vec::new(), Answer::Unfinished(left));
    }

    /// The response, once it is over. Before that the store has its state:
    /// nothing is shown that is not there.
    pub(crate) fn response(&self) -> Option<Pieces> {
        match &self.state().phase {
            RunPhase::Over(Answer::Response(response)) => Some(response.clone()),
            RunPhase::Over(_) | RunPhase::Starting | RunPhase::Begun => None,
        }
    }

    /// Whether it is over and never began.
    pub(crate) fn is_refused(&self) -> bool {
        let state = self.state();
        matches!(state.phase, RunPhase::Over(_)) && !state.is_begun
    }

    /// Where it stands, once it has begun or is over.
    pub(crate) fn begun(&self) -> Option<RunPhase> {
        let phase = &self.state().phase;
        (!matches!(phase, RunPhase::Starting)).then(|| phase.clone())
    }

    /// What came of it, if it is over.
    pub(crate) fn answer(&self) -> Option<Answer> {
        match &self.state().phase {
            RunPhase::Over(answer) => Some(answer.clone()),
            RunPhase::Starting | RunPhase::Begun => None,
        }
    }

    /// Wait until it is over.
    pub(crate) async fn over(&self) -> Answer {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if let Some(answer) = self.answer() {
                return answer;
            }
            // The sender lives as long as this.
            if changed.changed().await.is_err() {
                return Answer::Unfinished(Unfinished::NotStored);
            }
        }
    }

    /// Read it as the request that began it.
    pub(crate) fn requester(self: &Arc<Self>) -> Reader {
        Reader {
            live: Arc::clone(self),
            number: REQUESTER,
            from: 0,
        }
    }

    /// Read it from a frame on.
    pub(crate) fn reader(self: &Arc<Self>, from: usize) -> Reader {
        Reader {
            number: self.state().frames.join(from),
            live: Arc::clone(self),
            from,
        }
    }
}

/// A reader of a run. What it has not read is kept for it.
#[derive(Debug)]
pub(crate) struct Reader {
    live: Arc<LiveRun>,
    number: u64,
    from: usize,
}

impl Reader {
    pub(crate) fn run(&self) -> RunId {
        self.live.run
    }

    /// The frames that come next, once there are any, or how the reading ends.
    pub(crate) async fn next(&mut self) -> Result<ReaderEvent, Lagged> {
        let mut changed = self.live.changed.subscribe();
        loop {
            changed.borrow_and_update();
            {
                let mut state = self.live.state();
                let fresh = state.frames.take(self.number, self.from)?;
                if !fresh.is_empty() {
                    self.from += fresh.len();
                    drop(state);
                    self.live.taken.send_replace(());
                    return Ok(ReaderEvent::Frames(fresh));
                }
                match &state.phase {
                    RunPhase::Over(Answer::Unfinished(Unfinished::TakenOver)) => {
                        return Err(Lagged { from: self.from });
                    }
                    RunPhase::Over(Answer::Unfinished(Unfinished::NotStored)) => {
                        return Ok(ReaderEvent::NotStored(self.from));
                    }
                    RunPhase::Over(_) => return Ok(ReaderEvent::End),
                    RunPhase::Starting | RunPhase::Begun => {}
                }
            }
            if changed.changed().await.is_err() {
                return Ok(ReaderEvent::NotStored(self.from));
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.live.state().frames.leave(self.number);
        self.live.taken.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_secs(60);

    fn live(recorded: bool) -> Arc<LiveRun> {
        let memory = MemoryBudget::new(64 << 20);
        Arc::new(LiveRun::new(
            RunId::from_bytes([7; 16]),
            (true, recorded),
            STALL,
            &memory,
        ))
    }

    /// Tell so many frames of a size.
    fn tell(live: &LiveRun, numbers: std::ops::Range<u64>, size: usize) {
        let frame = |number: u64| Bytes::from(vec![number as u8; size]);
        live.push(&mut numbers.map(frame).collect());
    }

    fn kept(live: &LiveRun) -> (usize, usize) {
        let state = live.state();
        (state.frames.kept.len(), state.frames.bytes)
    }

    async fn read(reader: &mut Reader) -> Vec<u8> {
        match reader.next().await.expect("they are here") {
            ReaderEvent::Frames(frames) => {
                frames.iter().map(|frame| frame.as_slice()[0][0]).collect()
            }
            ReaderEvent::End | ReaderEvent::NotStored(_) => Vec::new(),
        }
    }

    #[tokio::test]
    async fn frames_are_kept_until_everybody_has_them() {
        let live = live(true);
        tell(&live, 0..3, 10);
        assert_eq!(kept(&live), (3, 30), "the requester has not read yet");
        let mut requester = live.requester();
        assert_eq!(read(&mut requester).await, [0, 1, 2]);
        assert_eq!(kept(&live), (0, 0));
        let mut second = live.reader(3);
        tell(&live, 3..5, 10);
        assert_eq!(read(&mut requester).await, [3, 4]);
        assert_eq!(kept(&live), (2, 20), "the second has not read them");
        assert_eq!(read(&mut second).await, [3, 4]);
        tell(&live, 5..6, 10);
        drop(second);
        assert_eq!(read(&mut requester).await, [5]);
        assert_eq!(kept(&live), (0, 0), "one that left is not waited for");
    }

    #[tokio::test]
    async fn who_comes_late_or_is_slow_reads_the_record() {
        let live = live(true);
        let mut requester = live.requester();
        tell(&live, 0..2, 10);
        read(&mut requester).await;
        assert_eq!(live.reader(1).next().await, Err(Lagged { from: 1 }));
        // Far behind: what was there before is let go of, what has just come is not.
        tell(&live, 2..4, MAX_BUFFERED);
        assert_eq!(kept(&live), (2, 2 * MAX_BUFFERED));
        tell(&live, 4..5, 10);
        assert_eq!(kept(&live).0, 2, "one of the large ones, and the new one");
        assert_eq!(requester.next().await, Err(Lagged { from: 2 }));
    }

    #[tokio::test]
    async fn what_is_recorded_nowhere_is_kept_for_a_slow_reader() {
        let live = live(false);
        let mut requester = live.requester();
        tell(&live, 0..4, MAX_BUFFERED);
        tell(&live, 4..5, MAX_BUFFERED);
        assert_eq!(read(&mut requester).await, [0, 1, 2, 3, 4]);
        assert_eq!(kept(&live), (0, 0));
        live.end(&mut Vec::new(), Answer::Repeated(live.run));
        assert_eq!(requester.next().await, Ok(ReaderEvent::End));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_recorded_nowhere_waits_for_its_reader_up_to_a_limit() {
        let live = live(false);
        let mut requester = live.requester();
        tell(&live, 0..1, MAX_BUFFERED);
        live.has_room().await;
        tell(&live, 1..2, 1);
        let waiting = tokio::spawn({
            let live = Arc::clone(&live);
            async move { live.has_room().await }
        });
        tokio::time::sleep(STALL / 2).await;
        assert!(!waiting.is_finished());
        assert_eq!(read(&mut requester).await, [0, 1]);
        waiting.await.unwrap();
        tell(&live, 2..3, MAX_BUFFERED + 1);
        live.has_room().await;
        assert_eq!(kept(&live), (0, 0), "it has waited long enough");
        assert_eq!(requester.next().await, Err(Lagged { from: 2 }));
    }

    #[tokio::test]
    async fn readers_of_a_run_that_is_left_hear_of_no_end() {
        for (left, next) in [
            (Unfinished::TakenOver, Err(Lagged { from: 2 })),
            (Unfinished::NotStored, Ok(ReaderEvent::NotStored(2))),
        ] {
            let live = live(true);
            let mut requester = live.requester();
            tell(&live, 0..2, 10);
            live.leave(left);
            assert_eq!(
                read(&mut requester).await,
                [0, 1],
                "what was told before is read"
            );
            assert_eq!(requester.next().await, next);
            assert!(live.response().is_none());
        }
    }
}
