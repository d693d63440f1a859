//! The JSON schema of an answer.

use throughline_model::Path;
use throughline_model::json::RawJson;

use super::body_builder::BodyBuilder;
use crate::closed_schema::closed_schema;
use crate::foreign;

/// The schema that the caller set, if it is an object: vendors understand nothing else.
pub(crate) fn schema(builder: &mut BodyBuilder<'_>) -> Option<String> {
    let schema = builder.prompt.settings.answer.as_ref()?.schema.as_ref()?;
    if !schema.get().starts_with('{') {
        builder.note_loss("answer", "its schema is not an object");
        return None;
    }
    let path = Path::Root.key("settings");
    let path = path.key("answer");
    Some(foreign::without_lone_surrogates(schema, &path, builder.losses).into_owned())
}

/// The schema with `additionalProperties: false` in every object that does not mention other members, as Anthropic
/// wants it: an answer that fits it fits the caller's too. One that allows others is a loss.
pub(crate) fn closed(builder: &mut BodyBuilder<'_>) -> Option<String> {
    let schema = RawJson::new(&schema(builder)?).ok()?;
    let closed = closed_schema(&schema);
    if closed.is_none() {
        let detail = "objects of its schema may not allow `additionalProperties`";
        builder.note_loss("answer", detail);
    }
    closed
}
