//! Settings of a thread that change its view: pinned messages, and epochs taken back.

use std::collections::BTreeSet;

use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson, Value, push_string};
use throughline_model::{Message, MessageId};

use crate::history::ToolHistory;
use crate::stored_epoch::{StoredEpoch, number_count};

/// Epochs that were taken back are remembered until a run has continued from them; so many at most.
const MOST_UNDONE: usize = 64;

const PINS: &str = "pins";
const UNDONE: &str = "undone";

/// Settings of a thread that change what its view shows.
///
/// Both lists name what they mean by what it is: the id of a message, the hash of what an epoch
/// shows. On another branch of the conversation they mean the same, or nothing.
///
/// ```
/// use throughline_compact::ViewSettings;
/// use throughline_model::json::RawJson;
///
/// let settings = RawJson::new(r#"{"v":1,"persistence":"per_call","pins":["msg_1"]}"#).unwrap();
/// let mut wishes = ViewSettings::of(Some(&settings));
/// assert_eq!(wishes.pins, ["msg_1"]);
/// wishes.pins.clear();
/// // What else is kept there stays.
/// let settings = wishes.put(Some(&settings));
/// assert_eq!(settings.get(), r#"{"v":1,"persistence":"per_call"}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ViewSettings {
    /// Ids of messages that are always shown in full.
    pub pins: Vec<String>,
    /// Hashes of what epochs show that are not to hold.
    pub undone: Vec<String>,
}

impl ViewSettings {
    /// The settings as a thread stores them.
    pub fn of(settings: Option<&RawJson>) -> Self {
        let value = settings.and_then(|settings| json::parse(settings.get()).ok());
        let list = |key: &str| -> Vec<String> {
            let list = value.as_ref().and_then(|value| value.get(key));
            let list = list.and_then(Value::as_array).unwrap_or_default().iter();
            list.filter_map(|one| Some(one.as_str()?.into_owned()))
                .collect()
        };
        Self {
            pins: list(PINS),
            undone: list(UNDONE),
        }
    }

    /// Write them as members of an object.
    pub fn write(&self, object: &mut ObjectWriter<'_>) {
        for (key, list) in [(PINS, &self.pins), (UNDONE, &self.undone)] {
            if list.is_empty() {
                continue;
            }
            let mut array = ArrayWriter::new(object.key(key));
            for one in list {
                push_string(array.slot(), one);
            }
            array.end();
        }
    }

    /// The settings of a thread with these in place of the earlier ones.
    pub fn put(&self, settings: Option<&RawJson>) -> RawJson {
        let value = settings.and_then(|settings| json::parse(settings.get()).ok());
        RawJson::object(|object| {
            match &value {
                None => {
                    object.number("v", 1);
                }
                Some(value) => {
                    let others = value.members().iter();
                    for member in others.filter(|one| !one.key.is(PINS) && !one.key.is(UNDONE)) {
                        object.raw(&member.key.to_str(), member.value.raw());
                    }
                }
            }
            self.write(object);
        })
    }

    /// Undo the stored epoch. False if there is none, or if it was undone before.
    pub fn undo(&mut self, kept: Option<&RawJson>) -> bool {
        let kept = kept.and_then(|kept| StoredEpoch::from_json(kept.get()));
        let Some(epoch) = kept.as_ref().and_then(StoredEpoch::epoch) else {
            return false;
        };
        if self.undone.contains(&epoch.prefix) {
            return false;
        }
        if self.undone.len() >= MOST_UNDONE {
            self.undone.remove(0);
        }
        self.undone.push(epoch.prefix.clone());
        true
    }

    /// Pin the message of a record that has a number. False if there is none, or if it is pinned.
    pub fn pin<'m>(&mut self, record: impl IntoIterator<Item = &'m Message>, number: u64) -> bool {
        let Some(id) = id_of(record, number).filter(|id| !self.pins.contains(id)) else {
            return false;
        };
        self.pins.push(id);
        true
    }

    /// Remove the pin. False if it was not pinned.
    pub fn unpin<'m>(
        &mut self,
        record: impl IntoIterator<Item = &'m Message>,
        number: u64,
    ) -> bool {
        let id = id_of(record, number);
        let before = self.pins.len();
        self.pins.retain(|pin| Some(pin) != id.as_ref());
        self.pins.len() < before
    }

    /// The numbers of the messages of a record that are pinned.
    pub fn pinned<'m>(&self, record: impl IntoIterator<Item = &'m Message>) -> Vec<u64> {
        if self.pins.is_empty() {
            return Vec::new();
        }
        let is_pinned = |id: &MessageId| self.pins.contains(&id.to_string());
        let pinned = numbered(record).filter(|(_, one)| one.id.as_ref().is_some_and(is_pinned));
        pinned.map(|(number, _)| number).collect()
    }
}

/// The messages of a record, each with its number.
fn numbered<'m>(
    record: impl IntoIterator<Item = &'m Message>,
) -> impl Iterator<Item = (u64, &'m Message)> {
    record.into_iter().scan(1, |next, message| {
        let number = *next;
        *next += number_count(message);
        Some((number, message))
    })
}

/// The id of the message that has a number, be it that of one of its results.
fn id_of<'m>(record: impl IntoIterator<Item = &'m Message>, number: u64) -> Option<String> {
    let mut record = numbered(record);
    let (_, message) = record
        .find(|(first, message)| (*first..first + number_count(message)).contains(&number))?;
    message.id.as_ref().map(ToString::to_string)
}

impl ToolHistory {
    /// Apply the settings of a thread. True if epochs were taken back for it, which is to be
    /// kept.
    pub fn apply_settings(&mut self, wishes: &ViewSettings) -> bool {
        let record = self.record.entries().iter().map(|entry| &*entry.message);
        let pinned = wishes.pinned(record);
        let wanted: BTreeSet<u64> = pinned
            .into_iter()
            .chain(self.policy.pins.iter().copied())
            .collect();
        self.pins = wanted;
        let held = self.epoch();
        let is_undone = held.is_some_and(|epoch| wishes.undone.contains(&epoch.prefix));
        is_undone && self.uncompact(0)
    }
}
