//! Counts the memory of an answer while it is read.
//!
//! A stream consists mostly of frames around a few words; a frame is discarded once it is parsed.
//! What remains are the words, and the incomplete last frame. These are bounded and counted, not
//! the received bytes.

use std::time::Duration;

use throughline_model::Event;

use super::answer::Head;
use crate::client::{ClientError, ErrorKind};
use crate::memory::{MemoryBudget, Reservation};

/// How many copies of an answer exist while it is read: the decoder's and the caller's, each with
/// spare capacity for growth.
const COPIES: usize = 4;

/// Memory is reserved in steps of this size. Most answers are smaller than the first step and are
/// not counted.
const STEP: usize = 64 << 10;

/// How long an answer waits for memory before it fails.
const WAIT: Duration = Duration::from_secs(30);

/// The memory of one answer.
pub(super) struct AnswerMemory {
    /// Bytes of contents that arrived as deltas.
    deltas: usize,
    /// Bytes of contents that arrived as a whole; usually a repetition of the deltas.
    contents: usize,
    /// Bytes of other events.
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

    /// Counts an event that is returned.
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Delta { text, .. } | Event::Summary { text, .. } => self.deltas += text.len(),
            Event::Content { content, .. } => self.contents += content.byte_size(),
            Event::Other { event, .. } => self.others += event.get().len(),
            Event::Opened { .. }
            | Event::Started { .. }
            | Event::Accepted { .. }
            | Event::Speaker { .. }
            | Event::Finished { .. } => {}
        }
    }

    /// Reserves memory for the events so far and for unparsed bytes.
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
