//! The record as far as it was pushed: messages, their numbers and sizes, and their groups.

use std::sync::Arc;

use throughline_model::{HeapSize, Message};

use crate::group::{Group, Grouping, MessageGroups};

/// One message of the record.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) message: Arc<Message>,
    pub(crate) units: u32,
    pub(crate) placed: MessageGroups,
}

/// Messages in the order of their numbers. It only grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    entries: Vec<Entry>,
    grouping: Grouping,
}

impl Record {
    /// Take in one more message; false if its number is not above the last.
    pub(crate) fn push(&mut self, seq: u64, message: Arc<Message>, units: u32) -> bool {
        if self.entries.last().is_some_and(|last| last.seq >= seq) {
            return false;
        }
        let placed = self.grouping.push(self.entries.len(), &message);
        self.entries.push(Entry {
            seq,
            message,
            units,
            placed,
        });
        true
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn groups(&self) -> &[Group] {
        &self.grouping.groups
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The place of the first message whose number is at least `seq`.
    pub(crate) fn place(&self, seq: u64) -> usize {
        self.entries.partition_point(|entry| entry.seq < seq)
    }

    /// The place of the message with this number.
    pub(crate) fn exactly(&self, seq: u64) -> Option<usize> {
        let place = self.place(seq);
        (self.entries.get(place)?.seq == seq).then_some(place)
    }

    /// The first group that begins at or after a place.
    pub(crate) fn group_from(&self, place: usize) -> usize {
        self.groups().partition_point(|group| group.first() < place)
    }

    /// The place where a group begins; after the last group, the end of the record.
    pub(crate) fn begins(&self, at: usize) -> usize {
        self.groups().get(at).map_or(self.len(), Group::first)
    }

    /// The groups that have a part in a message.
    pub(crate) fn groups_of(&self, place: usize) -> Vec<usize> {
        let mut groups = match self.entries.get(place).map(|entry| &entry.placed) {
            None => Vec::new(),
            Some(MessageGroups::Whole(group)) => vec![*group],
            Some(MessageGroups::Each(all)) => all.iter().map(|one| one.group).collect(),
        };
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Units of the messages of a group; a message counts for the group of its first content.
    pub(crate) fn group_units(&self, at: usize) -> u64 {
        let Some(group) = self.groups().get(at) else {
            return 0;
        };
        let entries = group
            .members
            .iter()
            .filter_map(|member| self.entries.get(member.place));
        entries
            .filter(|entry| entry.placed.main() == at)
            .map(|entry| u64::from(entry.units))
            .sum()
    }
}

impl HeapSize for Record {
    fn heap_size(&self) -> usize {
        self.entries.heap_size() + self.grouping.heap_size()
    }
}
