//! Each message and each block by itself.

use throughline_model::Path;
use throughline_model::json::Value;

use super::blocks::{BLOCKS, FOREIGN, MESSAGE_KEYS, is_service_result, server_result};
use super::{Block, Checker, Role, unknown_key};
use crate::validate::object_schema::{KnownObject, fields, text};
use crate::validate::violation::Violation;

fn is_id(id: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !id.is_empty() && id.bytes().all(known)
}

fn is_service_id(id: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    id.strip_prefix("srvtoolu_")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(known))
}

impl Checker<'_> {
    /// One message by itself.
    pub(super) fn message<'v, 'a>(
        &mut self,
        index: usize,
        value: &'v Value<'a>,
        is_last: bool,
    ) -> Option<(Role, Vec<Block<'v, 'a>>)> {
        let root = Path::Root.key("messages");
        let path = root.index(index);
        if value.as_object().is_none() {
            let message = format!("a message must be an object, not {}", value.kind());
            self.report.add("S-A1", &path, message);
            return None;
        }
        for member in value.members() {
            let key = member.key.to_str();
            if !MESSAGE_KEYS.contains(&&*key) {
                unknown_key(&key, &path, self.report);
            }
        }
        let role = match text(value, "role").as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            other => {
                let message = "`role` must be `user`, `assistant` or, between them, `system`";
                self.report
                    .add("S-A2", &path.key("role"), message)
                    .about(other);
                return None;
            }
        };
        let content = path.key("content");
        let mut blocks = Vec::new();
        let empty = match value.get("content") {
            Some(found) if found.as_str().is_some() => {
                blocks.push(Block {
                    message: index,
                    index: None,
                    value: found,
                    tag: "text".to_owned(),
                });
                found.as_text().is_some_and(|text| text.is_empty())
            }
            Some(found) if found.as_array().is_some() => {
                let list = found.as_array().unwrap_or_default();
                for (place, block) in list.iter().enumerate() {
                    let tag = self.block(role, block, &content.index(place));
                    blocks.extend(tag.map(|tag| Block {
                        message: index,
                        index: Some(place),
                        value: block,
                        tag,
                    }));
                }
                self.texts(Some(found), &content);
                list.is_empty()
            }
            _ => {
                let message = "`content` must be a string or an array of blocks";
                self.report.add("S-A2", &content, message);
                false
            }
        };
        if empty && !(is_last && role == Role::Assistant) {
            let message = "the message is empty; leave it out";
            let vendor = format!(
                "messages.{index}: all messages must have non-empty content except for the \
                 optional final assistant message"
            );
            self.report
                .add("A-12", &path, message)
                .with_vendor_text(vendor);
        }
        if is_last && role == Role::Assistant {
            self.trailing_space(&blocks);
        }
        Some((role, blocks))
    }

    fn trailing_space(&mut self, blocks: &[Block<'_, '_>]) {
        let Some(last) = blocks.last().filter(|block| block.is("text")) else {
            return;
        };
        let words = match last.index {
            None => last.value.as_str(),
            Some(_) => last.value.get("text").and_then(Value::as_str),
        };
        if words.is_some_and(|words| words.ends_with(char::is_whitespace)) {
            let message = "the last text of the assistant must not end in white space; trim it";
            last.at(|path| {
                self.report.add("A-12", path, message).with_vendor_text(
                    "messages: final assistant content cannot end with trailing whitespace",
                );
            });
        }
    }

    /// Empty text blocks in a list of blocks, and in the results among them.
    pub(super) fn texts(&mut self, list: Option<&Value<'_>>, path: &Path<'_>) {
        let list = list.and_then(Value::as_array).unwrap_or_default();
        for (index, block) in list.iter().enumerate() {
            let path = path.index(index);
            let tag = text(block, "type").unwrap_or_default();
            if tag == "text" && block.get("text").is_some_and(|text| text.is_str("")) {
                let message = "the text is empty; leave the block out";
                self.report.add("A-12", &path, message);
            }
            if tag == "tool_result" {
                self.texts(block.get("content"), &path.key("content"));
            }
        }
    }

    /// One block by itself; gives its tag.
    fn block(&mut self, role: Role, block: &Value<'_>, path: &Path<'_>) -> Option<String> {
        if block.as_object().is_none() {
            let message = format!("a block must be an object, not {}", block.kind());
            self.report.add("S-A2", path, message);
            return None;
        }
        let tag = text(block, "type").unwrap_or_default();
        if tag.is_empty() || FOREIGN.contains(&tag.as_str()) {
            let message = "a block must have a `type` of this vendor";
            self.report
                .add("S-A4", &path.key("type"), message)
                .about([tag.as_str()]);
        }
        let Some(fields) = fields(BLOCKS, &tag) else {
            return Some(tag);
        };
        let known = KnownObject {
            rule: "S-A3",
            tag: &tag,
            object: block,
            path,
        };
        known.check(fields, self.report);
        for member in block.members() {
            let key = member.key.to_str();
            if key != "type" && !fields.iter().any(|field| field.key == key) {
                unknown_key(&key, path, self.report);
            }
        }
        self.block_ids(&tag, block, path);
        let calls = ["tool_use", "server_tool_use", "mcp_tool_use"];
        let only_assistant = calls.contains(&tag.as_str()) || is_service_result(&tag);
        if only_assistant && role != Role::Assistant {
            let message = format!("`{tag}` stands in assistant messages only");
            self.report.add("S-A5", path, message).about([tag.as_str()]);
        }
        Some(tag)
    }

    fn block_ids(&mut self, tag: &str, block: &Value<'_>, path: &Path<'_>) {
        let (key, service) = match tag {
            "tool_use" => ("id", false),
            "tool_result" => ("tool_use_id", false),
            "server_tool_use" => ("id", true),
            tag if is_service_result(tag) && tag != "mcp_tool_result" => ("tool_use_id", true),
            _ => return,
        };
        let Some(id) = text(block, key) else { return };
        let (good, pattern) = if service {
            (is_service_id(&id), "^srvtoolu_[a-zA-Z0-9_]+$")
        } else {
            (is_id(&id), "^[a-zA-Z0-9_-]+$")
        };
        let place = path.key(key);
        let issued = self.profile.issued.as_ref();
        if !good {
            let message = format!("the id must match `{pattern}`; change it on both ends");
            self.pattern(&place, message, (tag, key, pattern))
                .about([id]);
        } else if service && issued.is_some_and(|issued| !issued.has_id(&id)) {
            let message = "the service did not issue this id; send the tool's work as text";
            self.report
                .add("A-7", &place, message)
                .about([id])
                .without_vendor_text();
        }
        if tag != "server_tool_use" {
            return;
        }
        if let Some(name) = text(block, "name").filter(|name| server_result(name).is_none()) {
            let message = format!("`{name}` is not a server tool; send its work as text");
            self.report
                .add("A-7", &path.key("name"), message)
                .about([name])
                .without_vendor_text();
        }
    }

    /// The vendor names the block's tag in the place.
    fn pattern(
        &mut self,
        place: &Path<'_>,
        message: String,
        (tag, key, pattern): (&str, &str, &str),
    ) -> &mut Violation {
        let violation = self.report.add("A-7", place, message);
        let block = violation.path.strip_suffix(key).unwrap_or_default();
        let vendor = format!("{block}{tag}.{key}: String should match pattern '{pattern}'");
        violation.with_vendor_text(vendor)
    }
}
