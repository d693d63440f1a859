//! Ids, and what only the service that made it can read.

use std::collections::BTreeSet;

use throughline_model::Path;
use throughline_model::json::Value;

use super::items::Side;
use super::{Checker, Flavour, Item};
use crate::validate::issued::same_member;
use crate::validate::object_schema::{filled, member, short, text};

const LONGEST_CALL_ID: usize = 64;

impl Checker<'_> {
    pub(super) fn ids(&mut self, items: &[Item<'_, '_>]) {
        let input = Path::Root.key("input");
        let mut seen = BTreeSet::new();
        for item in items {
            let path = input.index(item.index);
            self.call_id(item, &path);
            let Some(id) = item.id() else { continue };
            // Its `id` is the id of the call, by the vendor's own word.
            if item.tag == "local_shell_call_output" {
                continue;
            }
            let place = path.key("id");
            let prefix = item.kind.and_then(|kind| kind.prefix).unwrap_or_default();
            let issued = self.profile.issued.as_ref();
            if !id.starts_with(prefix) {
                let tag = &item.tag;
                let message = format!(
                    "the `id` of `{tag}` must begin with `{prefix}`; leave out an id that the \
                     service did not issue"
                );
                let vendor = format!(
                    "Invalid '{place}': '{id}'. Expected an ID that begins with '{prefix}'."
                );
                self.report
                    .add("O-10", &place, message)
                    .about([id.as_str()])
                    .with_vendor_text(vendor);
            } else if issued.is_some_and(|issued| !issued.has_id(&id)) {
                let message = "the service did not issue this `id`; leave it out";
                self.report
                    .add("O-10", &place, message)
                    .about([id.as_str()])
                    .without_vendor_text();
            }
            if !seen.insert(id.clone()) {
                let message = "an earlier item has the same `id`; send the item once";
                self.report.add("O-4", &place, message).about([id]);
            }
        }
    }

    fn call_id(&mut self, item: &Item<'_, '_>, path: &Path<'_>) {
        let Some(call) = text(item.value, "call_id") else {
            return;
        };
        let length = call.chars().count();
        if (1..=LONGEST_CALL_ID).contains(&length) {
            return;
        }
        let place = path.key("call_id");
        let message = format!(
            "`call_id` has {length} characters and must have 1 to {LONGEST_CALL_ID}; change call \
             and output the same way"
        );
        let vendor = match length {
            0 => String::new(),
            _ => format!(
                "Invalid '{place}': string too long. Expected a string with maximum length \
                 {LONGEST_CALL_ID}, but got a string with length {length} instead."
            ),
        };
        self.report
            .add("O-9", &place, message)
            .about([call])
            .with_vendor_text(vendor);
    }

    /// What only the service that made it can read, and what it wants back as it was.
    pub(super) fn seals(&mut self, items: &[Item<'_, '_>]) {
        let input = Path::Root.key("input");
        for item in items {
            let path = input.index(item.index);
            let seal = filled(item.value, "encrypted_content");
            if let Some(seal) = &seal {
                self.seal(seal, &path.key("encrypted_content"));
            }
            if item.tag == "agent_message" {
                let content = path.key("content");
                let parts = item.value.get("content").and_then(Value::as_array);
                for (place, part) in parts.unwrap_or_default().iter().enumerate() {
                    if let Some(seal) = filled(part, "encrypted_content") {
                        self.seal(&seal, &content.index(place).key("encrypted_content"));
                    }
                }
            }
            if !self.stored {
                let content = member(item.value, "content").is_some();
                let lookup = match item.tag.as_str() {
                    "item_reference" => true,
                    "reasoning" => seal.is_none() && !content,
                    _ => false,
                };
                if let (true, Some(id)) = (lookup, item.id()) {
                    let message = "nothing is stored, so the id cannot be looked up; send the \
                                   item in full (reasoning with `encrypted_content`) or leave it out";
                    self.report.add("O-7", &path, message).about([id]);
                }
            }
            self.unchanged(item, &path);
        }
    }

    fn seal(&mut self, seal: &str, path: &Path<'_>) {
        let issued = self.profile.issued.as_ref();
        let foreign = issued.is_some_and(|issued| issued.sealed(seal).is_none());
        if foreign || !self.profile.same_account {
            let message = "sealed by another account or service; leave the item out";
            self.report.add("O-8", path, message).about([short(seal)]);
        }
    }

    fn unchanged(&mut self, item: &Item<'_, '_>, path: &Path<'_>) {
        let Some(original) = self
            .profile
            .issued
            .as_ref()
            .and_then(|issued| issued.item(&item.tag, item.value))
        else {
            return;
        };
        let original = original.value();
        let compaction = (item.tag == "compaction").then_some("encrypted_content");
        let keys = ["fingerprint", "tools", "caller", "namespace"];
        for key in keys.into_iter().chain(compaction) {
            if !same_member(item.value, &original, key) {
                let message = format!("`{key}` is not as the service sent it; replay it unchanged");
                self.report
                    .add("O-15", &path.key(key), message)
                    .about(item.id().or_else(|| item.call_id()));
            }
        }
    }

    /// Reasoning and its neighbours.
    pub(super) fn order(&mut self, items: &[Item<'_, '_>]) {
        let input = Path::Root.key("input");
        let mut reasoned = BTreeSet::new();
        for (place, item) in items.iter().enumerate() {
            let path = input.index(item.index);
            let Some(id) = item.id() else { continue };
            let before = self
                .profile
                .issued
                .as_ref()
                .and_then(|issued| issued.led_by(&id));
            if let Some(reasoning) = before.filter(|reasoning| !reasoned.contains(*reasoning)) {
                let message = format!(
                    "the reasoning `{reasoning}` that led to this item is missing; replay both, \
                     or leave out the item's `id` too"
                );
                let vendor = format!(
                    "Item '{id}' of type '{}' was provided without its required 'reasoning' item: \
                     '{reasoning}'.",
                    item.tag
                );
                self.report
                    .add("O-6", &path, message)
                    .about([id.as_str(), reasoning])
                    .with_vendor_text(vendor);
            }
            if item.tag == "reasoning" {
                let follows = items.get(place + 1).map(Item::side);
                if follows != Some(Side::Model) {
                    let message = "the item that this reasoning led to does not follow; replay \
                                   both, or leave out the reasoning";
                    self.report.add("O-5", &path, message).about([id.as_str()]);
                }
            }
            if ["reasoning", "item_reference"].contains(&item.tag.as_str()) {
                reasoned.insert(id);
            }
        }
        if self.flavour == Flavour::Foundry {
            self.older_seals(items);
        }
    }

    fn older_seals(&mut self, items: &[Item<'_, '_>]) {
        let ours = |item: &Item<'_, '_>| item.side() == Side::Client;
        let end = items.iter().rposition(|item| !ours(item)).unwrap_or(0);
        let start = items[..end.min(items.len())].iter().rposition(ours);
        let input = Path::Root.key("input");
        for item in &items[..start.unwrap_or(0)] {
            if item.tag == "reasoning" && filled(item.value, "encrypted_content").is_some() {
                let message = "only the newest turn's sealed reasoning may go back; leave this out";
                self.report
                    .add("F-3", &input.index(item.index), message)
                    .about(item.id());
            }
        }
    }
}
