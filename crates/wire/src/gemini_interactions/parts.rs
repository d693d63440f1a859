//! Contents of inputs, outputs and results, both ways.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_model::{
    Body, Citation, Content, Extra, Form, Media, MediaKind, MediaSource, Path, Text, Vendor, Wire,
};

use super::media;
use crate::read::{self, number_of, text_of};
use crate::template::Extractor;
use crate::template::{TemplateValue, restore};
use crate::{DecodeError, LossKind, Losses, foreign, native};

/// Where media have their bytes or their address.
const PLACES: [&str; 2] = ["data", "uri"];

/// Read one part; `form` is its form on the wire.
pub(super) fn decode(
    part: &Value<'_>,
    form: fn(RawJson) -> Form,
    path: &Path<'_>,
) -> Result<Content, DecodeError> {
    if part.as_object().is_none() {
        return Err(DecodeError::expected(path, "a content", part));
    }
    let tag = read::required_str(part, "type", path)?;
    let mut extractor = Extractor::new(part);
    let body = match &*tag {
        "text" => Body::Text(Text {
            text: extractor.required_text("text", "a string", path)?,
            citations: citations(part),
        }),
        "image" => read_media(MediaKind::Image, part, &mut extractor),
        "audio" => read_media(MediaKind::Audio, part, &mut extractor),
        "video" => read_media(MediaKind::Video, part, &mut extractor),
        "document" => read_media(MediaKind::File, part, &mut extractor),
        _ => Body::opaque(&*tag),
    };
    let vendor = Vendor::form(Wire::GeminiInteractions, form(extractor.into_template()));
    Ok(Content::new(body).with_vendor(vendor))
}

fn citations(part: &Value<'_>) -> Vec<Citation> {
    let annotations = part.get("annotations").and_then(Value::as_array);
    let cites = |annotation: &&Value<'_>| {
        let tag = annotation.get("type").and_then(Value::as_str);
        tag.is_some_and(|tag| tag.ends_with("_citation"))
    };
    annotations
        .unwrap_or_default()
        .iter()
        .filter(cites)
        .map(|annotation| Citation {
            url: text_of(annotation, "url").or_else(|| text_of(annotation, "document_uri")),
            title: ["title", "file_name", "name"]
                .iter()
                .find_map(|key| text_of(annotation, key)),
            file: text_of(annotation, "media_id"),
            start: number_of(annotation, &["start_index"]),
            end: number_of(annotation, &["end_index"]),
            extra: Extra::NONE,
        })
        .collect()
}

