//! Blocks that are not tools: text, media and reasoning.

use throughline_model::json::{RawJson, Value};
use throughline_model::{
    Body, Citation, Content, Extra, MediaKind, Path, Reasoning, Text, Vendor, Wire,
};

use super::{media, types};
use crate::read::{self, text_of};
use crate::template::Extractor;
use crate::template::{TemplateValue, restore};
use crate::{DecodeError, WireType};

/// The type of a block; none for one that this version does not know.
pub(super) fn block_type(
    block: &Value<'_>,
    path: &Path<'_>,
) -> Result<Option<&'static WireType>, DecodeError> {
    if block.as_object().is_none() {
        return Err(DecodeError::expected(path, "a block", block));
    }
    Ok(types::block_type(&read::required_str(block, "type", path)?))
}

/// Read one block of a message, a tool result or the system text. Tools are read by the block
/// decoder; here they are kept as they are, like everything without a neutral form.
pub(super) fn decode(block: &Value<'_>, path: &Path<'_>) -> Result<Content, DecodeError> {
    if block.as_object().is_none() {
        return Err(DecodeError::expected(path, "a block", block));
    }
    let tag = read::required_str(block, "type", path)?;
    let mut extractor = Extractor::new(block);
    let opaque = || Body::opaque(&*tag);
    let body = match &*tag {
        "text" => Body::Text(Text {
            text: extractor.required_text("text", "a string", path)?,
            citations: citations(block),
        }),
        "thinking" => {
            let text = extractor.required_text("thinking", "a string", path)?;
            let signature = read::optional_str(block, "signature", path)?;
            Body::Reasoning(Reasoning {
                summary: Vec::new(),
                text: if text.is_empty() {
                    Vec::new()
                } else {
                    vec![text]
                },
                sealed: signature.is_some_and(|signature| !signature.is_empty()),
            })
        }
        "redacted_thinking" => {
            read::required_str(block, "data", path)?;
            Body::Reasoning(Reasoning {
                sealed: true,
                ..Reasoning::default()
            })
        }
        "image" => media::decode(MediaKind::Image, block, &mut extractor, path)?
            .map_or_else(opaque, Body::Media),
        "document" => media::decode(MediaKind::File, block, &mut extractor, path)?
            .map_or_else(opaque, Body::Media),
        _ => opaque(),
    };
    Ok(Content::new(body).with_vendor(Vendor::part(Wire::Anthropic, extractor.into_template())))
}

/// Positions in a citation are places in the source, not in the text that cites, so they stay
/// with the vendor's block.
fn citations(block: &Value<'_>) -> Vec<Citation> {
    let list = block.get("citations").and_then(Value::as_array);
    list.unwrap_or_default()
        .iter()
        .map(|citation| Citation {
            url: text_of(citation, "url"),
            title: text_of(citation, "title").or_else(|| text_of(citation, "document_title")),
            file: text_of(citation, "file_id"),
            start: None,
            end: None,
            extra: Extra::NONE,
        })
        .collect()
}

/// Append a block that came from this format.
pub(super) fn encode(out: &mut String, body: &Body, block: &RawJson) {
    match body {
        Body::Text(text) => restore(out, block, &[(&["text"], TemplateValue::Text(&text.text))]),
        Body::Reasoning(reasoning) => {
            let text = reasoning.text.concat();
            restore(out, block, &[(&["thinking"], TemplateValue::Text(&text))]);
        }
        Body::Media(found) => media::encode(out, found, block),
        Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Refusal(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => out.push_str(block.get()),
    }
}
