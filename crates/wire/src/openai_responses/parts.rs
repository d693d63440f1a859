//! Content parts of messages and tool outputs.

use throughline_model::json::{ObjectWriter, RawJson, Value};
use throughline_model::{
    Body, Citation, Content, Extra, Form, Media, MediaKind, MediaSource, Path, Text, Vendor, Wire,
};

use super::{Dialect, Flavour};
use crate::openai::{MediaForm, MediaPlace, audio_data, media_url, read_media, write_media};
use crate::read::{self, number_of, text_of};
use crate::template::Extractor;
use crate::template::{TemplateValue, restore};
use crate::{DecodeError, LossKind, Losses, foreign, native};

/// Read one part.
pub(super) fn decode(
    wire: &Wire,
    part: &Value<'_>,
    path: &Path<'_>,
) -> Result<Content, DecodeError> {
    if part.as_object().is_none() {
        return Err(DecodeError::expected(path, "a content part", part));
    }
    let tag = read::required_str(part, "type", path)?;
    let mut extractor = Extractor::new(part);
    let body = match &*tag {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => {
            Body::Text(Text {
                text: extractor.required_text("text", "a string", path)?,
                citations: citations(part),
            })
        }
        "refusal" => Body::Refusal(Text {
            text: extractor.required_text("refusal", "a string", path)?,
            citations: Vec::new(),
        }),
        "input_image" | "computer_screenshot" | "input_file" | "input_audio" => {
            match media(&tag, part, &mut extractor) {
                Some(media) => Body::Media(media),
                None => Body::opaque(&*tag),
            }
        }
        _ => Body::opaque(&*tag),
    };
    Ok(Content::new(body).with_vendor(Vendor::part(wire.clone(), extractor.into_template())))
}

fn citations(part: &Value<'_>) -> Vec<Citation> {
    let Some(annotations) = part.get("annotations").and_then(Value::as_array) else {
        return Vec::new();
    };
    annotations
        .iter()
        .map(|annotation| Citation {
            url: text_of(annotation, "url"),
            title: text_of(annotation, "title").or_else(|| text_of(annotation, "filename")),
            file: text_of(annotation, "file_id"),
            start: number_of(annotation, &["start_index"]),
            end: number_of(annotation, &["end_index"]),
            extra: Extra::NONE,
        })
        .collect()
}

/// The places where a part of a kind can have its media.
fn media_places(tag: &str) -> &'static [MediaPlace] {
    match tag {
        "input_image" | "computer_screenshot" => &[
            (&["image_url"], MediaForm::Url),
            (&["file_id"], MediaForm::FileId),
        ],
        "input_file" => &[
            (&["file_data"], MediaForm::Data),
            (&["file_url"], MediaForm::Url),
            (&["file_id"], MediaForm::FileId),
        ],
        "input_audio" => &[(&["input_audio", "data"], MediaForm::Data)],
        _ => &[],
    }
}

fn media<'v, 'a>(
    tag: &str,
    part: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
) -> Option<Media> {
    let (source, media_type) = read_media(media_places(tag), part, extractor)?;
    Some(Media {
        kind: match tag {
            "input_audio" => MediaKind::Audio,
            "input_file" => MediaKind::File,
            _ => MediaKind::Image,
        },
        media_type,
        source,
        name: text_of(part, "filename"),
        transcript: None,
    })
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

/// Where a part stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartPosition {
    /// In a message to the model.
    Input,
    /// In a message of the model.
    ModelOutput,
    /// In the output of a tool.
    ToolOutput,
}

/// Append the parts of a tool output.
pub(super) fn encode_all(
    out: &mut String,
    parts: &[Content],
    dialect: &Dialect,
    path: &Path<'_>,
    losses: &mut Losses,
) {
    let mut first = true;
    for (index, part) in parts.iter().enumerate() {
        let mut text = String::new();
        match native::vendor(part, &dialect.wire).map(|vendor| &vendor.form) {
            Some(Form::Part(item) | Form::Item(item)) => encode(&mut text, &part.body, item),
            Some(Form::Bare | Form::Within) | None => {
                let path = path.index(index);
                translate(
                    &mut text,
                    part,
                    PartPosition::ToolOutput,
                    dialect,
                    &path,
                    losses,
                );
            }
        }
        if text.is_empty() {
            continue;
        }
        if !first {
            out.push(',');
        }
        first = false;
        out.push_str(&text);
    }
}

