//! What is kept beside a record so that its view can be shown again.

use std::sync::Arc;

use throughline_model::json::{self, ObjectWriter, RawJson, Value};
use throughline_model::{Body, Message};

use crate::epoch::Epoch;
use crate::history::{ToolHistory, TriggerBaseline};
use crate::narrative::Narrative;
use crate::tokens::Calibrations;

/// The version of the stored form.
const VERSION: &str = "1";

/// The epoch that holds, and what was billed so far: all that a view needs beside its record.
///
/// ```
/// use throughline_compact::StoredEpoch;
///
/// // A view is made again at any time, so what cannot be read is as if it had never been.
/// assert_eq!(StoredEpoch::from_json(r#"{"v":2}"#), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEpoch {
    /// The epoch that is in force, or that all were taken back.
    pub held: EpochState,
    /// What a model wrote, for the next epoch.
    pub narrative: Option<Arc<Narrative>>,
    /// What was billed so far, by which estimates are calibrated.
    pub bills: Calibrations,
}

/// How a record is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EpochState {
    /// By an epoch.
    Epoch(Arc<Epoch>),
    /// All of it, since epochs were taken back.
    Undone {
        /// The last of them; the next one has a higher number.
        no: u64,
        /// Units of tool history in the view then, from which triggers are armed again.
        tool_units: u64,
        /// Messages in the view then.
        messages: u64,
    },
}

impl StoredEpoch {
    /// What is to be kept of a history; `None` if there was never an epoch.
    pub fn of(history: &ToolHistory, bills: &Calibrations) -> Option<Self> {
        let held = match history.epoch() {
            Some(epoch) => EpochState::Epoch(Arc::clone(epoch)),
            None if history.last_no == 0 => return None,
            None => EpochState::Undone {
                no: history.last_no,
                tool_units: history.armed.tool_units,
                messages: history.armed.messages,
            },
        };
        Some(Self {
            held,
            narrative: history.narrative().cloned(),
            bills: bills.clone(),
        })
    }

    /// The epoch that holds, if one does.
    pub fn epoch(&self) -> Option<&Arc<Epoch>> {
        match &self.held {
            EpochState::Epoch(epoch) => Some(epoch),
            EpochState::Undone { .. } => None,
        }
    }

    /// The stored form.
    pub fn to_json(&self) -> RawJson {
        RawJson::object(|object| {
            object.raw("v", VERSION);
            match &self.held {
                EpochState::Epoch(epoch) => {
                    object.raw("epoch", &epoch.to_json());
                }
                EpochState::Undone {
                    no,
                    tool_units,
                    messages,
                } => {
                    let mut undone = ObjectWriter::new(object.key("undone"));
                    undone
                        .number("no", *no)
                        .number("tool_units", *tool_units)
                        .number("messages", *messages);
                    undone.end();
                }
            }
            if let Some(narrative) = &self.narrative {
                narrative.write(object.key("narrative"));
            }
            object.raw("bills", self.bills.to_json().get());
        })
    }

    /// From the stored form; `None` if this version cannot read it.
    pub fn from_json(text: &str) -> Option<Self> {
        let value = json::parse(text).ok()?;
        let member = |key: &str| value.get(key).map(|value| RawJson::of(value));
        if member("v")?.get() != VERSION {
            return None;
        }
        let held = match value.get("undone") {
            None => EpochState::Epoch(Arc::new(Epoch::from_json(member("epoch")?.get()).ok()?)),
            Some(undone) => {
                let number = |key: &str| undone.get(key).and_then(Value::as_u64);
                EpochState::Undone {
                    no: number("no")?,
                    tool_units: number("tool_units")?,
                    messages: number("messages")?,
                }
            }
        };
        let bills = member("bills").map(|bills| Calibrations::from_json(bills.get()));
        Some(Self {
            held,
            narrative: value
                .get("narrative")
                .and_then(Narrative::read)
                .map(Arc::new),
            bills: bills.unwrap_or_default(),
        })
    }
}

impl ToolHistory {
    /// Show a record as it was shown where this was kept. False, and nothing changes, if it does not
    /// belong to the record, or if there was an epoch already.
    pub fn restore(&mut self, kept: &StoredEpoch) -> bool {
        if self.last_no > 0 {
            return false;
        }
        match &kept.held {
            EpochState::Epoch(epoch) => {
                if !self.install(Arc::clone(epoch)) {
                    return false;
                }
                self.narrative.clone_from(&kept.narrative);
                self.settle_narrative();
            }
            EpochState::Undone {
                no,
                tool_units,
                messages,
            } => {
                self.last_no = *no;
                self.armed = TriggerBaseline {
                    tool_units: *tool_units,
                    messages: *messages,
                };
            }
        }
        true
    }
}

/// How many numbers of a record a message takes: one, and one more for each further result.
///
/// A record counts results, so that a digest can name each of them. The number of a message is the
/// first that it takes, and the first message has number one.
pub fn number_count(message: &Message) -> u64 {
    let results = message.contents.iter();
    let results = results.filter(|content| matches!(content.body, Body::ToolResult(_)));
    (results.count() as u64).max(1)
}
