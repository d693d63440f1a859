//! What a server answered, as a tool's output.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use throughline_model::json::RawJson;
use throughline_model::{Body, Content, Media, MediaKind, MediaSource, Output};

use crate::tool::{ToolError, ToolOutput};

pub(super) fn read(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    if result.is_error == Some(true) {
        return Err(ToolError::reported(complaint(&result)));
    }
    let structured = result.structured_content.filter(|value| !value.is_null());
    let mut blocks = result.content;
    let Some(structured) = structured else {
        return Ok(plain(blocks).into());
    };
    let json = RawJson::new(&structured.to_string())?;
    let said = match blocks.as_slice() {
        [] => Said::Nothing,
        [ContentBlock::Text(text)] => said(&text.text, &structured),
        _ => Said::Else,
    };
    Ok(match said {
        Said::Nothing | Said::Same => ToolOutput::json(json),
        Said::Inner => plain(blocks).into(),
        Said::Else => {
            blocks.push(ContentBlock::text(json.get()));
            plain(blocks).into()
        }
    })
}

/// What text says beside a structured result.
enum Said {
    Nothing,
    /// The same.
    Same,
    /// What stands in its one member `result`: servers wrap a result that is no object that way.
    Inner,
    Else,
}

fn said(text: &str, structured: &Value) -> Said {
    let read: Option<Value> = serde_json::from_str(text).ok();
    if read.as_ref() == Some(structured) {
        return Said::Same;
    }
    let inner = structured.as_object().filter(|members| members.len() == 1);
    match inner.and_then(|members| members.get("result")) {
        Some(inner) if inner.as_str() == Some(text) || read.as_ref() == Some(inner) => Said::Inner,
        _ => Said::Else,
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
        // Only the server can follow its links, so the model is told of them in words.
        ContentBlock::ResourceLink(link) => {
            let about = link.description.map(|text| format!(": {text}"));
            let about = about.unwrap_or_default();
            Content::text(format!("{} <{}>{about}", link.name, link.uri))
        }
        other => unknown(&other),
    }
}

/// A kind that came later: the model reads it as JSON.
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

/// What a failed call says, for the model.
fn complaint(result: &CallToolResult) -> String {
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
