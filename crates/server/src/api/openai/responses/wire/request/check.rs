//! Members with limits of their own, and what is not built.

use throughline_model::Path;
use throughline_model::json::Value;

use super::{Include, read};
use crate::ApiError;

/// The client's own pairs.
pub(crate) fn metadata(body: &Value<'_>) -> Result<Vec<(String, String)>, ApiError> {
    const PAIRS: usize = 16;
    const KEY: usize = 64;
    const VALUE: usize = 512;
    let root = Path::Root;
    let path = root.key("metadata");
    let Some(object) = read::object(body, "metadata", &root)? else {
        return Ok(Vec::new());
    };
    let mut pairs: Vec<(String, String)> = Vec::new();
    for member in object.members() {
        let key = member.key.to_str();
        let path = path.key(&key);
        if key.chars().count() > KEY {
            let what = format!("keys have at most {KEY} characters");
            return Err(read::out_of_range(&path, "string_above_max_length", &what));
        }
        let Some(value) = member.value.as_str() else {
            return Err(read::wrong_type(&path, "a string", &member.value));
        };
        read::check_length(&path, &value, VALUE)?;
        pairs.retain(|(known, _)| *known != key);
        pairs.push((key.clone().into_owned(), value.into_owned()));
        // Here, so that a long list costs nothing.
        if pairs.len() > PAIRS {
            let what = format!("at most {PAIRS} pairs are kept");
            let path = root.key("metadata");
            return Err(read::out_of_range(
                &path,
                "object_above_max_properties",
                &what,
            ));
        }
    }
    Ok(pairs)
}

/// What is to be added to the response.
pub(super) fn include(body: &Value<'_>) -> Result<Vec<Include>, ApiError> {
    let path = Path::Root.key("include");
    let list = read::list(body, "include", &Path::Root)?.unwrap_or_default();
    let known = Include::ALL.map(Include::as_str);
    let mut asked = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let path = path.index(index);
        let Some(word) = value.as_str() else {
            return Err(read::wrong_type(&path, "a string", value));
        };
        let found = Include::ALL.into_iter().find(|one| one.as_str() == word);
        let Some(found) = found else {
            return Err(read::wrong_value(&path, &word, &known));
        };
        if !asked.contains(&found) {
            asked.push(found);
        }
    }
    Ok(asked)
}

/// Check the types of members that are only echoed or handed on.
pub(super) fn echoed(body: &Value<'_>) -> Result<(), ApiError> {
    let root = Path::Root;
    if let Some(text) = read::text(body, "safety_identifier", &root)? {
        read::check_length(&root.key("safety_identifier"), &text, 64)?;
    }
    for key in ["prompt", "prompt_cache_options", "moderation"] {
        read::object(body, key, &root)?;
    }
    read::integer(body, "top_logprobs", (0, 20), &root)?;
    read::text(body, "user", &root)?;
    Ok(())
}

/// Whether events are to be padded.
pub(super) fn obfuscation(body: &Value<'_>) -> Result<bool, ApiError> {
    let root = Path::Root;
    let Some(options) = read::object(body, "stream_options", &root)? else {
        return Ok(false);
    };
    let padded = read::flag(options, "include_obfuscation", &root.key("stream_options"))?;
    Ok(padded == Some(true))
}

/// The conversation that the response belongs to: a string, or an object with an id.
pub(super) fn conversation(body: &Value<'_>, continues: bool) -> Result<Option<String>, ApiError> {
    let root = Path::Root;
    let Some(conversation) = read::member(body, "conversation") else {
        return Ok(None);
    };
    let path = root.key("conversation");
    let id = match (conversation.as_object(), conversation.as_str()) {
        (Some(_), _) => read::required(conversation, "id", &path)?,
        (None, Some(id)) => id,
        (None, None) => {
            return Err(read::wrong_type(
                &path,
                "a string or an object",
                conversation,
            ));
        }
    };
    if continues {
        return Err(ApiError::invalid(
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Send only one \
             of them.",
        )
        .code("mutually_exclusive_parameters")
        .param("conversation"));
    }
    Ok(Some(id.into_owned()))
}

/// Whether the response is made after the request was answered.
pub(super) fn background(body: &Value<'_>, store: bool) -> Result<bool, ApiError> {
    let background = read::flag(body, "background", &Path::Root)? == Some(true);
    if background && !store {
        return Err(ApiError::invalid(
            "A background response is read later, and so it is kept: leave 'store' out, or \
             'background'.",
        )
        .code("background_requires_store")
        .param("background")
        .retry(false));
    }
    Ok(background)
}
