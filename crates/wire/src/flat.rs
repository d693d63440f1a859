//! What formats share whose history is a flat list of items (Responses, Interactions).

use throughline_model::json::Value;
use throughline_model::{Content, Form, Message, Path, Request, Role, Scope};

use crate::wire_type::{ItemRole, WireType};
use crate::{DecodeError, read};

/// Ordinals of handles for standalone results start here, far from those of calls.
pub(crate) const STANDALONE: usize = 1 << 32;

/// Where a decoded item belongs in the list of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemPlacement {
    /// To the model's side of a turn, together with its neighbours.
    Model,
    /// To the results of a round, together with its neighbours.
    Results,
    /// To a message of this role, together with its neighbours of the same kind.
    Joined(Role),
    /// A message of its own.
    Alone(Role),
}

impl ItemPlacement {
    fn role(&self) -> Role {
        match self {
            Self::Model => Role::Assistant,
            Self::Results => Role::Tool,
            Self::Joined(role) | Self::Alone(role) => role.clone(),
        }
    }

    fn joins(&self) -> bool {
        match self {
            Self::Model | Self::Results | Self::Joined(_) => true,
            Self::Alone(_) => false,
        }
    }
}

/// Put the contents of items together to messages.
pub(crate) fn group_items(
    items: impl Iterator<Item = Result<(Vec<Content>, ItemPlacement), DecodeError>>,
) -> Result<Vec<Message>, DecodeError> {
    let mut messages: Vec<Message> = Vec::new();
    let mut last = None;
    for item in items {
        let (contents, placement) = item?;
        match messages.last_mut() {
            Some(message) if placement.joins() && last.as_ref() == Some(&placement) => {
                message.contents.extend(contents);
            }
            _ => messages.push(Message::new(placement.role(), contents)),
        }
        last = Some(placement);
    }
    Ok(messages)
}

/// What minted ids of a response are derived from.
pub(crate) fn response_scope(id: Option<&str>) -> Scope<'_> {
    id.map_or(Scope::Place(0), Scope::Response)
}

/// The name of the tool that an item is for; empty where the type has none.
pub(crate) fn tool_name(
    row: &WireType,
    item: &Value<'_>,
    path: &Path<'_>,
) -> Result<String, DecodeError> {
    let Some(key) = row.name else {
        return Ok(String::new());
    };
    Ok(match row.role {
        // A call without the name of what to call cannot be understood.
        ItemRole::Call | ItemRole::CallAndOutput | ItemRole::ApprovalRequest => {
            read::required_str(item, key, path)?.into_owned()
        }
        _ => read::optional_str(item, key, path)?
            .unwrap_or_default()
            .into_owned(),
    })
}

/// Whether a value is a list of content parts: each has a tag.
pub(crate) fn is_part_list(value: &Value<'_>) -> bool {
    value.as_array().is_some_and(|list| {
        list.iter()
            .all(|part| part.get("type").is_some_and(|tag| tag.as_text().is_some()))
    })
}

/// The text of an input that was a bare string.
pub(crate) fn bare_string_input(request: &Request) -> Option<&str> {
    let [message] = request.messages.as_slice() else {
        return None;
    };
    let [content] = message.contents.as_slice() else {
        return None;
    };
    bare_string(content)
}

/// The text of a content that was a bare string outside of any message.
pub(crate) fn bare_string(content: &Content) -> Option<&str> {
    let vendor = content.vendor.as_ref()?;
    if vendor.form == Form::Bare && vendor.envelope.is_none() {
        content.as_text()
    } else {
        None
    }
}
