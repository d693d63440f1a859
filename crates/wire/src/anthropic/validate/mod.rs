//! Anthropic Messages. Neighbours of one role count as one message, as the service joins them.

mod blocks;
mod message;
mod sealed;
mod tools;

use throughline_model::Path;
use throughline_model::json::Value;

use blocks::{BODY_KEYS, is_service_result};

pub(crate) use blocks::takes_member;

use crate::validate::object_schema::{member, text};
use crate::validate::profile::{Chain, Profile};
use crate::validate::report::Report;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
    System,
}

/// One block, or a message's bare text.
struct Block<'v, 'a> {
    message: usize,
    /// Nothing for bare text.
    index: Option<usize>,
    value: &'v Value<'a>,
    tag: String,
}

impl Block<'_, '_> {
    fn at<R>(&self, then: impl FnOnce(&Path<'_>) -> R) -> R {
        let messages = Path::Root.key("messages");
        let message = messages.index(self.message);
        let content = message.key("content");
        match self.index {
            None => then(&content),
            Some(index) => then(&content.index(index)),
        }
    }

    fn is(&self, tag: &str) -> bool {
        self.tag == tag
    }

    fn is_thinking(&self) -> bool {
        self.is("thinking") || self.is("redacted_thinking")
    }

    fn is_service_call(&self) -> bool {
        self.is("server_tool_use") || self.is("mcp_tool_use")
    }

    fn id(&self) -> Option<String> {
        text(self.value, "id")
    }

    /// The call that a result answers.
    fn of(&self) -> Option<String> {
        text(self.value, "tool_use_id")
    }

    /// The code execution that made a call, if the model did not make it itself.
    fn maker(&self) -> Option<String> {
        let caller = member(self.value, "caller")?;
        let made = text(caller, "type")?.starts_with("code_execution");
        made.then(|| text(caller, "tool_id").unwrap_or_default())
    }
}

/// Neighbouring messages of one role.
struct Group<'v, 'a> {
    role: Role,
    /// The first message.
    message: usize,
    blocks: Vec<Block<'v, 'a>>,
}

impl<'v, 'a> Group<'v, 'a> {
    fn of(&self, tag: &'static str) -> impl Iterator<Item = &Block<'v, 'a>> {
        self.blocks.iter().filter(move |block| block.is(tag))
    }

    fn has(&self, tag: &'static str) -> bool {
        self.of(tag).next().is_some()
    }

    fn starts_with(&self, tag: &str) -> bool {
        self.blocks.first().is_some_and(|block| block.is(tag))
    }

    fn ends_in_service_tool(&self) -> bool {
        let tool = |block: &Block<'_, '_>| block.is_service_call() || is_service_result(&block.tag);
        self.blocks.last().is_some_and(tool)
    }

    fn ends_in_service_result(&self) -> bool {
        let result = |block: &Block<'_, '_>| is_service_result(&block.tag);
        self.blocks.last().is_some_and(result)
    }
}

struct Checker<'c> {
    profile: &'c Profile,
    /// Whether thinking has a budget of tokens.
    thinking_budget: bool,
    /// Whether the service drops thinking that does not fit instead of refusing it.
    drops: bool,
    chain: Chain<'c>,
    report: &'c mut Report,
}

