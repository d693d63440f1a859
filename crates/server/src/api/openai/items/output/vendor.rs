//! Items of a vendor who speaks this format, as they came.

use throughline_model::json::{ObjectWriter, RawJson, Value, push_string};
use throughline_model::{Content, Family, Form, Message, Role, ToolCall, Wire};

use super::call::json_text;
use super::{Dialect, ItemStatus, original_items};

/// An item as its vendor made it, but for its id.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VendorItem {
    pub(crate) tag: String,
    pub(crate) json: RawJson,
}

/// The format of items that this server made itself, in the words of its API.
pub(crate) const OWN_WIRE: &str = "throughline";

/// The types that the other specification has.
const OPEN: [&str; 4] = [
    "message",
    "function_call",
    "function_call_output",
    "compaction",
];

impl VendorItem {
    /// The item of a content, with the result that stood in it.
    pub(crate) fn of(content: &Content, next: Option<&Content>, dialect: Dialect) -> Option<Self> {
        let vendor = content.vendor.as_ref()?;
        let Form::Item(item) = &vendor.form else {
            return None;
        };
        if matches!(&vendor.wire, Wire::Other(name) if **name == *OWN_WIRE) {
            let tag = item.value().get("type")?.as_str()?.into_owned();
            return Some(Self {
                tag,
                json: item.clone(),
            });
        }
        if vendor.wire != Wire::OpenAiResponses {
            return None;
        }
        let within = next.filter(|next| {
            let vendor = next.vendor.as_ref();
            vendor.is_some_and(|vendor| vendor.form == Form::Within)
        });
        let contents: Vec<Content> = [Some(content), within]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let message = Message::new(Role::Assistant, contents);
        let [json] = <[RawJson; 1]>::try_from(original_items(message)).ok()?;
        let tag: String = json.value().get("type")?.as_str()?.into_owned();
        let known = dialect == Dialect::OpenAi || OPEN.contains(&tag.as_str());
        known.then_some(Self { tag, json })
    }

    /// The item for a call of a tool that another vendor ran, where this API has a word for it.
    pub(crate) fn of_other_vendor(call: &ToolCall, dialect: Dialect) -> Option<Self> {
        if dialect == Dialect::OpenResponses {
            return None;
        }
        let arguments = RawJson::new(&json_text(&call.arguments)).ok()?;
        let arguments = arguments.value();
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let (tag, json) = if call.family == Family::WEB_SEARCH || call.name == "web_search" {
            let json = RawJson::object(|object| {
                object
                    .str("type", "web_search_call")
                    .str("status", "completed");
                let mut action = ObjectWriter::new(object.key("action"));
                action.str("type", "search");
                action.str("query", &text("query").unwrap_or_default());
                action.end();
            });
            ("web_search_call", json)
        } else if call.family == Family::CODE_EXECUTION || call.name == "code_execution" {
            let json = RawJson::object(|object| {
                object
                    .str("type", "code_interpreter_call")
                    .str("status", "completed")
                    .str("container_id", "")
                    .str("code", &text("code").unwrap_or_default())
                    .raw("outputs", "null");
            });
            ("code_interpreter_call", json)
        } else {
            return None;
        };
        Some(Self {
            tag: tag.to_owned(),
            json,
        })
    }

    /// The item under our id.
    pub(crate) fn item(&self, id: &str, state: ItemStatus) -> String {
        let value = self.json.value();
        let mut name = String::new();
        push_string(&mut name, id);
        let status = format!("\"{}\"", state.of(&self.tag));
        let mut edits: Vec<(&Value<'_>, &str)> = Vec::new();
        if let Some(at) = value.get("id") {
            edits.push((at, &name));
        }
        if let (Some(at), true) = (value.get("status"), state != ItemStatus::Completed) {
            edits.push((at, &status));
        }
        let edited = RawJson::of_with(&value, &edits);
        if value.get("id").is_some() {
            return edited.get().to_owned();
        }
        RawJson::object(|object| {
            object.str("id", id).members_of(edited.get());
        })
        .get()
        .to_owned()
    }

    /// The item when it begins: without what comes in pieces.
    pub(crate) fn in_progress(&self, id: &str) -> String {
        let Ok(whole) = RawJson::new(&self.item(id, ItemStatus::InProgress)) else {
            return self.item(id, ItemStatus::InProgress);
        };
        let value = whole.value();
        let key = match self.tag.as_str() {
            "function_call" | "mcp_call" => "arguments",
            "custom_tool_call" => "input",
            "code_interpreter_call" => "code",
            _ => return whole.get().to_owned(),
        };
        match value.get(key).filter(|text| text.as_text().is_some()) {
            Some(text) => RawJson::of_with(&value, &[(text, "\"\"")]).get().to_owned(),
            None => whole.get().to_owned(),
        }
    }

    /// A string member.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let value = self.json.value();
        value.get(key)?.as_str().map(Into::into)
    }

    /// Whether it ended in an error.
    pub(crate) fn failed(&self) -> bool {
        let value = self.json.value();
        let failed = value
            .get("status")
            .is_some_and(|status| status.is_str("failed"));
        failed || value.get("error").is_some_and(|error| !error.is_null())
    }
}
