//! Input items, in order, as messages.
//!
//! Items are read by the codec of the vendor whose format this is, so that storing and listing them
//! loses nothing. What messages cannot express stands apart: references to items that we keep,
//! and answers to questions of ours.

mod envelopes;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use throughline_model::json::{Node, RawJson, Value};
use throughline_model::{Message, Path};
use throughline_wire::openai_responses::CODEC;
use throughline_wire::{DecodeError, Problem};

use super::compaction_token::{self, OpenedToken};
use super::read;
use crate::ApiError;

/// The type of the item that asks for a compacted conversation.
const TRIGGER: &str = "compaction_trigger";

/// One item as a client sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputItem {
    /// Where it stands in the input.
    pub index: usize,
    /// The id that the client gave it, or took from us.
    pub id: Option<String>,
    /// Its type; `message` where none was needed.
    pub tag: String,
    /// The item.
    pub json: RawJson,
}

/// What some items mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputPart {
    /// Messages, those of neighbouring items together.
    Messages(Vec<Message>),
    /// An item that we keep.
    Reference {
        /// Its id.
        id: String,
        /// Where the reference stands in the input.
        index: usize,
    },
    /// A compacted conversation that a server of ours sealed. The seal is checked when it is used.
    CompactionToken {
        /// Its id, if the client has one for it.
        id: Option<String>,
        /// What it is.
        token: Box<OpenedToken>,
        /// Where it stands in the input.
        index: usize,
    },
    /// The answer to a question whether a tool may run.
    Approval {
        /// The id of the question.
        request: String,
        /// Yes or no.
        approve: bool,
        /// Why.
        reason: Option<String>,
    },
}

/// The input of a request: its items, and what they mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputItems {
    items: Vec<InputItem>,
    parts: Vec<InputPart>,
}

impl InputItems {
    /// The input of a body.
    pub(crate) fn of(body: &Value<'_>) -> Result<Self, ApiError> {
        let Some(input) = read::member(body, "input") else {
            return Ok(Self::default());
        };
        let path = Path::Root.key("input");
        if let Some(text) = input.as_str() {
            read::check_length(&path, &text, read::LONGEST_TEXT)?;
            return Ok(match text.is_empty() {
                true => Self::default(),
                false => Self::user_text(&text),
            });
        }
        let Some(values) = input.as_array() else {
            return Err(read::wrong_type(
                &path,
                "a string or an array of items",
                input,
            ));
        };
        let mut items: Vec<InputItem> = Vec::with_capacity(values.len());
        let mut known: HashMap<String, usize> = HashMap::new();
        for (index, value) in values.iter().enumerate() {
            let item = item(value, index, &path.index(index))?;
            if let Some(id) = &item.id {
                if let Some(earlier) = known.get(id).and_then(|at| values.get(*at)) {
                    if is_identical(earlier, value) {
                        continue;
                    }
                    return Err(duplicate_item(id));
                }
                known.insert(id.clone(), index);
            }
            items.push(item);
        }
        let all: Vec<&InputItem> = items.iter().collect();
        let parts = parts(&all)?;
        Ok(Self { items, parts })
    }

    /// A text from the user.
    fn user_text(text: &str) -> Self {
        let json = RawJson::object(|object| {
            object
                .str("type", "message")
                .str("role", "user")
                .str("content", text);
        });
        Self {
            items: vec![InputItem {
                index: 0,
                id: None,
                tag: "message".to_owned(),
                json,
            }],
            parts: vec![InputPart::Messages(vec![Message::user(text)])],
        }
    }

    /// The items, each once.
    pub fn items(&self) -> &[InputItem] {
        &self.items
    }

    /// What they mean, in order.
    pub fn parts(&self) -> &[InputPart] {
        &self.parts
    }