pub(super) fn check(request: &Value<'_>, profile: &Profile, report: &mut Report) {
    let root = Path::Root.key("messages");
    let is_body = request.as_object().is_some();
    let given = match request.as_array() {
        Some(list) => Some(list),
        None => request.get("messages").and_then(Value::as_array),
    };
    if is_body {
        for member in request.members() {
            let key = member.key.to_str();
            if !BODY_KEYS.contains(&&*key) {
                unknown_key(&key, &Path::Root, report);
            }
        }
    }
    let Some(list) = given else {
        report.add("S-A1", &root, "`messages` must be an array of messages");
        return;
    };
    let says = |path: &[&str], word: &str| request.at(path).is_some_and(|found| found.is_str(word));
    let continues = says(&["thread", "type"], "continue");
    let mut checker = Checker {
        profile,
        thinking_budget: match request.at(&["thinking", "type"]) {
            Some(mode) => mode.is_str("enabled"),
            None => profile.thinking && !profile.generation.thinking_levels,
        },
        drops: says(&["prefix_mismatch_behavior"], "drop_block")
            || says(
                &["thinking", "block_binding", "prefix_mismatch_behavior"],
                "drop_block",
            ),
        chain: Chain::new(is_body.then_some(continues), profile),
        report,
    };
    let system = Path::Root.key("system");
    checker.texts(request.get("system"), &system);
    let mut groups: Vec<Group<'_, '_>> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let Some((role, blocks)) = checker.message(index, value, index + 1 == list.len()) else {
            continue;
        };
        match groups.last_mut().filter(|group| group.role == role) {
            Some(group) => group.blocks.extend(blocks),
            None => groups.push(Group {
                role,
                message: index,
                blocks,
            }),
        }
    }
    checker.client_tools(&groups);
    checker.service_tools(&groups);
    if is_body {
        checker.container(request, &groups);
    }
    checker.thoughts(&groups);
    checker.loop_start(&groups);
    checker.compactions(&groups);
    checker.ends(&groups);
    checker.system_messages(&groups);
}

fn unknown_key(key: &str, path: &Path<'_>, report: &mut Report) {
    report
        .add(
            "A-19",
            &path.key(key),
            format!("`{key}` is not known here; leave it out"),
        )
        .about([key]);
}

impl Checker<'_> {
    fn refuse(&mut self, rule: &'static str, block: &Block<'_, '_>, (item, message): (&str, &str)) {
        block.at(|path| {
            self.report.add(rule, path, message).about([item]);
        });
    }

    /// How a history begins and ends.
    fn ends(&mut self, groups: &[Group<'_, '_>]) {
        let root = Path::Root.key("messages");
        if let Some(first) = groups.first().filter(|first| first.role == Role::Assistant) {
            let summary = first.starts_with("compaction");
            if !summary && !self.chain.is_some() {
                let message = "the first message must be the user's; add one before";
                self.report
                    .add("A-18", &root.index(first.message).key("role"), message)
                    .about(["assistant"]);
            }
        }
        let Some(last) = groups.last().filter(|last| last.role == Role::Assistant) else {
            return;
        };
        let unanswered = last.has("tool_use");
        if !self.profile.generation.prefill && !last.ends_in_service_tool() && !unanswered {
            let at = last
                .blocks
                .last()
                .map_or(last.message, |block| block.message);
            let message = "the model refuses to continue an assistant message; end with the user's";
            self.report
                .add("A-13", &root.index(at), message)
                .about(["assistant"]);
        }
    }

    fn system_messages(&mut self, groups: &[Group<'_, '_>]) {
        let root = Path::Root.key("messages");
        for (place, group) in groups.iter().enumerate() {
            if group.role != Role::System {
                continue;
            }
            let before = place.checked_sub(1).map(|place| &groups[place]);
            let follows = before.is_some_and(|before| match before.role {
                Role::User => true,
                Role::Assistant => before.ends_in_service_result(),
                Role::System => false,
            });
            let next = groups.get(place + 1);
            let at = group.message;
            let (message, vendor) = if !self.profile.generation.system_messages {
                let message = "the model takes no system messages; use the top-level `system`";
                (
                    message,
                    "role 'system' is not supported on this model".to_owned(),
                )
            } else if before.is_none() && !self.chain.is_some() {
                let vendor = format!(
                    "messages.{at}: use the top-level 'system' parameter for the initial system \
                     prompt…"
                );
                (
                    "a history cannot start with it; use the top-level `system`",
                    vendor,
                )
            } else if before.is_some() && !follows {
                let vendor = "role 'system' must follow a 'user' message or an 'assistant' \
                              message ending in a server tool result";
                (
                    "it must follow a user message or a server result; move it",
                    vendor.to_owned(),
                )
            } else if next.is_some_and(|next| next.role != Role::Assistant) {
                let vendor = "role 'system' must precede an 'assistant' message or end the array";
                (
                    "it must precede an assistant message or be last; move it",
                    vendor.to_owned(),
                )
            } else {
                continue;
            };
            self.report
                .add("A-15", &root.index(at), message)
                .about(["system"])
                .with_vendor_text(vendor);
        }
    }
}
