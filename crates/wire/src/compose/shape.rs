//! The shape of an answer.

use throughline_model::json::{RawJson, Value};
use throughline_model::{AnswerShape, Path};

use super::draft::Draft;
use crate::foreign;

/// The longest name that OpenAI takes.
const LONGEST: usize = 64;

/// A schema that can be sent; what is not an object says nothing that a vendor understands.
pub(super) fn schema(draft: &mut Draft<'_>) -> Option<String> {
    let answer = draft.prompt.settings.answer.as_ref()?;
    if !answer.schema.get().starts_with('{') {
        draft.lost("answer", "its schema is not an object");
        return None;
    }
    let path = Path::Root.key("settings");
    let path = path.key("answer");
    Some(foreign::sound_json(&answer.schema, &path, draft.losses).into_owned())
}

/// A name that OpenAI takes: letters, digits, `_` and `-`. It is a label and says nothing else.
pub(super) fn name(answer: &AnswerShape) -> String {
    let plain = |c: char| {
        let fits = c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if fits { c } else { '_' }
    };
    let name: String = answer.name.chars().take(LONGEST).map(plain).collect();
    if name.is_empty() {
        "answer".to_owned()
    } else {
        name
    }
}

/// Whether every object of a schema says that it has no other members.
pub(super) fn is_closed(schema: &RawJson) -> bool {
    closed(&schema.value())
}

fn closed(schema: &Value<'_>) -> bool {
    let object = schema.get("properties").is_some()
        || schema
            .get("type")
            .is_some_and(|kind| match kind.as_array() {
                Some(kinds) => kinds.iter().any(|kind| kind.is_str("object")),
                None => kind.is_str("object"),
            });
    let shut = schema.get("additionalProperties").and_then(Value::as_bool) == Some(false);
    if object && !shut {
        return false;
    }
    schema
        .members()
        .iter()
        .all(|member| match &*member.key.to_str() {
            "properties" | "$defs" | "definitions" => {
                let inner = member.value.members();
                inner.iter().all(|member| closed(&member.value))
            }
            "items" => closed(&member.value),
            "anyOf" | "allOf" | "oneOf" | "prefixItems" => {
                let inner = member.value.as_array().unwrap_or_default();
                inner.iter().all(closed)
            }
            _ => true,
        })
}
