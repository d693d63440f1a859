//! What a renderer that is kept with its history holds in memory.

use throughline_model::HeapSize;

use super::{PendingCall, PendingResult, RenderedItem, Renderer};
use crate::Loss;
use crate::render::repair::Repair;

impl HeapSize for Renderer {
    /// The target, the rules and the strategy are left out: they do not grow with the history, and most
    /// renderers share them.
    fn heap_size(&self) -> usize {
        let sets = [
            &self.item_ids,
            &self.closed,
            &self.answered,
            &self.stood_in,
            &self.early,
            &self.vendor_calls,
            &self.behind,
        ];
        self.items.heap_size()
            + self.system.heap_size()
            + self.losses.heap_size()
            + self.repairs.heap_size()
            + self.ids.heap_size()
            + self.waiting.heap_size()
            + sets.into_iter().map(HeapSize::heap_size).sum::<usize>()
    }
}

impl HeapSize for RenderedItem {
    fn heap_size(&self) -> usize {
        self.json.heap_size()
    }
}

impl HeapSize for PendingCall {
    fn heap_size(&self) -> usize {
        self.call.heap_size()
            + self.id.heap_size()
            + self.content.heap_size()
            + self.status.heap_size()
            + self.checks.heap_size()
            + self.answer.heap_size()
    }
}

impl HeapSize for PendingResult {
    fn heap_size(&self) -> usize {
        self.content.heap_size()
    }
}

impl HeapSize for Loss {
    fn heap_size(&self) -> usize {
        self.path.heap_size() + self.detail.heap_size() + self.sent.heap_size()
    }
}

impl HeapSize for Repair {
    fn heap_size(&self) -> usize {
        self.path.heap_size() + self.detail.heap_size()
    }
}
