//! Converts the answer of a server to a tool's output.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use throughline_model::json::RawJson;
use throughline_model::{Body, Content, Media, MediaKind, MediaSource, Output};

use crate::tool::{ToolError, ToolOutput};

pub(super) fn read(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    if result.is_error == Some(true) {
        return Err(ToolError::reported(error_text(&result)));
    }
    let structured = result.structured_content.filter(|value| !value.is_null());
    let mut blocks = result.content;
    let Some(structured) = structured else {
        return Ok(plain(blocks).into());
    };
    let json = RawJson::new(&structured.to_string())?;
    let text_match = match blocks.as_slice() {
        [] => TextMatch::NoText,
        [ContentBlock::Text(text)] => match_text(&text.text, &structured),
        _ => TextMatch::Different,
    };
    Ok(match text_match {
        TextMatch::NoText | TextMatch::Equal => ToolOutput::json(json),
        TextMatch::Unwrapped => plain(blocks).into(),
        TextMatch::Different => {
            blocks.push(ContentBlock::text(json.get()));
            plain(blocks).into()
        }
    })
}

/// How the text of an answer relates to its structured result.
enum TextMatch {
    /// There is no text.
    NoText,
    /// They are equal.
    Equal,
    /// The text equals the single member `result`: servers wrap a result that is not an object.
    Unwrapped,
    /// The text says something else.
    Different,
}

fn match_text(text: &str, structured: &Value) -> TextMatch {
    let read: Option<Value> = serde_json::from_str(text).ok();
    if read.as_ref() == Some(structured) {
        return TextMatch::Equal;
    }
    let inner = structured.as_object().filter(|members| members.len() == 1);
    match inner.and_then(|members| members.get("result")) {
        Some(inner) if inner.as_str() == Some(text) || read.as_ref() == Some(inner) => {
            TextMatch::Unwrapped
        }
        _ => TextMatch::Different,
    }
}

fn plain(mut blocks: Vec<ContentBlock>) -> Output {
    match blocks.as_mut_slice() {
        [] => Output::None,
        [ContentBlock::Text(text)] => Output::Text(std::mem::take(&mut text.text)),
        _ => Output::Parts(blocks.into_iter().map(part).collect()),
    }
}

fn part(block: ContentBlock) -> Content {
    match block {
        ContentBlock::Text(text) => Content::text(text.text),
        ContentBlock::Image(image) => media(MediaKind::Image, Some(image.mime_type), image.data),
        ContentBlock::Audio(audio) => media(MediaKind::Audio, Some(audio.mime_type), audio.data),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => Content::text(text),
            ResourceContents::BlobResourceContents {
                mime_type, blob, ..
            } => media(kind(mime_type.as_deref()), mime_type, blob),
            other => unknown(&other),
        },
        // Only the server can resolve its links, so the model is shown them as text.
        ContentBlock::ResourceLink(link) => {
            let about = link.description.map(|text| format!(": {text}"));
            let about = about.unwrap_or_default();
            Content::text(format!("{} <{}>{about}", link.name, link.uri))
        }
        other => unknown(&other),
    }
}

/// A kind of content that this version does not know; the model is shown its JSON.
fn unknown(block: &impl serde::Serialize) -> Content {
    Content::text(serde_json::to_string(block).unwrap_or_default())
}

fn kind(media_type: Option<&str>) -> MediaKind {
    match media_type.and_then(|kind| kind.split('/').next()) {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        Some("video") => MediaKind::Video,
        _ => MediaKind::File,
    }
}

fn media(kind: MediaKind, media_type: Option<String>, data: String) -> Content {
    Content::new(Body::Media(Media {
        kind,
        media_type,
        source: MediaSource::Data(data),
        name: None,
        transcript: None,
    }))
}

/// The error text of a failed call, for the model.
fn error_text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if !text.trim().is_empty() {
        return text;
    }
    match &result.structured_content {
        Some(value) if !value.is_null() => value.to_string(),
        _ => "the tool failed and does not say why".to_owned(),
    }
}
