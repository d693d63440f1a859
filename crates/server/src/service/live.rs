//! A run that this process works on, for everybody who reads it.
//!
//! What readers get is kept once, and only until all of them have it: each has a place of its own, so
//! one that reads slowly costs nobody else anything, and one that leaves is not missed. Whoever comes
//! later, or falls far behind, reads the record instead.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use std::time::Duration;

use bytes::Bytes;
use throughline::{MemoryBudget, Reservation};
use throughline_store::RunId;
use tokio::sync::watch;

use super::pieces::{Pieces, Shared, held_bytes};
use crate::error::ApiError;

/// Where a run stands, for readers.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
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
    Left(Left),
}

/// Why this process stopped working on a run that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Another process has taken it over: its end is the end.
    TakenOver,
    /// Its end could not be stored. It is resumed when the store takes writes again.
    NotStored,
}

/// A run that this process works on.
#[derive(Debug)]
pub(crate) struct Live {
    /// The run.
    pub(crate) run: RunId,
    /// Whether its events are kept as frames.
    pub(crate) streamed: bool,
    /// How long readers may read nothing.
    stall: Duration,
    state: Mutex<State>,
    changed: watch::Sender<()>,
    /// A reader has taken frames, or left.
    taken: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    frames: Frames,
    /// Whether something of it is stored.
    is_begun: bool,
}

/// How many bytes are kept for readers that are behind, if they can read them elsewhere.
const KEPT: usize = 256 * 1024;

/// The newest frames.
#[derive(Debug)]
struct Frames {
    kept: VecDeque<Pieces>,
    shared: Shared,
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

/// Whoever asked for a run: what is told before they listen is kept for them.
const ASKER: u64 = 0;

impl Frames {
    fn new(recorded: bool, memory: Reservation) -> Self {
        Self {
            kept: VecDeque::new(),
            shared: Shared::default(),
            memory,
            first: 0,
            bytes: 0,
            recorded,
            readers: vec![(ASKER, 0)],
            next_reader: ASKER + 1,
        }
    }

    fn push(&mut self, frames: &mut Vec<Bytes>) {
        // What comes now is kept in any case: readers had no chance to take it yet.
        while self.recorded && self.bytes > KEPT && self.forget_first() {}
        for frame in frames.drain(..) {
            self.bytes += frame.len();
            self.kept.push_back(self.shared.pieces(frame));
        }
        self.forget_read();
    }

    /// Whether the run may add frames before a reader has taken some.
    fn has_room(&self) -> bool {
        self.recorded || self.bytes <= KEPT
    }

