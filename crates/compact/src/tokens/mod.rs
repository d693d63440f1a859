//! How large a message is, in units that stand for tokens.

use throughline_model::{Arguments, Body, Content, MediaSource, Message, Output};

/// What a message costs beside its text: its role and its frame.
const FRAME: u32 = 4;

/// About how many tokens a text has: ASCII by weight, everything else by character.
pub fn text_units(text: &str) -> u32 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text.bytes().filter(|byte| *byte >= 0xC0).count();
    u32::try_from((ascii * 2).div_ceil(7) + other).unwrap_or(u32::MAX)
}

/// About how many tokens a message has.
pub fn units(message: &Message) -> u32 {
    let contents = message.contents.iter().map(content);
    contents.fold(FRAME, u32::saturating_add)
}

fn content(content: &Content) -> u32 {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => text_units(&text.text),
        Body::Reasoning(reasoning) => reasoning
            .text
            .iter()
            .chain(&reasoning.summary)
            .map(|text| text_units(text))
            .fold(0, u32::saturating_add),
        Body::Media(media) => match &media.source {
            MediaSource::Uri(text) if !text.starts_with("data:") => text_units(text),
            MediaSource::Uri(_) | MediaSource::Data(_) | MediaSource::File(_) => 800,
        },
        Body::ToolCall(call) => {
            let arguments = match &call.arguments {
                Arguments::None => 0,
                Arguments::Text(text) | Arguments::Free(text) => text_units(text),
                Arguments::Json(json) => text_units(json.get()),
            };
            arguments.saturating_add(text_units(&call.name) + FRAME)
        }
        Body::ToolResult(result) => match &result.output {
            Output::None => FRAME,
            Output::Text(text) => text_units(text).saturating_add(FRAME),
            Output::Json(json) => text_units(json.get()).saturating_add(FRAME),
            Output::Parts(parts) => parts
                .iter()
                .map(self::content)
                .fold(FRAME, u32::saturating_add),
        },
        Body::ApprovalRequest(_) | Body::ApprovalResponse(_) => 16,
        Body::Error(fault) => text_units(&fault.message),
        Body::Opaque(_) => FRAME,
        Body::Unknown(json) => text_units(json.get()),
    }
}