/// The text of a content of the model, for a place that takes text only.
pub(super) fn model_text<'c>(
    content: &'c Content,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Option<&'c str> {
    match &content.body {
        Body::Text(text) => {
            if !text.citations.is_empty() {
                losses.note(path, LossKind::Citations, "only answers cite here");
            }
            Some(&text.text)
        }
        Body::Refusal(text) => {
            losses.note(path, LossKind::Marking, "refusal becomes plain text");
            Some(&text.text)
        }
        Body::Error(fault) => {
            losses.note(path, LossKind::Marking, "error becomes plain text");
            Some(&fault.message)
        }
        Body::Media(_) => {
            let detail = "assistant messages hold no media here";
            losses.note(path, LossKind::Media, detail);
            None
        }
        Body::Reasoning(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => {
            losses.note(path, LossKind::VendorItem, "not a part of a message here");
            None
        }
    }
}

/// Append a part for a content of another vendor; nothing if it has no form as a part.
pub(super) fn translate(
    out: &mut String,
    content: &Content,
    place: PartPosition,
    dialect: &Dialect,
    path: &Path<'_>,
    losses: &mut Losses,
) {
    let by_model = place == PartPosition::ModelOutput;
    match &content.body {
        Body::Text(text) => text_part(out, text, by_model, path, losses),
        Body::Refusal(text) if by_model => {
            let mut object = ObjectWriter::new(out);
            object.str("type", "refusal").str("refusal", &text.text);
            object.end();
        }
        Body::Refusal(text) => {
            losses.note(path, LossKind::Marking, "refusal becomes plain text");
            text_part(out, text, by_model, path, losses);
        }
        Body::Media(_) if by_model => losses.note(
            path,
            LossKind::Media,
            "assistant messages hold no media here",
        ),
        Body::Media(media) => {
            let hears = place == PartPosition::Input && dialect.flavour == Flavour::OpenAi;
            match (media.kind, audio_data(media)) {
                (MediaKind::Audio, Some((data, format))) if hears => {
                    audio_part(out, data, format);
                }
                (MediaKind::Audio, _) if is_inline(media) => {
                    losses.note(path, LossKind::Media, "no such sound can be sent here");
                }
                _ => media_part(out, media, path, losses),
            }
        }
        Body::Error(fault) => {
            losses.note(path, LossKind::Marking, "error becomes plain text");
            let text = Text {
                text: fault.message.clone(),
                citations: Vec::new(),
            };
            text_part(out, &text, by_model, path, losses);
        }
        Body::Opaque(_) | Body::Unknown(_) => {
            foreign::note_vendor_only(&content.body, path, losses);
        }
        Body::Reasoning(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_) => {
            losses.note(path, LossKind::VendorItem, "not a part of a message here");
        }
    }
}

fn text_part(out: &mut String, text: &Text, by_model: bool, path: &Path<'_>, losses: &mut Losses) {
    let mut object = ObjectWriter::new(out);
    object.str(
        "type",
        if by_model {
            "output_text"
        } else {
            "input_text"
        },
    );
    object.str("text", &text.text);
    if by_model {
        let mut annotations = String::from("[");
        for citation in &text.citations {
            write_citation(&mut annotations, citation, path, losses);
        }
        annotations.push(']');
        object.raw("annotations", &annotations);
    } else if !text.citations.is_empty() {
        losses.note(path, LossKind::Citations, "only model text cites here");
    }
    object.end();
}

fn write_citation(out: &mut String, citation: &Citation, path: &Path<'_>, losses: &mut Losses) {
    let Some(url) = &citation.url else {
        losses.note(path, LossKind::Citations, "only addresses can be cited");
        return;
    };
    if out.len() > 1 {
        out.push(',');
    }
    let mut object = ObjectWriter::new(out);
    object
        .str("type", "url_citation")
        .str("url", url)
        .str("title", citation.title.as_deref().unwrap_or(url))
        .number("start_index", citation.start.unwrap_or(0))
        .number("end_index", citation.end.unwrap_or(0));
    object.end();
}

/// Whether the bytes of a piece of media are there.
fn is_inline(media: &Media) -> bool {
    match &media.source {
        MediaSource::Data(_) => true,
        MediaSource::Uri(uri) => uri.starts_with("data:"),
        MediaSource::File(_) => false,
    }
}

fn audio_part(out: &mut String, data: &str, format: &str) {
    let mut object = ObjectWriter::new(out);
    object.str("type", "input_audio");
    let mut audio = ObjectWriter::new(object.key("input_audio"));
    audio.str("data", data).str("format", format);
    audio.end();
    object.end();
}

fn media_part(out: &mut String, media: &Media, path: &Path<'_>, losses: &mut Losses) {
    let mut object = ObjectWriter::new(out);
    match media.kind {
        MediaKind::Image => {
            object.str("type", "input_image");
            match &media.source {
                MediaSource::File(file) => object.str("file_id", file),
                MediaSource::Uri(_) | MediaSource::Data(_) => {
                    object.str("image_url", &media_url(media))
                }
            };
            object.str("detail", "auto");
        }
        MediaKind::File | MediaKind::Audio | MediaKind::Video => {
            if media.kind != MediaKind::File {
                losses.note(path, LossKind::Media, "sent as a plain file");
            }
            object.str("type", "input_file");
            match &media.source {
                MediaSource::File(file) => object.str("file_id", file),
                MediaSource::Uri(uri) if !uri.starts_with("data:") => object.str("file_url", uri),
                MediaSource::Uri(_) | MediaSource::Data(_) => {
                    object.str("file_data", &media_url(media))
                }
            };
            if let Some(name) = &media.name {
                object.str("filename", name);
            }
        }
    }
    object.end();
}
