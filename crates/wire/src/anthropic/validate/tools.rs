//! Calls and their results.

use std::collections::{BTreeMap, BTreeSet};

use throughline_model::Path;
use throughline_model::json::Value;

use super::blocks::{is_service_result, server_result};
use super::{Block, Checker, Group, Role};
use crate::validate::object_schema::{filled, member, text};

/// The tag of the result that a call of the service gets; empty if the name is not known.
fn result_tag(block: &Block<'_, '_>) -> &'static str {
    if block.is("mcp_tool_use") {
        return "mcp_tool_result";
    }
    let name = text(block.value, "name").unwrap_or_default();
    server_result(&name).unwrap_or_default()
}

fn call_tag(result: &str) -> &'static str {
    if result == "mcp_tool_result" {
        "mcp_tool_use"
    } else {
        "server_tool_use"
    }
}

impl Checker<'_> {
    /// `tool_use` and `tool_result`.
    pub(super) fn client_tools(&mut self, groups: &[Group<'_, '_>]) {
        let mut called = BTreeSet::new();
        let mut answered = BTreeSet::new();
        for (place, group) in groups.iter().enumerate() {
            for call in group.of("tool_use") {
                let Some(id) = call.id() else { continue };
                if !called.insert(id.clone()) {
                    let message = "an earlier call has the same id; give each call its own";
                    self.refuse("A-4", call, (&id, message));
                }
            }
            let before = place.checked_sub(1).map(|place| &groups[place]);
            let before: Option<BTreeSet<String>> =
                before.map(|before| before.of("tool_use").filter_map(Block::id).collect());
            let mut first = true;
            for block in &group.blocks {
                if !block.is("tool_result") {
                    first = false;
                    continue;
                }
                let Some(id) = block.of() else { continue };
                self.result(block, &id, (group, first));
                if !answered.insert(id.clone()) {
                    let message = "the call has its result already; send one";
                    self.refuse("A-3", block, (&id, message));
                    continue;
                }
                let known = match &before {
                    Some(before) => before.contains(&id),
                    None => self.chain.may_hold(&id),
                };
                if !known && group.role == Role::User {
                    let message = "the message before made no such call; put the result right \
                                   after its call, or send it as text";
                    self.refuse("A-2", block, (&id, message));
                }
            }
            if group.role == Role::Assistant {
                self.unanswered(group, groups.get(place + 1));
            }
        }
        self.unanswered_behind(groups.first());
    }

    /// Where a result stands.
    fn result(&mut self, block: &Block<'_, '_>, id: &str, (group, first): (&Group<'_, '_>, bool)) {
        let message = if group.role != Role::User {
            "`tool_result` stands in user messages only"
        } else if !first {
            "results stand first in their message; move them before everything else"
        } else {
            return;
        };
        block.at(|path| {
            let violation = self.report.add("A-8", path, message).about([id]);
            if group.role != Role::User {
                let at = block.message;
                violation.with_vendor_text(format!(
                    "messages.{at}: `tool_result` blocks can only be in `user` messages"
                ));
            }
        });
    }

    fn unanswered(&mut self, group: &Group<'_, '_>, next: Option<&Group<'_, '_>>) {
        let results: BTreeSet<String> = next
            .filter(|next| next.role == Role::User)
            .into_iter()
            .flat_map(|next| next.of("tool_result").filter_map(Block::of))
            .collect();
        let open = |call: &&Block<'_, '_>| call.id().is_some_and(|id| !results.contains(&id));
        let calls: Vec<&Block<'_, '_>> = group.of("tool_use").filter(open).collect();
        let Some(first) = calls.first() else { return };
        let root = Path::Root.key("messages");
        let message = "calls are not answered in the next message; put a result for each there";
        self.report
            .add("A-1", &root.index(first.message), message)
            .about(calls.iter().filter_map(|call| call.id()));
    }

    fn unanswered_behind(&mut self, first: Option<&Group<'_, '_>>) {
        let results: BTreeSet<String> = first
            .into_iter()
            .flat_map(|group| group.of("tool_result").filter_map(Block::of))
            .collect();
        let open: Vec<&str> = self
            .chain
            .open()
            .filter(|id| !results.contains(*id))
            .collect();
        if !open.is_empty() {
            let message = "calls of the message before have no result; answer them first";
            let root = Path::Root.key("messages");
            self.report.add("A-1", &root.index(0), message).about(open);
        }
    }

    /// `server_tool_use`, `mcp_tool_use` and their results.
    pub(super) fn service_tools(&mut self, groups: &[Group<'_, '_>]) {
        let mut calls: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut answered: BTreeSet<String> = BTreeSet::new();
        for block in groups.iter().flat_map(|group| &group.blocks) {
            if block.is_service_call() {
                let tag = result_tag(block);
                if let Some(id) = block.id() {
                    calls.entry(id).or_default().push(tag);
                }
            } else if is_service_result(&block.tag) {
                let Some(id) = block.of() else { continue };
                let tags = calls.get(&id).map_or(&[][..], Vec::as_slice);
                let fits = tags.iter().any(|tag| tag.is_empty() || *tag == block.tag);
                if !fits && !self.chain.is_some() {
                    let (tag, call) = (&block.tag, call_tag(&block.tag));
                    let message = format!("no `{call}` with this id comes before; leave both out");
                    block.at(|path| {
                        let violation = self.report.add("A-5", path, message).about([&id]);
                        let at = &violation.path;
                        let vendor = format!(
                            "{at}: unexpected `tool_use_id` found in `{tag}` blocks: {id}. Each \
                             `{tag}` block must have a corresponding `{call}` block before it."
                        );
                        violation.with_vendor_text(vendor);
                    });
                }
                answered.insert(id);
            }
        }
        let last = groups
            .iter()
            .rposition(|group| group.role == Role::Assistant);
        for (place, group) in groups.iter().enumerate() {
            // A turn that was paused continues where it stopped, maybe after results of the client.
            let resumed = Some(place) == last
                && groups
                    .get(place + 1)
                    .is_none_or(|next| group.has("tool_use") && next.starts_with("tool_result"));
            for block in group.blocks.iter().filter(|block| block.is_service_call()) {
                let Some(id) = block.id() else { continue };
                if resumed || answered.contains(&id) {
                    continue;
                }
                let root = Path::Root.key("messages");
                let (name, tag) = (filled(block.value, "name"), result_tag(block));
                let name = name.unwrap_or_default();
                let vendor = format!(
                    "messages.{}: `{name}` tool use with id `{id}` was found without a \
                     corresponding `{tag}` block",
                    block.message
                );
                let message = "the call has no result and its turn is not resumed; leave it out";
                self.report
                    .add("A-6", &root.index(block.message), message)
                    .about([id])
                    .with_vendor_text(vendor);
            }
        }
    }

    /// Calls that a program made wait in its container.
    pub(super) fn container(&mut self, request: &Value<'_>, groups: &[Group<'_, '_>]) {
        if member(request, "container").is_some() {
            return;
        }
        let blocks = groups.iter().flat_map(|group| &group.blocks);
        let done: BTreeSet<String> = blocks
            .filter(|block| is_service_result(&block.tag))
            .filter_map(Block::of)
            .collect();
        let last = groups.iter().rfind(|group| group.role == Role::Assistant);
        let pending: Vec<String> = last
            .into_iter()
            .flat_map(|group| group.of("tool_use"))
            .filter(|call| call.maker().is_some_and(|maker| !done.contains(&maker)))
            .filter_map(Block::id)
            .collect();
        if !pending.is_empty() {
            let message = "a program waits for these results; send the `container` of its response";
            self.report
                .add("A-16", &Path::Root.key("container"), message)
                .about(pending);
        }
    }
}
