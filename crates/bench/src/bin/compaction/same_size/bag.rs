//! All names of older messages, newest first, without anything else.

use std::collections::{BTreeMap, HashMap};

use throughline_testkit::trajectory::{atoms, message_texts};

use crate::count::Counter;
use crate::groups::MessageGroup;

/// Names by when they were seen last.
#[derive(Default)]
pub(super) struct Bag {
    /// Groups that were read.
    read: usize,
    stamp: u64,
    stamps: HashMap<String, u64>,
    names: BTreeMap<u64, String>,
}

impl Bag {
    /// As many names as there is room for.
    pub(super) fn extract(
        &mut self,
        older: &[MessageGroup],
        room: u64,
        counter: &mut Counter,
    ) -> String {
        for group in older.iter().skip(self.read) {
            let texts = group.iter().flat_map(|message| message_texts(message));
            for name in texts.flat_map(|text| atoms(&text)) {
                self.stamp += 1;
                if let Some(before) = self.stamps.insert(name.clone(), self.stamp) {
                    self.names.remove(&before);
                }
                self.names.insert(self.stamp, name);
            }
        }
        self.read = self.read.max(older.len());
        let mut text = String::new();
        let mut left = room;
        for name in self.names.values().rev() {
            let line = format!("{name}\n");
            let tokens = counter.text(&line);
            if tokens > left {
                break;
            }
            left -= tokens;
            text.push_str(&line);
        }
        text
    }
}
