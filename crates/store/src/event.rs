//! Events of a run, stored in compact flushes just before they are sent.

use crate::varint;

/// The number of an event in its run, from 0.
pub type EventNo = u64;

/// One event: a number for its kind and its bytes. What they mean is the business of the layer
/// above; the store keeps them in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The kind.
    pub kind: u16,
    /// Its bytes, often the text of a delta and nothing else.
    pub body: Vec<u8>,
}

/// Some events that are stored together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flush {
    pub(crate) first: EventNo,
    pub(crate) count: u32,
    pub(crate) payload: Vec<u8>,
}

impl Flush {
    /// Pack events, the first of which has the given number.
    ///
    /// ```
    /// use throughline_store::{Flush, StoredEvent};
    ///
    /// let events = vec![StoredEvent { kind: 1, body: b"Hel".to_vec() }];
    /// let flush = Flush::new(0, &events);
    /// assert_eq!(flush.events().unwrap(), events);
    /// ```
    pub fn new(first: EventNo, events: &[StoredEvent]) -> Self {
        let size = events.iter().map(|event| event.body.len() + 4).sum();
        let mut payload = Vec::with_capacity(size);
        for event in events {
            varint::push(&mut payload, u64::from(event.kind));
            varint::push(&mut payload, event.body.len() as u64);
            payload.extend_from_slice(&event.body);
        }
        Self {
            first,
            count: u32::try_from(events.len()).unwrap_or(u32::MAX),
            payload,
        }
    }

    /// The number of its first event.
    pub fn first(&self) -> EventNo {
        self.first
    }

    /// How many events it has.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The number after its last event.
    pub fn end(&self) -> EventNo {
        self.first + u64::from(self.count)
    }

    /// The same events with nothing in them: what is left when the run's words are redacted.
    pub(crate) fn emptied(&self) -> Self {
        let kinds: Vec<u16> = match self.events() {
            Some(events) => events.iter().map(|event| event.kind).collect(),
            // Damaged bytes may hold the words too.
            None => vec![0; self.count as usize],
        };
        let empty = kinds.into_iter().map(|kind| StoredEvent {
            kind,
            body: Vec::new(),
        });
        Self::new(self.first, &empty.collect::<Vec<_>>())
    }

    /// Unpack it. `None` if the bytes are damaged.
    pub fn events(&self) -> Option<Vec<StoredEvent>> {
        let mut rest = self.payload.as_slice();
        let mut events = Vec::new();
        for _ in 0..self.count {
            let kind = u16::try_from(varint::take(&mut rest)?).ok()?;
            let length = usize::try_from(varint::take(&mut rest)?).ok()?;
            let (body, after) = rest.split_at_checked(length)?;
            events.push(StoredEvent {
                kind,
                body: body.to_vec(),
            });
            rest = after;
        }
        rest.is_empty().then_some(events)
    }
}