    /// Report what is kept to the memory budget.
    fn count(&mut self) {
        // Only long frames share texts, so that less than this has none to share.
        let held = match self.bytes {
            ..=KEPT => self.bytes,
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

    /// Forget what everybody has.
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
    fn take(&mut self, reader: u64, from: usize) -> Result<Vec<Pieces>, Behind> {
        let place = from.checked_sub(self.first).ok_or(Behind { from })?;
        let fresh: Vec<Pieces> = self.kept.iter().skip(place).cloned().collect();
        if let Some((_, next)) = self.readers.iter_mut().find(|(one, _)| *one == reader) {
            *next = from + fresh.len();
        }
        self.forget_read();
        Ok(fresh)
    }
}

/// The next frame of a reader is not in memory: it was dropped, or another process makes it now. The
/// reader goes on from the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    /// The number of it.
    pub(crate) from: usize,
}

/// What a reader gets next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Frames(Vec<Pieces>),
    /// The run is over, and all of it was read.
    End,
    /// The end of the run could not be stored; this many frames were read.
    NotStored(usize),
}

impl Live {
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
            state: Mutex::new(State {
                stage: Stage::Starting,
                frames: Frames::new(recorded, memory.reservation()),
                is_begun: false,
            }),
            changed: watch::Sender::new(()),
            taken: watch::Sender::new(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It began.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        state.stage = Stage::Begun;
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

    /// It is over. The last frames are there before anybody hears of it.
    pub(crate) fn end(&self, frames: &mut Vec<Bytes>, answer: Answer) {
        let mut state = self.state();
        state.frames.push(frames);
        state.stage = Stage::Over(match answer {
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
    pub(crate) fn leave(&self, left: Left) {
        self.end(&mut Vec::new(), Answer::Left(left));
    }

    /// The response, once it is over. Before that the record tells how it stands: nobody was told
    /// of anything that is not there.
    pub(crate) fn response(&self) -> Option<Pieces> {
        match &self.state().stage {
            Stage::Over(Answer::Response(response)) => Some(response.clone()),
            Stage::Over(_) | Stage::Starting | Stage::Begun => None,
        }
    }

    /// Whether it is over and never began.
    pub(crate) fn is_refused(&self) -> bool {
        let state = self.state();
        matches!(state.stage, Stage::Over(_)) && !state.is_begun
    }

    /// Where it stands, once it has begun or is over.
    pub(crate) fn begun(&self) -> Option<Stage> {
        let stage = &self.state().stage;
        (!matches!(stage, Stage::Starting)).then(|| stage.clone())
    }

    /// What came of it, if it is over.
    pub(crate) fn answer(&self) -> Option<Answer> {
        match &self.state().stage {
            Stage::Over(answer) => Some(answer.clone()),
            Stage::Starting | Stage::Begun => None,
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
                return Answer::Left(Left::NotStored);
            }
        }
    }

    /// Read it as whoever asked for it.
    pub(crate) fn asker(self: &Arc<Self>) -> Reader {
        Reader {
            live: Arc::clone(self),
            number: ASKER,
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
    live: Arc<Live>,
    number: u64,
    from: usize,
}

impl Reader {
    pub(crate) fn run(&self) -> RunId {
        self.live.run
    }

    /// The frames that come next, once there are any, or how the reading ends.
    pub(crate) async fn next(&mut self) -> Result<Next, Behind> {
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
                    return Ok(Next::Frames(fresh));
                }
                match &state.stage {
                    Stage::Over(Answer::Left(Left::TakenOver)) => {
                        return Err(Behind { from: self.from });
                    }
                    Stage::Over(Answer::Left(Left::NotStored)) => {
                        return Ok(Next::NotStored(self.from));
                    }
                    Stage::Over(_) => return Ok(Next::End),
                    Stage::Starting | Stage::Begun => {}
                }
            }
            if changed.changed().await.is_err() {
                return Ok(Next::NotStored(self.from));
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

    fn live(recorded: bool) -> Arc<Live> {
        let memory = MemoryBudget::new(64 << 20);
        Arc::new(Live::new(
            RunId::from_bytes([7; 16]),
            (true, recorded),
            STALL,
            &memory,
        ))
    }

    /// Tell so many frames of a size.
    fn tell(live: &Live, numbers: std::ops::Range<u64>, size: usize) {
        let frame = |number: u64| Bytes::from(vec![number as u8; size]);
        live.push(&mut numbers.map(frame).collect());
    }

    fn kept(live: &Live) -> (usize, usize) {
        let state = live.state();
        (state.frames.kept.len(), state.frames.bytes)
    }

    async fn read(reader: &mut Reader) -> Vec<u8> {
        match reader.next().await.expect("they are here") {
            Next::Frames(frames) => frames.iter().map(|frame| frame.as_slice()[0][0]).collect(),
            Next::End | Next::NotStored(_) => Vec::new(),
        }
    }

    #[tokio::test]
    async fn frames_are_kept_until_everybody_has_them() {
        let live = live(true);
        tell(&live, 0..3, 10);
        assert_eq!(kept(&live), (3, 30), "whoever asked has not come yet");
        let mut asker = live.asker();
        assert_eq!(read(&mut asker).await, [0, 1, 2]);
        assert_eq!(kept(&live), (0, 0));
        let mut second = live.reader(3);
        tell(&live, 3..5, 10);
        assert_eq!(read(&mut asker).await, [3, 4]);
        assert_eq!(kept(&live), (2, 20), "the second has not read them");
        assert_eq!(read(&mut second).await, [3, 4]);
        tell(&live, 5..6, 10);
        drop(second);
        assert_eq!(read(&mut asker).await, [5]);
        assert_eq!(kept(&live), (0, 0), "one that left is not waited for");
    }

    #[tokio::test]
    async fn who_comes_late_or_is_slow_reads_the_record() {
        let live = live(true);
        let mut asker = live.asker();
        tell(&live, 0..2, 10);
        read(&mut asker).await;
        assert_eq!(live.reader(1).next().await, Err(Behind { from: 1 }));
        // Far behind: what was there before is let go of, what has just come is not.
        tell(&live, 2..4, KEPT);
        assert_eq!(kept(&live), (2, 2 * KEPT));
        tell(&live, 4..5, 10);
        assert_eq!(kept(&live).0, 2, "one of the large ones, and the new one");
        assert_eq!(asker.next().await, Err(Behind { from: 2 }));
    }

    #[tokio::test]
    async fn what_is_recorded_nowhere_is_kept_for_a_slow_reader() {
        let live = live(false);
        let mut asker = live.asker();
        tell(&live, 0..4, KEPT);
        tell(&live, 4..5, KEPT);
        assert_eq!(read(&mut asker).await, [0, 1, 2, 3, 4]);
        assert_eq!(kept(&live), (0, 0));
        live.end(&mut Vec::new(), Answer::Repeated(live.run));
        assert_eq!(asker.next().await, Ok(Next::End));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_recorded_nowhere_waits_for_its_reader_up_to_a_limit() {
        let live = live(false);
        let mut asker = live.asker();
        tell(&live, 0..1, KEPT);
        live.has_room().await;
        tell(&live, 1..2, 1);
        let waiting = tokio::spawn({
            let live = Arc::clone(&live);
            async move { live.has_room().await }
        });
        tokio::time::sleep(STALL / 2).await;
        assert!(!waiting.is_finished());
        assert_eq!(read(&mut asker).await, [0, 1]);
        waiting.await.unwrap();
        tell(&live, 2..3, KEPT + 1);
        live.has_room().await;
        assert_eq!(kept(&live), (0, 0), "it has waited long enough");
        assert_eq!(asker.next().await, Err(Behind { from: 2 }));
    }

    #[tokio::test]
    async fn readers_of_a_run_that_is_left_hear_of_no_end() {
        for (left, next) in [
            (Left::TakenOver, Err(Behind { from: 2 })),
            (Left::NotStored, Ok(Next::NotStored(2))),
        ] {
            let live = live(true);
            let mut asker = live.asker();
            tell(&live, 0..2, 10);
            live.leave(left);
            assert_eq!(
                read(&mut asker).await,
                [0, 1],
                "what was told before is read"
            );
            assert_eq!(asker.next().await, next);
            assert!(live.response().is_none());
        }
    }
}
