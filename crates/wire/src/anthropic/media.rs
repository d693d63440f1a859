//! Images and documents: where their bytes are, both ways.

use throughline_model::json::{ObjectWriter, RawJson, Value};
use throughline_model::{Content, Media, MediaKind, MediaSource, Path};

use crate::media::{DataUrl, decode_base64_text, encode_base64};
use crate::read::{self, text_of};
use crate::template::Extractor;
use crate::template::{TemplateValue, restore};
use crate::{DecodeError, LossKind, Losses};

const PDF: &str = "application/pdf";

/// The member of a source that has the bytes or their address.
fn source_key(source_type: &str) -> Option<&'static str> {
    match source_type {
        "base64" | "text" => Some("data"),
        "url" => Some("url"),
        "file" => Some("file_id"),
        _ => None,
    }
}

/// Read the source of a block; none if it is of a kind without a neutral form.
pub(super) fn decode<'v, 'a>(
    kind: MediaKind,
    block: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    path: &Path<'_>,
) -> Result<Option<Media>, DecodeError> {
    let path = path.key("source");
    let source = match block.get("source") {
        None => return Err(DecodeError::missing(&path, "an object")),
        Some(source) if source.as_object().is_none() => {
            return Err(DecodeError::expected(&path, "an object", source));
        }
        Some(source) => source,
    };
    let source_type = read::required_str(source, "type", &path)?;
    let Some(key) = source_key(&source_type) else {
        return Ok(None);
    };
    let text = read::required_str(source, key, &path)?;
    let found = match &*source_type {
        // Plain text has no neutral form as media; it stays in the block and is given as bytes.
        "text" => MediaSource::Data(encode_base64(text.as_bytes())),
        _ => {
            if let Some(value) = source.get(key) {
                extractor.text(value);
            }
            match key {
                "data" => MediaSource::Data(text.into_owned()),
                "url" => MediaSource::Uri(text.into_owned()),
                _ => MediaSource::File(text.into_owned()),
            }
        }
    };
    Ok(Some(Media {
        kind,
        media_type: text_of(source, "media_type"),
        source: found,
        name: text_of(block, "title"),
        transcript: None,
    }))
}

/// Append a block that came from this format.
pub(super) fn encode(out: &mut String, media: &Media, block: &RawJson) {
    let value = block.value();
    let source_type = value.at(&["source", "type"]).and_then(Value::as_str);
    let text = match &media.source {
        MediaSource::Uri(text) | MediaSource::Data(text) | MediaSource::File(text) => text,
    };
    match source_type.as_deref() {
        Some(found) if found != "text" => {
            let key = source_key(found).unwrap_or_default();
            restore(out, block, &[(&["source", key], TemplateValue::Text(text))]);
        }
        _ => out.push_str(block.get()),
    }
}

/// Append a block for media of another vendor; nothing if there is no form for it.
pub(super) fn translate(
    out: &mut String,
    content: &Content,
    media: &Media,
    path: &Path<'_>,
    losses: &mut Losses,
) {
    let tag = match media.kind {
        MediaKind::Image => "image",
        MediaKind::File => "document",
        MediaKind::Audio | MediaKind::Video => {
            losses.note(path, LossKind::Media, "no sound or film here");
            if let Some(words) = media.transcript.as_deref().filter(|text| !text.is_empty()) {
                let mut object = ObjectWriter::new(out);
                object.str("type", "text").str("text", words);
                object.end();
            }
            return;
        }
    };
    let source = match source(content, media) {
        Ok(source) => source,
        Err(detail) => return losses.note(path, LossKind::Media, detail),
    };
    let mut object = ObjectWriter::new(out);
    object.str("type", tag).raw("source", source.get());
    if let (MediaKind::File, Some(name)) = (media.kind, &media.name) {
        object.str("title", name);
    }
    object.end();
}

/// The source of media of another vendor, or why there is none.
fn source(content: &Content, media: &Media) -> Result<RawJson, &'static str> {
    match &media.source {
        MediaSource::Data(data) => source_of_bytes(media.kind, media.media_type.as_deref(), data),
        MediaSource::Uri(uri) if uri.starts_with("data:") => {
            let url = DataUrl::parse(uri).filter(|url| url.is_base64);
            let url = url.ok_or("only data addresses in base 64 can be read")?;
            let media_type = url.media_type.or(media.media_type.as_deref());
            source_of_bytes(media.kind, media_type, url.data)
        }
        MediaSource::Uri(uri) if uri.starts_with("https://") || uri.starts_with("http://") => {
            Ok(RawJson::object(|object| {
                object.str("type", "url").str("url", uri);
            }))
        }
        MediaSource::Uri(_) => Err("only web addresses can be fetched"),
        // Of ours, it was meant for the vendor that it is sent to.
        MediaSource::File(file) if content.vendor.is_none() => Ok(RawJson::object(|object| {
            object.str("type", "file").str("file_id", file);
        })),
        MediaSource::File(_) => Err("the file is in another vendor's store"),
    }
}

fn source_of_bytes(
    kind: MediaKind,
    media_type: Option<&str>,
    data: &str,
) -> Result<RawJson, &'static str> {
    // A type that is missing can be recognised by the first bytes.
    let media_type = media_type.or_else(|| media_type_of(data));
    let in_base64 = |media_type: &str| {
        RawJson::object(|object| {
            object
                .str("type", "base64")
                .str("media_type", media_type)
                .str("data", data);
        })
    };
    match (kind, media_type) {
        (MediaKind::Image, Some(found)) if found.starts_with("image/") => Ok(in_base64(found)),
        (MediaKind::Image, _) => Err("not a kind of image that is known"),
        (_, Some(PDF)) => Ok(in_base64(PDF)),
        (_, Some(found)) if is_text(found) => {
            let text = decode_base64_text(data).ok_or("the text is not utf-8 in base 64")?;
            Ok(RawJson::object(|object| {
                object
                    .str("type", "text")
                    .str("media_type", "text/plain")
                    .str("data", &text);
            }))
        }
        _ => Err("documents are pdf or text here"),
    }
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type.starts_with("application/json")
}

fn media_type_of(data: &str) -> Option<&'static str> {
    [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("UklGR", "image/webp"),
        ("JVBERi0", PDF),
    ]
    .into_iter()
    .find_map(|(start, media_type)| data.starts_with(start).then_some(media_type))
}