    /// Take out the item that asks for a compacted conversation, if there is one. It must be the last.
    pub fn take_trigger(&mut self) -> Result<bool, ApiError> {
        let is_trigger = |item: &InputItem| item.tag == TRIGGER;
        let Some(place) = self.items.iter().position(is_trigger) else {
            return Ok(false);
        };
        if place + 1 < self.items.len() {
            return Err(ApiError::invalid(
                "A 'compaction_trigger' must be the last item of the input.",
            )
            .code("invalid_value")
            .param(format!("input[{}]", self.items[place].index)));
        }
        self.items.truncate(place);
        let left: Vec<&InputItem> = self.items.iter().collect();
        self.parts = parts(&left)?;
        Ok(true)
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// The error for an item that comes twice and differs, be it within one input or because the history
/// has it already.
pub fn duplicate_item(id: &str) -> ApiError {
    let id: String = id.chars().take(128).collect();
    ApiError::invalid(format!(
        "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
    ))
    .param("input")
}

/// Whether two values say the same, whatever the order of members.
fn is_identical(one: &Value<'_>, two: &Value<'_>) -> bool {
    match (one.node(), two.node()) {
        (Node::Null, Node::Null) => true,
        (Node::Bool(one), Node::Bool(two)) => one == two,
        (Node::Number, Node::Number) => one.raw() == two.raw(),
        (Node::String(_), Node::String(_)) => one.as_str() == two.as_str(),
        (Node::Array(one), Node::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| is_identical(one, two))
        }
        (Node::Object(members), Node::Object(others)) => {
            let has = |object: &Value<'_>, key: &str, value: &Value<'_>| {
                object
                    .get(key)
                    .is_some_and(|found| is_identical(found, value))
            };
            members.len() == others.len()
                && members
                    .iter()
                    .all(|member| has(two, &member.key.to_str(), &member.value))
        }
        _ => false,
    }
}

fn item(value: &Value<'_>, index: usize, path: &Path<'_>) -> Result<InputItem, ApiError> {
    if value.as_object().is_none() {
        return Err(read::wrong_type(path, "an object", value));
    }
    let tag = read::text(value, "type", path)?;
    let tag = match tag {
        Some(tag) => tag.into_owned(),
        None if read::member(value, "role").is_some() => "message".to_owned(),
        None if value.get("id").is_some() => "item_reference".to_owned(),
        None => return Err(read::missing(&path.key("type"))),
    };
    let id = read::text(value, "id", path)?.filter(|id| !id.is_empty());
    match tag.as_str() {
        "message" => {
            let roles = ["assistant", "system", "developer", "user"];
            if read::one_of(value, "role", &roles, path)?.is_none() {
                return Err(read::missing(&path.key("role")));
            }
            if value.get("content").is_none() {
                return Err(read::missing(&path.key("content")));
            }
        }
        "item_reference" if id.is_none() => return Err(read::missing(&path.key("id"))),
        "function_call_output" | "custom_tool_call_output"
            if read::member(value, "output").is_none() =>
        {
            return Err(read::missing(&path.key("output")));
        }
        "compaction" => {
            let sealed = read::required(value, "encrypted_content", path)?;
            read::check_length(
                &path.key("encrypted_content"),
                &sealed,
                compaction_token::MAX_LENGTH,
            )?;
        }
        "mcp_approval_response" => {
            read::required(value, "approval_request_id", path)?;
            if read::flag(value, "approve", path)?.is_none() {
                return Err(read::missing(&path.key("approve")));
            }
            read::text(value, "reason", path)?;
        }
        _ => {}
    }
    if value.raw().len() > read::LONGEST_TEXT {
        check_lengths(value, path)?;
    }
    Ok(InputItem {
        index,
        id: id.map(Into::into),
        tag,
        json: RawJson::of(value),
    })
}

/// Refuse texts that are too long, anywhere in an item.
fn check_lengths(value: &Value<'_>, path: &Path<'_>) -> Result<(), ApiError> {
    match value.node() {
        Node::String(_) => {
            let text = value.as_str().unwrap_or_default();
            read::check_length(path, &text, read::LONGEST_TEXT)
        }
        Node::Array(values) => {
            let mut places = values.iter().enumerate();
            places.try_for_each(|(index, value)| check_lengths(value, &path.index(index)))
        }
        Node::Object(members) => {
            // Pictures and files are bounded by the body alone.
            let long = [
                "image_url",
                "file_data",
                "encrypted_content",
                "data",
                "result",
            ];
            members.iter().try_for_each(|member| {
                let key = member.key.to_str();
                match long.contains(&&*key) {
                    true => Ok(()),
                    false => check_lengths(&member.value, &path.key(&key)),
                }
            })
        }
        Node::Null | Node::Bool(_) | Node::Number => Ok(()),
    }
}

/// What items mean.
pub fn parts(items: &[&InputItem]) -> Result<Vec<InputPart>, ApiError> {
    let mut parts = Vec::new();
    let mut plain: Vec<&InputItem> = Vec::new();
    for item in items {
        let apart = match item.tag.as_str() {
            "item_reference" => item.id.clone().map(|id| InputPart::Reference {
                id,
                index: item.index,
            }),
            "mcp_approval_response" => approval(item),
            "compaction" => compaction_token_of(item)?,
            _ => None,
        };
        match apart {
            Some(part) => {
                flush_messages(&mut parts, &mut plain)?;
                parts.push(part);
            }
            None => plain.push(item),
        }
    }
    flush_messages(&mut parts, &mut plain)?;
    Ok(parts)
}

/// What one item says by itself; nothing if it is no message.
pub fn messages_of(item: &InputItem) -> Result<Vec<Message>, ApiError> {
    let mut messages = Vec::new();
    for part in parts(&[item])? {
        if let InputPart::Messages(found) = part {
            messages.extend(found);
        }
    }
    Ok(messages)
}

/// What a compaction item holds, if it is one of ours.
fn compaction_token_of(item: &InputItem) -> Result<Option<InputPart>, ApiError> {
    let value = item.json.value();
    let sealed = value.get("encrypted_content").and_then(Value::as_str);
    match sealed.and_then(|sealed| compaction_token::open(&sealed)) {
        None => Ok(None),
        Some(Ok(token)) => Ok(Some(InputPart::CompactionToken {
            id: item.id.clone(),
            token: Box::new(token),
            index: item.index,
        })),
        Some(Err(why)) => Err(bad_compaction_token(item.index, &why.to_string())),
    }
}

/// The error for a compaction item that looks like one of ours and is not.
pub fn bad_compaction_token(index: usize, why: &str) -> ApiError {
    ApiError::invalid(format!(
        "The encrypted content of a compaction item could not be opened: {why}. Send it as you \
         received it, or leave the item out."
    ))
    .code("invalid_encrypted_content")
    .param(format!("input[{index}].encrypted_content"))
}

fn approval(item: &InputItem) -> Option<InputPart> {
    let value = item.json.value();
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(Into::into);
    Some(InputPart::Approval {
        request: text("approval_request_id")?,
        approve: value.get("approve").and_then(Value::as_bool)?,
        reason: text("reason"),
    })
}

/// Read the items that were gathered as messages.
fn flush_messages(parts: &mut Vec<InputPart>, plain: &mut Vec<&InputItem>) -> Result<(), ApiError> {
    if plain.is_empty() {
        return Ok(());
    }
    let items = std::mem::take(plain);
    let values: Vec<Value<'_>> = items.iter().map(|item| item.json.value()).collect();
    let messages = CODEC.decode_messages(&values);
    let mut messages = messages.map_err(|error| decode_error(&error, &items))?;
    for message in &mut messages {
        envelopes::open_envelopes(message)?;
    }
    // One that held nothing but what belongs to others says nothing.
    messages.retain(|message| !message.contents.is_empty());
    if messages.is_empty() {
        return Ok(());
    }
    parts.push(InputPart::Messages(messages));
    Ok(())
}

/// The codec names places in what it was given; clients know places in their input.
fn decode_error(error: &DecodeError, items: &[&InputItem]) -> ApiError {
    let split = error
        .path
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    let place = split.and_then(|(number, rest)| {
        let item = items.get(number.parse::<usize>().ok()?)?;
        Some(format!("input[{}]{rest}", item.index))
    });
    let place = place.unwrap_or_else(|| "input".to_owned());
    match &error.problem {
        Problem::Expected { found, .. } if found == "nothing" => {
            ApiError::invalid(format!("Missing required parameter: '{place}'."))
                .code("missing_required_parameter")
        }
        Problem::Expected { expected, found } => ApiError::invalid(format!(
            "Invalid type for '{place}': expected {expected}, but got {found} instead."
        ))
        .code("invalid_type"),
        problem => {
            ApiError::invalid(format!("Invalid '{place}': {problem}.")).code("invalid_value")
        }
    }
    .param(place.clone())
}
