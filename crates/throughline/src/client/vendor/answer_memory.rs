//! How much of an answer is held in memory while it is read.
//!
//! A stream is mostly frames around a few words, which are gone when they were read; what stays are
//! the words, and the frame that is not whole yet. That is what is bounded and counted, not the bytes
//! that came.

use std::time::Duration;

use throughline_model::Event;

use super::answer::Head;
use crate::client::{ClientError, ErrorKind};
use crate::memory::{MemoryBudget, Reservation};

/// How many copies of an answer exist while it is read: what the decoder gathers and what the caller
/// does, each with the room that a growing text has to spare.
const COPIES: usize = 4;

/// Memory is reserved in steps of this. Most answers are smaller than the first and are not counted.
const STEP: usize = 64 << 10;

/// How long an answer waits for memory before it fails.
const WAIT: Duration = Duration::from_secs(30);

/// What is held of one answer.
pub(super) struct AnswerMemory {
    /// What came of contents in small pieces.
    deltas: usize,
    /// What came of contents as a whole; mostly the same once more.
    contents: usize,
    /// Events that no other word is known for.
    others: usize,
    limit: u64,
    reservation: Option<Reservation>,
}

impl AnswerMemory {
    pub(super) fn new(limit: u64, memory: Option<&MemoryBudget>) -> Self {
        Self {
            deltas: 0,
            contents: 0,
            others: 0,
            limit,
            reservation: memory.map(MemoryBudget::reservation),
        }
    }

    /// An event is handed out.
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Delta { text, .. } | Event::Summary { text, .. } => self.deltas += text.len(),
            Event::Content { content, .. } => self.contents += content.byte_size(),
            Event::Other { event, .. } => self.others += event.get().len(),
            Event::Opened { .. }
            | Event::Started { .. }
            | Event::Speaker { .. }
            | Event::Finished { .. } => {}
        }
    }

    /// Have room for the events so far and so many bytes that are not read yet.
    pub(super) async fn cover(&mut self, unread: usize, head: &Head) -> Result<(), ClientError> {
        let bytes = self.deltas.max(self.contents) + self.others + unread;
        if bytes as u64 > self.limit {
            let text = format!("the answer is larger than {} bytes", self.limit);
            return Err(head.error(ErrorKind::TooLarge, text));
        }
        let Some(reservation) = &mut self.reservation else {
            return Ok(());
        };
        let needed = bytes * COPIES;
        if needed < reservation.bytes() + STEP {
            return Ok(());
        }
        let resized = reservation
            .resize(needed.next_multiple_of(STEP), WAIT)
            .await;
        resized.map_err(|error| {
            let text = "there is no memory for more of the answer";
            head.error(ErrorKind::OutOfMemory, text).with_source(error)
        })
    }
}
