//! Turns of the model: text, reasoning and calls.

use std::borrow::Cow;
use std::ops::Range;

use throughline_model::{Body, Content, Form, Message, Path, Role, Runner, occurrence_in};

use super::super::content_filter;
use super::super::format::CallSignatures;
use super::super::repair::RepairKind;
use super::{LastItem, PendingCall, Renderer, Stale};

impl Renderer {
    pub(super) fn model(
        &mut self,
        message: &Message,
        range: Range<usize>,
        at: usize,
    ) -> Result<(), Stale> {
        self.close()?;
        let sealed = std::mem::take(&mut self.sealed);
        let (mut prepared, kept) = self.prepared(message, range, at);
        // Only the newest turn's sealed reasoning may be sent there, and this is newer.
        let newer = self.sealed || (self.last != LastItem::Model && !prepared.contents.is_empty());
        if sealed && newer && self.only_newest_sealed() {
            return Err(Stale);
        }
        self.sealed |= sealed;
        if prepared.contents.is_empty() {
            return Ok(());
        }
        if prepared.role != Role::Assistant && !self.says_items(&prepared) && self.rules.model_role
        {
            self.said_by_model(prepared.to_mut(), at);
        }
        let mut waiting = Vec::new();
        for index in 0..prepared.contents.len() {
            let place = kept.get(index).copied().unwrap_or(index);
            let status = prepared.status.clone();
            let (found, changed) = self.called(&prepared.contents[index], at, place, status);
            if let Some(changed) = changed {
                prepared.to_mut().contents[index] = changed;
            }
            waiting.extend(found.map(|waiting| PendingCall {
                occurrence: occurrence_in(message, place),
                ..waiting
            }));
        }
        self.leave_chained(&mut prepared, &mut waiting, at);
        self.as_text = !waiting.is_empty() && self.wants_text(&prepared, at);
        if self.as_text || !self.strategy.keeps_calls() {
            let mine = |content: &Content| {
                content
                    .as_tool_call()
                    .is_some_and(|call| call.runner == Runner::Client)
            };
            prepared.to_mut().contents.retain(|content| !mine(content));
        }
        let calls = !waiting.is_empty() && !self.as_text && self.strategy.keeps_calls();
        if !prepared.contents.is_empty() {
            if self.last == LastItem::Nothing
                && self.rules.first_user
                && !opens_compacted(&prepared)
            {
                let detail = "the target must begin with the user";
                self.insert_user(RepairKind::LeadingUser, detail);
            } else if calls && self.last == LastItem::Model && self.calls_open_turn() {
                let detail = "calls must follow the user here";
                self.insert_user(RepairKind::BetweenModels, detail);
            }
            if let Some(signatures) = self.rules.signatures.filter(|_| calls) {
                self.sign(signatures, &mut prepared, at, &kept);
            }
            if let Some(merge) = self.rules.merge_message {
                merge(&mut prepared);
            }
            self.emit(&prepared, at, &kept, LastItem::Model);
        }
        self.waiting = waiting;
        Ok(())
    }

    /// Whether a message is all items of the target's own, which carry their own roles.
    fn says_items(&self, message: &Message) -> bool {
        let is_item = |content: &Content| {
            let form = content.vendor.as_ref().map(|vendor| &vendor.form);
            matches!(form, Some(Form::Item(_) | Form::Within))
        };
        let own = |content: &Content| {
            content_filter::is_native(content, &self.target) && is_item(content)
        };
        message.contents.iter().all(own)
    }

    /// Calls and thoughts are the model's, whatever the role of the message that they stand in.
    fn said_by_model(&mut self, message: &mut Message, at: usize) {
        let detail = format!(
            "what the model did stands in a message of {}",
            message.role.as_str()
        );
        let root = Path::Root.key("messages");
        self.repair(&root.index(at), RepairKind::Role, detail);
        message.role = Role::Assistant;
        for vendor in message
            .contents
            .iter_mut()
            .filter_map(|content| content.vendor.as_mut())
        {
            vendor.envelope = None;
        }
    }

    /// Whether calls may not stand in a turn of the model that began before them: two messages of
    /// the model are one to Anthropic, and with a thinking budget that must begin with a thought.
    fn calls_open_turn(&self) -> bool {
        self.rules.calls_after_user || self.target.has_thinking_budget()
    }

    /// With a thinking budget, a round whose message does not begin with thinking cannot be shown as
    /// calls. Models that decide by themselves how much to think take such rounds.
    fn wants_text(&mut self, message: &Message, at: usize) -> bool {
        let thinks = message
            .contents
            .first()
            .is_some_and(|first| matches!(first.body, Body::Reasoning(_)));
        let budget = self.target.has_thinking_budget() && self.enforces("A-11");
        let wants = budget && !thinks;
        if wants {
            let root = Path::Root.key("messages");
            let detail =
                "there is a thinking budget, and this round has no thinking of this vendor";
            self.repair(&root.index(at), RepairKind::TextGroup, detail);
        }
        wants
    }

    /// The first call of a step carries a signature.
    pub(super) fn sign(
        &mut self,
        signatures: CallSignatures,
        message: &mut Cow<'_, Message>,
        at: usize,
        kept: &[usize],
    ) {
        let first = message.contents.iter().position(|content| {
            content
                .as_tool_call()
                .is_some_and(|call| call.runner == Runner::Client)
        });
        let Some(first) = first else { return };
        for later in first + 1..message.contents.len() {
            let again = (signatures.unsign)(&message.contents[later], &message.contents[first]);
            if let Some(unsigned) = again {
                message.to_mut().contents[later] = unsigned;
            }
        }
        if let Some(signed) = (signatures.sign)(&message.contents[first]) {
            message.to_mut().contents[first] = signed;
            let root = Path::Root.key("messages");
            let path = root.index(at);
            let path = path.key("contents");
            let place = kept.get(first).copied().unwrap_or(first);
            let detail = "a call without a signature of this vendor";
            self.repair(&path.index(place), RepairKind::SignaturePlaceholder, detail);
        }
    }
}

/// Whether a message opens with the vendor's own summary of what was before, which comes first.
fn opens_compacted(message: &Message) -> bool {
    let first = message.contents.first().map(|content| &content.body);
    matches!(first, Some(Body::Opaque(opaque)) if opaque.tag == "compaction")
}
