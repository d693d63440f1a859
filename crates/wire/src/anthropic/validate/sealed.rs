//! Thinking and compaction: what only the service can read.

use super::{Block, Checker, Group, Role};
use crate::validate::issued::same_member;
use crate::validate::object_schema::{filled, member};

impl Checker<'_> {
    pub(super) fn thoughts(&mut self, groups: &[Group<'_, '_>]) {
        let last = groups
            .iter()
            .rposition(|group| group.role == Role::Assistant);
        for (place, group) in groups.iter().enumerate() {
            let mut newest = 0;
            for block in group.blocks.iter().filter(|block| block.is_thinking()) {
                let order = self.thought(block, Some(place) == last);
                if Some(place) == last && order.is_some_and(|order| order < newest) {
                    let message = "thinking blocks are not in the order they came in; restore it";
                    self.refuse("A-9", block, (&block.tag, message));
                }
                newest = newest.max(order.unwrap_or(0));
            }
        }
    }

    /// One thinking block; gives its place among everything that was issued.
    fn thought(&mut self, block: &Block<'_, '_>, is_latest: bool) -> Option<usize> {
        let (seal, body) = match block.tag.as_str() {
            "thinking" => ("signature", "thinking"),
            _ => ("data", "data"),
        };
        let Some(seal) = filled(block.value, seal) else {
            if block.is("thinking") {
                self.refuse(
                    "A-10",
                    block,
                    (&block.tag, "the thinking is not signed; leave it out"),
                );
            }
            return None;
        };
        if !self.profile.same_account {
            let message = "another account signed this; leave the block out";
            self.refuse("A-10", block, (&block.tag, message));
            return None;
        }
        let issued = self.profile.issued.as_ref().filter(|_| !self.drops)?;
        let Some(original) = issued.sealed(&seal) else {
            let message = "the service did not sign this; leave the block out";
            self.refuse("A-10", block, (&block.tag, message));
            return None;
        };
        let order = original.order;
        if !same_member(block.value, &original.item.value(), body) {
            let rule = if is_latest { "A-9" } else { "A-10" };
            let message = "the block is not as it was signed; restore it or leave it out";
            self.refuse(rule, block, (&block.tag, message));
        }
        Some(order)
    }

    /// With a thinking budget an open tool loop starts with thinking.
    pub(super) fn loop_start(&mut self, groups: &[Group<'_, '_>]) {
        if !self.thinking_budget {
            return;
        }
        let mut latest = None;
        let mut rest = groups;
        while let [before @ .., calls, results] = rest {
            let is_step = results.role == Role::User
                && results.starts_with("tool_result")
                && calls.role == Role::Assistant
                && calls.has("tool_use");
            if !is_step {
                break;
            }
            let first = calls.blocks.iter().find(|block| !block.is("compaction"));
            if first.is_some_and(Block::is_thinking) {
                return;
            }
            latest = latest.or(first);
            rest = before;
        }
        let Some(block) = latest else { return };
        let message = "there is a thinking budget, and the open tool loop does not start with \
                       thinking; put the block back, or switch to adaptive thinking";
        block.at(|path| {
            let violation = match block.index {
                Some(_) => self.report.add("A-11", &path.key("type"), message),
                None => self.report.add("A-11", path, message),
            };
            violation.about([&block.tag]);
        });
    }

    pub(super) fn compactions(&mut self, groups: &[Group<'_, '_>]) {
        let mut seen = false;
        for block in groups.iter().flat_map(|group| group.of("compaction")) {
            // One without content is a compaction that failed, and does nothing.
            if member(block.value, "content").is_none() {
                continue;
            }
            // A signed one replaces the messages that it sums up; an unsigned one follows them.
            let signed = filled(block.value, "signature").is_some();
            let sealed = filled(block.value, "signature").and_then(|seal| {
                let issued = self.profile.issued.as_ref()?;
                Some(issued.sealed(&seal).cloned())
            });
            let changed = |key: &str| match &sealed {
                Some(Some(original)) => !same_member(block.value, &original.item.value(), key),
                Some(None) | None => false,
            };
            let second = std::mem::replace(&mut seen, true);
            let (message, code) = if second {
                ("a second compaction with content", "block_ambiguous")
            } else if block.index != Some(0) || (signed && block.message != 0) {
                ("the compaction is not the first block", "block_misplaced")
            } else if let Some(None) = sealed {
                let message = "the service did not sign this compaction";
                (message, "…signature_invalid")
            } else if changed("content") || changed("encrypted_content") {
                let message = "its content is not as it was signed";
                (message, "…content_mismatch")
            } else if changed("tool_changes") {
                let message = "`tool_changes` are not as they were signed";
                (message, "…tool_changes_mismatch")
            } else {
                continue;
            };
            let message = format!("{message}; keep the newest, first and unchanged");
            block.at(|path| {
                self.report
                    .add("A-14", path, message)
                    .about(["compaction"])
                    .with_vendor_text(format!("`error_code` `compaction_{code}`"));
            });
        }
    }
}
