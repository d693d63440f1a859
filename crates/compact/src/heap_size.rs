//! What a tool history holds in memory beside the messages that it was given.

use std::mem::size_of;
use std::sync::Arc;

use throughline_model::{HeapSize, Message};

use crate::epoch::{Block, Epoch, LeftOut, Shortened};
use crate::facts::{Facts, Line};
use crate::group::{ContentGroup, Group, Member, MessageGroups};
use crate::history::ToolHistory;
use crate::names::{NameEntry, NameUse};
use crate::narrative::Narrative;
use crate::record::Entry;

/// The messages are left out: they are shared with the caller, who counts them once. The policy, the tools and
/// the digests are left out too, since they do not grow.
impl HeapSize for ToolHistory {
    fn heap_size(&self) -> usize {
        self.record.heap_size()
            + self.name_index.heap_size()
            + self.facts.heap_size()
            + self.epochs.heap_size()
            + self.narrative.heap_size()
            + self.late.heap_size()
            + self.pins.heap_size()
            + self.frame.kept.heap_size()
            + self.frame.left_out.heap_size()
            + self.frame.shortened.heap_size()
            + self.frame.requests.heap_size()
            + self.view.messages.capacity() * size_of::<Arc<Message>>()
    }
}

impl HeapSize for Entry {
    fn heap_size(&self) -> usize {
        match &self.placed {
            MessageGroups::Whole(_) => 0,
            MessageGroups::Each(all) => all.heap_size(),
        }
    }
}

impl HeapSize for ContentGroup {
    fn heap_size(&self) -> usize {
        0
    }
}

impl HeapSize for Group {
    fn heap_size(&self) -> usize {
        self.members.heap_size()
    }
}

impl HeapSize for Member {
    fn heap_size(&self) -> usize {
        self.contents.heap_size()
    }
}

impl HeapSize for NameEntry {
    fn heap_size(&self) -> usize {
        self.shown.heap_size()
    }
}

impl HeapSize for NameUse {
    fn heap_size(&self) -> usize {
        0
    }
}

impl HeapSize for Facts {
    fn heap_size(&self) -> usize {
        self.lines.heap_size()
    }
}

impl HeapSize for Line {
    fn heap_size(&self) -> usize {
        self.key.heap_size()
            + self.head.heap_size()
            + self.size.heap_size()
            + self.rest.heap_size()
            + self.errors.heap_size()
            + self.names.heap_size()
    }
}

impl HeapSize for Epoch {
    fn heap_size(&self) -> usize {
        self.blocks.heap_size()
            + self.shortened.heap_size()
            + self.shortened_requests.heap_size()
            + self.pinned.heap_size()
            + self.policy_hash.heap_size()
            + self.prefix.heap_size()
    }
}

impl HeapSize for Block {
    fn heap_size(&self) -> usize {
        self.kept.heap_size()
            + self.left_out.heap_size()
            + self.text.heap_size()
            + self.sources.heap_size()
    }
}

impl HeapSize for LeftOut {
    fn heap_size(&self) -> usize {
        0
    }
}

impl HeapSize for Shortened {
    fn heap_size(&self) -> usize {
        0
    }
}

impl HeapSize for Narrative {
    fn heap_size(&self) -> usize {
        self.text.heap_size() + self.sources.heap_size()
    }
}
