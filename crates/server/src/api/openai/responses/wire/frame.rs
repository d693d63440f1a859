//! Frames of an event stream.

use std::fmt::Write as _;

use bytes::Bytes;
use throughline_model::json::ObjectWriter;

/// What ends a stream.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

/// One event of a stream, in one buffer: readers exist that lose a frame which comes in two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its sequence number.
    pub number: u64,
    /// The whole frame: `event:`, `data:` and the empty line.
    pub bytes: Bytes,
    /// The type of the event.
    pub kind: &'static str,
}

impl Frame {
    /// The JSON of the event, as it stands in the frame.
    pub fn data(&self) -> &str {
        let text = std::str::from_utf8(&self.bytes).unwrap_or_default();
        let data = text.split_once("\ndata: ").map(|(_, data)| data);
        data.unwrap_or_default().trim_end()
    }
}

/// Writes frames with running numbers.
pub(super) struct FrameWriter<'o> {
    out: &'o mut Vec<Frame>,
    numbers: &'o mut EventNumbers,
}

/// The number of the next event, and whether events are written.
#[derive(Clone, Debug, Default)]
pub(super) struct EventNumbers {
    next: u64,
    /// There is no reader: events are counted and not written.
    pub(super) silent: bool,
}

impl EventNumbers {
    /// The number of the next event.
    pub(super) fn next(&self) -> u64 {
        self.next
    }
}

/// What an event is about: an item, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct ItemPosition<'s> {
    pub(super) id: &'s str,
    pub(super) index: usize,
}

impl<'o> FrameWriter<'o> {
    pub(super) fn new(out: &'o mut Vec<Frame>, numbers: &'o mut EventNumbers) -> Self {
        Self { out, numbers }
    }

    /// One event; `room` is about what its members take.
    pub(super) fn push(
        &mut self,
        kind: &'static str,
        room: usize,
        write: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let number = self.numbers.next;
        self.numbers.next += 1;
        if self.numbers.silent {
            return;
        }
        let mut text = String::with_capacity(room + 2 * kind.len() + 64);
        // Writing to a string cannot fail.
        let _ = write!(text, "event: {kind}\ndata: ");
        let mut object = ObjectWriter::new(&mut text);
        object.str("type", kind).number("sequence_number", number);
        write(&mut object);
        object.end();
        text.push_str("\n\n");
        self.out.push(Frame {
            number,
            bytes: Bytes::from(text),
            kind,
        });
    }

    /// An event about an item.
    pub(super) fn item_event(
        &mut self,
        kind: &'static str,
        position: ItemPosition<'_>,
        room: usize,
        write: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        self.push(kind, room + position.id.len() + 64, |object| {
            object
                .str("item_id", position.id)
                .number("output_index", position.index as u64);
            write(object);
        });
    }

    /// An event that carries an item.
    pub(super) fn item(&mut self, kind: &'static str, index: usize, item: &str) {
        self.push(kind, item.len() + 32, |object| {
            object
                .number("output_index", index as u64)
                .raw("item", item);
        });
    }

    /// An event that carries the response.
    pub(super) fn response(&mut self, kind: &'static str, response: &str) {
        self.push(kind, response.len() + 16, |object| {
            object.raw("response", response);
        });
    }
}