/// The place where a part has its bytes; with both set it would not be plain which of them was
/// taken out, so then none is.
fn place(part: &Value<'_>) -> Option<&'static str> {
    let mut set = PLACES.into_iter().filter(|key| {
        let value = part.get(key);
        value.is_some_and(|value| value.as_text().is_some())
    });
    match (set.next(), set.next()) {
        (Some(key), None) => Some(key),
        _ => None,
    }
}

fn read_media<'v, 'a>(
    kind: MediaKind,
    part: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
) -> Body {
    let taken = place(part).and_then(|key| Some((key, extractor.text(part.get(key)?)?)));
    let found = taken.or_else(|| {
        let kept = |key| text_of(part, key).filter(|text| !text.is_empty());
        PLACES.into_iter().find_map(|key| Some((key, kept(key)?)))
    });
    let Some((key, text)) = found else {
        return Body::opaque(text_of(part, "type").unwrap_or_default());
    };
    let source = if key == "data" {
        MediaSource::Data(text)
    } else if text.contains("generativelanguage.googleapis.com/") {
        // A file uploaded to the service; the address is of no use to other vendors.
        MediaSource::File(text)
    } else {
        MediaSource::Uri(text)
    };
    Body::Media(Media {
        kind,
        media_type: text_of(part, "mime_type"),
        source,
        name: text_of(part, "name"),
        transcript: None,
    })
}

/// Append a part that came from this format.
pub(super) fn encode(out: &mut String, body: &Body, part: &RawJson) {
    match body {
        Body::Text(text) => restore(out, part, &[(&["text"], TemplateValue::Text(&text.text))]),
        Body::Media(media) => {
            let text = match &media.source {
                MediaSource::Uri(text) | MediaSource::Data(text) | MediaSource::File(text) => text,
            };
            match kept_place(part) {
                Some(key) => restore(out, part, &[(&[key], TemplateValue::Text(text))]),
                None => out.push_str(part.get()),
            }
        }
        Body::Reasoning(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Refusal(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => out.push_str(part.get()),
    }
}

/// The same of a part that is kept.
fn kept_place(part: &RawJson) -> Option<&'static str> {
    let mut set = PLACES.into_iter().filter(|key| {
        let at = part.locate(&[key]);
        at.is_some_and(|at| part.get()[at].starts_with('"'))
    });
    match (set.next(), set.next()) {
        (Some(key), None) => Some(key),
        _ => None,
    }
}

/// Append the parts of a result, with commas.
pub(super) fn encode_all(
    out: &mut String,
    parts: &[Content],
    path: &Path<'_>,
    losses: &mut Losses,
) {
    for (index, content) in parts.iter().enumerate() {
        let mut text = String::new();
        let native = native::vendor(content, &Wire::GeminiInteractions);
        match native.map(|vendor| &vendor.form) {
            Some(Form::Part(part) | Form::Item(part)) => encode(&mut text, &content.body, part),
            Some(Form::Bare | Form::Within) | None => {
                translate(&mut text, content, &path.index(index), losses);
            }
        }
        if text.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&text);
    }
}

/// Append a part for a content of another vendor; nothing if it has no form as a part.
pub(super) fn translate(out: &mut String, content: &Content, path: &Path<'_>, losses: &mut Losses) {
    match &content.body {
        Body::Text(text) => {
            foreign::note_vendor_fields(content, path, losses);
            foreign::note_transcript(content, path, losses);
            translate_text(out, text, path, losses);
        }
        Body::Refusal(text) => {
            losses.note(path, LossKind::Marking, "refusal becomes plain text");
            translate_text(out, text, path, losses);
        }
        Body::Error(fault) => {
            losses.note(path, LossKind::Marking, "error becomes plain text");
            let text = Text {
                text: fault.message.clone(),
                citations: Vec::new(),
            };
            translate_text(out, &text, path, losses);
        }
        Body::Media(found) => {
            foreign::note_vendor_fields(content, path, losses);
            foreign::note_transcript(content, path, losses);
            media::translate(out, found, path, losses);
        }
        Body::Opaque(_) | Body::Unknown(_) => {
            foreign::note_vendor_only(&content.body, path, losses);
        }
        Body::Reasoning(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_) => {
            losses.note(path, LossKind::VendorItem, "not a part of a step here");
        }
    }
}

fn translate_text(out: &mut String, text: &Text, path: &Path<'_>, losses: &mut Losses) {
    // Empty texts are left out.
    if text.text.is_empty() {
        return;
    }
    let mut object = ObjectWriter::new(out);
    object.str("type", "text").str("text", &text.text);
    let (cited, lost): (Vec<_>, Vec<_>) = text
        .citations
        .iter()
        .partition(|citation| citation.url.is_some());
    if !lost.is_empty() {
        losses.note(path, LossKind::Citations, "only addresses can be cited");
    }
    if !cited.is_empty() {
        let mut list = ArrayWriter::new(object.key("annotations"));
        for citation in cited {
            let mut object = ObjectWriter::new(list.slot());
            object.str("type", "url_citation");
            for (key, value) in [("url", &citation.url), ("title", &citation.title)] {
                if let Some(value) = value {
                    object.str(key, value);
                }
            }
            for (key, value) in [("start_index", citation.start), ("end_index", citation.end)] {
                if let Some(value) = value {
                    object.number(key, value);
                }
            }
            object.end();
        }
        list.end();
    }
    object.end();
}

/// A thing that is kept as a part of something.
pub(super) fn as_part(json: RawJson) -> Form {
    Form::Part(json)
}

/// A thing that stands on its own.
pub(super) fn as_item(json: RawJson) -> Form {
    Form::Item(json)
}
