//! Writes media of other vendors as contents.
//!
//! The format names the media types that each kind of content takes, so the type decides the kind,
//! and a type that is not listed is not named.

use throughline_model::json::ObjectWriter;
use throughline_model::{Media, MediaKind, Path};

use crate::google::{MediaData, default_media_type, media_data, media_kind};
use crate::media::decode_base64_text;
use crate::{LossKind, Losses};

const IMAGES: [&str; 8] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "image/gif",
    "image/bmp",
    "image/tiff",
];

const AUDIO: [&str; 13] = [
    "audio/wav",
    "audio/mp3",
    "audio/aiff",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "audio/mpeg",
    "audio/m4a",
    "audio/l16",
    "audio/opus",
    "audio/alaw",
    "audio/mulaw",
    "audio/webm",
];

const VIDEO: [&str; 9] = [
    "video/mp4",
    "video/mpeg",
    "video/mpg",
    "video/mov",
    "video/avi",
    "video/x-flv",
    "video/webm",
    "video/wmv",
    "video/3gpp",
];

const DOCUMENTS: [&str; 12] = [
    "application/pdf",
    "text/csv",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.ms-powerpoint",
    "application/vnd.oasis.opendocument.presentation",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/msword",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.ms-excel",
    "application/vnd.oasis.opendocument.spreadsheet",
];

/// Other names of listed types.
const ALIASES: [(&str, &str); 14] = [
    ("image/jpg", "image/jpeg"),
    ("image/pjpeg", "image/jpeg"),
    ("image/x-png", "image/png"),
    ("audio/wave", "audio/wav"),
    ("audio/x-wav", "audio/wav"),
    ("audio/vnd.wave", "audio/wav"),
    ("audio/x-aiff", "audio/aiff"),
    ("audio/x-flac", "audio/flac"),
    ("audio/x-m4a", "audio/m4a"),
    ("audio/mp4", "audio/m4a"),
    ("video/quicktime", "video/mov"),
    ("video/x-msvideo", "video/avi"),
    ("video/x-ms-wmv", "video/wmv"),
    ("application/x-pdf", "application/pdf"),
];

/// How the first bytes of some types look in base 64.
const BASE64_PREFIXES: [(&str, &str); 5] = [
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("JVBERi0", "application/pdf"),
    ("SUQz", "audio/mp3"),
];

/// Append media of another vendor; nothing if this format has no form for them.
pub(super) fn translate(out: &mut String, media: &Media, path: &Path<'_>, losses: &mut Losses) {
    let found = media_data(media);
    let (data, uri, named) = match &found {
        MediaData::Inline(data, named) => (Some(&**data), None, *named),
        MediaData::Address(uri, named) => (None, Some(*uri), *named),
        MediaData::Elsewhere => {
            losses.note(path, LossKind::Media, "the file is kept by another vendor");
            return;
        }
    };
    if media.name.is_some() || media.transcript.is_some() {
        losses.note(path, LossKind::Media, "file name or transcript");
    }
    let named = named.map(essence).filter(|named| is_specific(named));
    let listed = match (&named, data) {
        (Some(named), _) => listed(named),
        (None, Some(data)) => media_type_of(data),
        (None, None) => None,
    };
    if let (None, Some(named), Some(data)) = (listed, &named, data)
        && is_text(named)
        && let Some(text) = decode_base64_text(data)
    {
        losses.note(path, LossKind::Media, "a text file becomes plain text");
        if !text.is_empty() {
            let mut object = ObjectWriter::new(out);
            object.str("type", "text").str("text", &text);
            object.end();
        }
        return;
    }
    let kind = match (listed, &named) {
        (Some(listed), _) => media_kind(listed),
        // A type that is not listed may still decide the kind of a plain file.
        (None, Some(named)) if media.kind == MediaKind::File => media_kind(named),
        (None, _) => media.kind,
    };
    let media_type = listed.or_else(|| {
        let detail = named.as_deref().unwrap_or("unknown");
        if named.is_some() || data.is_some() {
            let detail = format!("the media type {detail} is not one of this format");
            losses.note(path, LossKind::Media, detail);
        }
        // MediaData need a type; for a document every guess would be wrong.
        data.filter(|_| kind != MediaKind::File)
            .map(|_| default_media_type(kind))
    });
    let mut object = ObjectWriter::new(out);
    object.str(
        "type",
        match kind {
            MediaKind::Image => "image",
            MediaKind::Audio => "audio",
            MediaKind::Video => "video",
            MediaKind::File => "document",
        },
    );
    for (key, value) in [("mime_type", media_type), ("data", data), ("uri", uri)] {
        if let Some(value) = value {
            object.str(key, value);
        }
    }
    object.end();
}

/// A media type without its parameters, in small letters.
fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Whether a media type is specific.
fn is_specific(media_type: &str) -> bool {
    !matches!(
        media_type,
        "" | "application/octet-stream" | "binary/octet-stream"
    )
}

fn listed(media_type: &str) -> Option<&'static str> {
    let also = ALIASES.iter().find(|(name, _)| *name == media_type);
    let wanted = also.map_or(media_type, |(_, listed)| listed);
    let all = IMAGES.iter().chain(&AUDIO).chain(&VIDEO).chain(&DOCUMENTS);
    all.copied().find(|listed| *listed == wanted)
}

fn media_type_of(data: &str) -> Option<&'static str> {
    let found = BASE64_PREFIXES
        .iter()
        .find(|(beginning, _)| data.starts_with(beginning));
    found.map(|(_, media_type)| *media_type)
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || matches!(
            media_type,
            "application/json" | "application/xml" | "application/yaml" | "application/javascript"
        )
}

#[cfg(test)]
mod tests {
    use super::{DOCUMENTS, listed};
    use crate::google::media_kind;
    use throughline_model::MediaKind;

    #[test]
    fn types_have_one_listed_name() {
        assert_eq!(listed("image/jpg"), Some("image/jpeg"));
        assert_eq!(listed("text/csv"), Some("text/csv"));
        assert_eq!(listed("image/svg+xml"), None);
        for document in DOCUMENTS {
            assert_eq!(media_kind(document), MediaKind::File);
        }
    }
}
