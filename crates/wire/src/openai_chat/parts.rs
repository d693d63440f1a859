//! Content parts of messages.

use throughline_model::json::{ObjectWriter, RawJson, Value};
use throughline_model::{Body, Content, Media, MediaKind, MediaSource, Path, Text, Vendor, Wire};

use super::WIRE;
use crate::openai::{MediaForm, MediaPlace, audio_data, media_url, read_media, write_media};
use crate::read::{self, text_of};
use crate::template::Extractor;
use crate::template::{TemplateValue, restore};
use crate::{DecodeError, LossKind, Losses};

/// Whether a tag is that of a part.
pub(super) fn is_part(tag: &str) -> bool {
    matches!(
        tag,
        "text" | "refusal" | "image_url" | "input_audio" | "file"
    )
}

/// Read the parts of a message's content.
pub(super) fn decode_all(
    parts: &[Value<'_>],
    path: &Path<'_>,
) -> Result<Vec<Content>, DecodeError> {
    parts
        .iter()
        .enumerate()
        .map(|(index, part)| decode(part, &path.index(index)))
        .collect()
}

fn decode(part: &Value<'_>, path: &Path<'_>) -> Result<Content, DecodeError> {
    if part.as_object().is_none() {
        return Err(DecodeError::expected(path, "a content part", part));
    }
    let tag = read::required_str(part, "type", path)?;
    let mut extractor = Extractor::new(part);
    let body = match &*tag {
        "text" => Body::Text(Text {
            text: extractor.required_text("text", "a string", path)?,
            citations: Vec::new(),
        }),
        "refusal" => Body::Refusal(Text {
            text: extractor.required_text("refusal", "a string", path)?,
            citations: Vec::new(),
        }),
        "image_url" | "input_audio" | "file" => match media(&tag, part, &mut extractor, path)? {
            Some(media) => Body::Media(media),
            None => Body::opaque(&*tag),
        },
        _ => Body::opaque(&*tag),
    };
    Ok(Content::new(body).with_vendor(Vendor::part(WIRE, extractor.into_template())))
}

/// The places where a part of a kind can have its media. Some clients write the address of an image
/// without the object around it.
fn media_places(tag: &str) -> &'static [MediaPlace] {
    match tag {
        "image_url" => &[
            (&["image_url", "url"], MediaForm::Url),
            (&["image_url"], MediaForm::Url),
        ],
        "input_audio" => &[(&["input_audio", "data"], MediaForm::Data)],
        "file" => &[
            (&["file", "file_data"], MediaForm::Data),
            (&["file", "file_id"], MediaForm::FileId),
        ],
        _ => &[],
    }
}

fn media<'v, 'a>(
    tag: &str,
    part: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    path: &Path<'_>,
) -> Result<Option<Media>, DecodeError> {
    let Some((source, media_type)) = read_media(media_places(tag), part, extractor) else {
        let path = path.key(tag);
        return match part.get(tag) {
            // A file may have nothing but a name.
            Some(file) if tag == "file" && file.as_object().is_some() => Ok(None),
            Some(found) => Err(DecodeError::expected(&path, "an object with data", found)),
            None => Err(DecodeError::missing(&path, "an object with data")),
        };
    };
    Ok(Some(Media {
        kind: match tag {
            "input_audio" => MediaKind::Audio,
            "file" => MediaKind::File,
            _ => MediaKind::Image,
        },
        media_type,
        source,
        name: part.get("file").and_then(|file| text_of(file, "filename")),
        transcript: None,
    }))
}

/// Append a part that came from this format.
pub(super) fn encode(out: &mut String, body: &Body, part: &RawJson) {
    match body {
        Body::Text(text) => restore(out, part, &[(&["text"], TemplateValue::Text(&text.text))]),
        Body::Refusal(text) => restore(
            out,
            part,
            &[(&["refusal"], TemplateValue::Text(&text.text))],
        ),
        Body::Media(media) => {
            let tag = text_of(&part.value(), "type").unwrap_or_default();
            write_media(out, media_places(&tag), media, part);
        }
        Body::Reasoning(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => out.push_str(part.get()),
    }
}

/// Append a text part.
pub(super) fn write_text(out: &mut String, text: &str) {
    let mut object = ObjectWriter::new(out);
    object.str("type", "text").str("text", text);
    object.end();
}

/// The part for media of another vendor; `None` if this format has no form for it.
pub(super) fn translate_media(
    content: &Content,
    media: &Media,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Option<String> {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    let lost = match (media.kind, &media.source) {
        (MediaKind::Image, MediaSource::Uri(_) | MediaSource::Data(_)) => {
            object.str("type", "image_url");
            let mut inner = ObjectWriter::new(object.key("image_url"));
            inner.str("url", &media_url(media));
            inner.end();
            None
        }
        (MediaKind::Audio, MediaSource::Uri(_) | MediaSource::Data(_)) => match audio_data(media) {
            Some((data, format)) => {
                object.str("type", "input_audio");
                let mut inner = ObjectWriter::new(object.key("input_audio"));
                inner.str("data", data).str("format", format);
                inner.end();
                None
            }
            None => Some("sound can be sent as wav or mp3 only"),
        },
        (MediaKind::File, MediaSource::Data(_)) => {
            file(&mut object, "file_data", &media_url(media), media);
            None
        }
        (MediaKind::File, MediaSource::Uri(uri)) if uri.starts_with("data:") => {
            file(&mut object, "file_data", uri, media);
            None
        }
        (MediaKind::File, MediaSource::File(id)) if is_kept_by_openai(content) => {
            file(&mut object, "file_id", id, media);
            None
        }
        (MediaKind::File, MediaSource::Uri(_)) => Some("files cannot be sent by address"),
        (MediaKind::Video, _) => Some("there is no video here"),
        (MediaKind::Image | MediaKind::Audio | MediaKind::File, MediaSource::File(_)) => {
            Some("the file is kept where it cannot be read from")
        }
    };
    object.end();
    match lost {
        None => Some(out),
        Some(why) => {
            losses.note(path, LossKind::Media, why);
            None
        }
    }
}

fn file(object: &mut ObjectWriter<'_>, key: &str, value: &str, media: &Media) {
    object.str("type", "file");
    let mut inner = ObjectWriter::new(object.key("file"));
    inner.str(key, value);
    match (&media.name, key) {
        (Some(name), _) => {
            inner.str("filename", name);
        }
        // Data without a name is refused.
        (None, "file_data") => {
            inner.str("filename", "file");
        }
        (None, _) => {}
    }
    inner.end();
}

/// Whether a file id may mean something here: our own, or one of the same vendor.
fn is_kept_by_openai(content: &Content) -> bool {
    content
        .vendor
        .as_ref()
        .is_none_or(|vendor| matches!(vendor.wire, Wire::OpenAiChat | Wire::OpenAiResponses))
}
