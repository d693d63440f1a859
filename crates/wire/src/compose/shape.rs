//! The shape of an answer.

use throughline_model::json::RawJson;
use throughline_model::{AnswerShape, Path};

use super::draft::Draft;
use crate::closed_schema::closed_schema;
use crate::foreign;
use crate::members::Members;

/// The longest name that OpenAI takes.
const LONGEST: usize = 64;

/// A schema that can be sent; what is not an object says nothing that a vendor understands.
pub(crate) fn schema(draft: &mut Draft<'_>) -> Option<String> {
    let schema = draft.prompt.settings.answer.as_ref()?.schema.as_ref()?;
    if !schema.get().starts_with('{') {
        draft.lost("answer", "its schema is not an object");
        return None;
    }
    let path = Path::Root.key("settings");
    let path = path.key("answer");
    Some(foreign::sound_json(schema, &path, draft.losses).into_owned())
}

/// The shape with its name, as both APIs of OpenAI have it.
pub(crate) fn write(out: &mut Members<'_>, answer: &AnswerShape, schema: String) {
    out.str("name", &name(answer));
    if let Some(description) = &answer.description {
        out.str("description", description);
    }
    out.raw("schema", schema);
    out.bool("strict", answer.strict.unwrap_or(false));
}

/// A name that OpenAI takes: letters, digits, `_` and `-`. It is a label and says nothing else.
pub(crate) fn name(answer: &AnswerShape) -> String {
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

/// The schema with `additionalProperties: false` in every object that says nothing about others, as
/// Anthropic wants it: an answer that fits it fits the caller's too. One that allows others is a loss.
pub(crate) fn closed(draft: &mut Draft<'_>) -> Option<String> {
    let schema = RawJson::new(&schema(draft)?).ok()?;
    let closed = closed_schema(&schema);
    if closed.is_none() {
        let detail = "objects of its schema may not allow `additionalProperties`";
        draft.lost("answer", detail);
    }
    closed
}
