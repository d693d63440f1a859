//! What the two OpenAI formats share: settings, the format of an answer, media, errors, and definitions of hosted
//! tools.
//!
//! Applications define hosted tools as the Responses API does, whatever vendor runs them, so other vendors read
//! [`tool_definition`] too.

use throughline_model::json::{ObjectWriter, RawJson, Value};
use throughline_model::{AnswerShape, Form, Media, MediaSource, ToolDef, VendorError, Wire};

use crate::compose::body_builder::BodyBuilder;
use crate::object_builder::ObjectBuilder;
use crate::template::{Extractor, TemplateValue, restore};

/// The longest name of an answer's format.
const LONGEST_NAME: usize = 64;

/// The definition of a tool as the Responses API has it, with its options.
pub(crate) fn tool_definition(tool: &ToolDef) -> Option<&RawJson> {
    let vendor = tool.vendor.as_ref()?;
    match (&vendor.wire, &vendor.form) {
        (Wire::OpenAiResponses | Wire::Foundry, Form::Item(json)) => Some(json),
        _ => None,
    }
}

/// Write the settings that both formats have under one name, and who asks, under `user_key`.
pub(crate) fn write_settings(builder: &mut BodyBuilder<'_>, user_key: &'static str) {
    let settings = builder.prompt.settings;
    for (key, value) in [
        (user_key, &settings.user),
        ("service_tier", &settings.service_tier),
        ("prompt_cache_key", &settings.cache_key),
        ("prompt_cache_retention", &settings.cache_retention),
    ] {
        if let Some(value) = value {
            builder.body.str(key, value);
        }
    }
}

/// Write the members of a JSON schema as the format of an answer.
pub(crate) fn write_json_schema(out: &mut ObjectBuilder<'_>, answer: &AnswerShape, schema: String) {
    out.str("name", &schema_name(answer));
    if let Some(description) = &answer.description {
        out.str("description", description);
    }
    out.raw("schema", schema);
    out.bool("strict", answer.strict.unwrap_or(false));
}

/// A name that OpenAI accepts: letters, digits, `_` and `-`. It is a label without a meaning.
pub(crate) fn schema_name(answer: &AnswerShape) -> String {
    let plain = |c: char| {
        let fits = c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if fits { c } else { '_' }
    };
    let name: String = answer.name.chars().take(LONGEST_NAME).map(plain).collect();
    if name.is_empty() {
        "answer".to_owned()
    } else {
        name
    }
}

/// The address of a piece of media; bytes become a `data:` address.
pub(crate) fn media_url(media: &Media) -> String {
    match &media.source {
        MediaSource::Uri(uri) => uri.clone(),
        MediaSource::Data(data) | MediaSource::File(data) => {
            let media_type = media.media_type.as_deref();
            let media_type = media_type.unwrap_or("application/octet-stream");
            format!("data:{media_type};base64,{data}")
        }
    }
}

/// The bytes of a sound in base64 and the name of its format, if it is one that OpenAI accepts.
pub(crate) fn audio_data(media: &Media) -> Option<(&str, &'static str)> {
    let (media_type, data) = match &media.source {
        MediaSource::Data(data) => (media.media_type.as_deref(), data.as_str()),
        MediaSource::Uri(uri) => {
            let (media_type, data) = uri.strip_prefix("data:")?.split_once(";base64,")?;
            (Some(media_type), data)
        }
        MediaSource::File(_) => return None,
    };
    match media_type {
        Some("audio/wav" | "audio/x-wav" | "audio/wave") | None => Some((data, "wav")),
        Some("audio/mp3" | "audio/mpeg") => Some((data, "mp3")),
        Some(_) => None,
    }
}

/// Write `{"error": {…}}`. An error of the same format goes back as it came.
pub(crate) fn encode_error(wire: &Wire, error: &VendorError) -> String {
    if error.wire == *wire
        && let Some(body) = &error.body
    {
        return match body.value().get("error") {
            Some(_) => body.get().to_owned(),
            None => format!("{{\"error\":{}}}", body.get()),
        };
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    let mut inner = ObjectWriter::new(object.key("error"));
    inner
        .str("message", &error.message)
        .str("type", error.kind.as_deref().unwrap_or("server_error"));
    for (key, value) in [("param", &error.param), ("code", &error.code)] {
        match value {
            Some(value) => inner.str(key, value),
            None => inner.raw(key, "null"),
        };
    }
    inner.end();
    object.end();
    out
}

/// A place in a part that can have its media: the path, and what stands there.
pub(crate) type MediaPlace = (&'static [&'static str], MediaForm);

/// What stands at a [`MediaPlace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaForm {
    /// Bytes in base64, or a `data:` address.
    Data,
    /// An address.
    Url,
    /// The id of a file that the vendor keeps.
    FileId,
}

/// The places of a part that hold a string.
fn filled_places<'v, 'a>(
    places: &[MediaPlace],
    part: &'v Value<'a>,
) -> Vec<(MediaPlace, &'v Value<'a>)> {
    let filled = places.iter().filter_map(|place| {
        let value = part.at(place.0)?;
        value.as_text().map(|_| (*place, value))
    });
    filled.collect()
}

/// Read where the media of a part are, and the media type of a sound; `None` if no place holds a string.
pub(crate) fn read_media<'v, 'a>(
    places: &[MediaPlace],
    part: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
) -> Option<(MediaSource, Option<String>)> {
    let filled = filled_places(places, part);
    let ((_, form), value) = *filled.first()?;
    // With two places filled it would not be plain which of them was taken out.
    let text = match filled.len() {
        1 => extractor.text(value)?,
        _ => value.as_str()?.into_owned(),
    };
    let source = match form {
        MediaForm::FileId => MediaSource::File(text),
        MediaForm::Url => MediaSource::Uri(text),
        MediaForm::Data if text.starts_with("data:") => MediaSource::Uri(text),
        MediaForm::Data => MediaSource::Data(text),
    };
    let format = part.at(&["input_audio", "format"]).and_then(Value::as_str);
    Some((source, format.map(|format| format!("audio/{format}"))))
}

/// Append a part that came from this format, with its media put back.
pub(crate) fn write_media(out: &mut String, places: &[MediaPlace], media: &Media, part: &RawJson) {
    let text = match &media.source {
        MediaSource::Uri(text) | MediaSource::Data(text) | MediaSource::File(text) => text,
    };
    match filled_places(places, &part.value()).as_slice() {
        [((path, _), _)] => restore(out, part, &[(path, TemplateValue::Text(text))]),
        _ => out.push_str(part.get()),
    }
}
