//! The events that readers of streams received: for each response, the bytes of each sequence
//! number.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The sequence number.
    pub number: u64,
    /// Its type.
    pub kind: String,
    /// The data.
    pub data: Value,
    bytes: Vec<u8>,
}

impl Event {
    /// Parses a chunk of a body, which must be one frame. `None` for comments and the end mark.
    pub fn read(chunk: &[u8]) -> Result<Option<Self>, String> {
        let text = std::str::from_utf8(chunk).map_err(|error| error.to_string())?;
        let bad = || format!("a chunk is not one frame: {text:?}");
        let inner = text.strip_suffix("\n\n").ok_or_else(bad)?;
        if inner.contains("\n\n") {
            return Err(bad());
        }
        if inner.starts_with(':') || inner == "data: [DONE]" {
            return Ok(None);
        }
        let (event, data) = inner.split_once('\n').ok_or_else(bad)?;
        let kind = event.strip_prefix("event: ").ok_or_else(bad)?;
        let data = data.strip_prefix("data: ").ok_or_else(bad)?;
        let data: Value = serde_json::from_str(data).map_err(|_| bad())?;
        if data.get("type").and_then(Value::as_str) != Some(kind) {
            return Err(bad());
        }
        let number = data.get("sequence_number").and_then(Value::as_u64);
        Ok(Some(Self {
            number: number.ok_or_else(bad)?,
            kind: kind.to_owned(),
            data,
            bytes: chunk.to_vec(),
        }))
    }

    /// Whether the event ends a stream.
    pub fn is_last(&self) -> bool {
        let kinds = ["completed", "incomplete", "failed"];
        let kind = self.kind.strip_prefix("response.");
        kind.is_some_and(|kind| kinds.contains(&kind))
    }

    /// The response in the event, if it has one.
    pub fn response(&self) -> Option<&Value> {
        self.data.get("response")
    }
}

/// The events that all readers of all responses received.
#[derive(Debug, Default)]
pub struct StreamLog {
    events: HashMap<String, BTreeMap<u64, Vec<u8>>>,
    last: HashMap<String, u64>,
}

impl StreamLog {
    /// Records an event. It must equal what other readers received under its number.
    pub fn record(&mut self, response: &str, event: &Event) -> Result<(), String> {
        let told = self.events.entry(response.to_owned()).or_default();
        match told.get(&event.number) {
            None => {
                told.insert(event.number, event.bytes.clone());
            }
            Some(known) if *known == event.bytes => {}
            Some(known) => {
                return Err(format!(
                    "{response}: two readers heard different events under number {}:\n{}\n{}",
                    event.number,
                    String::from_utf8_lossy(known),
                    String::from_utf8_lossy(&event.bytes)
                ));
            }
        }
        let last = match event.is_last() {
            true => Some(*self.last.entry(response.to_owned()).or_insert(event.number)),
            false => self.last.get(response).copied(),
        };
        match last {
            Some(last) if event.number > last || (event.is_last() && event.number < last) => {
                Err(format!("{response}: its end has two numbers"))
            }
            _ => Ok(()),
        }
    }

    /// The number of the last event, if a client received it.
    pub fn last(&self, response: &str) -> Option<u64> {
        self.last.get(response).copied()
    }

    /// The largest number that a client received.
    pub fn newest(&self, response: &str) -> Option<u64> {
        let told = self.events.get(response)?;
        told.last_key_value().map(|(number, _)| *number)
    }

    /// The numbers of responses and events.
    pub fn count(&self) -> (usize, usize) {
        let events = self.events.values().map(BTreeMap::len).sum();
        (self.events.len(), events)
    }
}
