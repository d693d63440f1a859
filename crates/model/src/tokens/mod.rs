//! How large messages are, in tokens, without a vendor's vocabulary.
//!
//! A *unit* is about one token of a present-day vocabulary. Vendors and models cut texts
//! differently, so a count is an estimate; it is the same for every vendor, depends on nothing but
//! the content, and takes one pass over it. A store counts each item once, when it enters, and
//! keeps the count; what a vendor bills for it is estimated by `throughline-compact`.

mod text;

pub use text::text_units;

use crate::{Arguments, Body, Content, MediaSource, Message, Output, Reasoning};

/// What a message costs beside its contents: its role and what frames it.
const FRAME: u32 = 4;

/// What a call or its result costs beside its text: an id and the names of its members.
const ROUND: u32 = 6;

/// About what a picture or a page costs.
const MEDIA: u32 = 1_000;

/// About how many tokens a message has.
///
/// ```
/// use throughline_model::{Message, tokens};
///
/// assert_eq!(tokens::units(&Message::user("high water is at ten")), 10);
/// ```
pub fn units(message: &Message) -> u32 {
    FRAME.saturating_add(contents_units(&message.contents))
}

/// About how many tokens some contents have: what they add to a message that holds others.
///
/// ```
/// use throughline_model::{Message, tokens};
///
/// let message = Message::user("high water is at ten");
/// assert_eq!(tokens::contents_units(&message.contents), 6);
/// ```
pub fn contents_units(contents: &[Content]) -> u32 {
    contents.iter().map(content).fold(0, u32::saturating_add)
}

fn content(content: &Content) -> u32 {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => text_units(&text.text),
        // Without its vendor's form reasoning is never sent.
        Body::Reasoning(_) if content.vendor.is_none() => 0,
        Body::Reasoning(reasoning) => reasoning_units(reasoning),
        Body::Media(media) => match &media.source {
            MediaSource::Uri(_) | MediaSource::Data(_) | MediaSource::File(_) => MEDIA,
        },
        Body::ToolCall(call) => text_units(&call.name)
            .saturating_add(arguments(&call.arguments))
            .saturating_add(ROUND),
        Body::ToolResult(result) => output(&result.output).saturating_add(ROUND),
        Body::ApprovalRequest(request) => text_units(&request.name)
            .saturating_add(arguments(&request.arguments))
            .saturating_add(ROUND),
        Body::ApprovalResponse(_) => ROUND,
        Body::Error(fault) => text_units(&fault.message),
        Body::Opaque(_) => ROUND,
        Body::Unknown(json) => text_units(json.get()),
    }
}

fn reasoning_units(reasoning: &Reasoning) -> u32 {
    let texts = reasoning.text.iter().chain(&reasoning.summary);
    let texts = texts.map(|text| text_units(text));
    texts.fold(0, u32::saturating_add)
}

fn arguments(arguments: &Arguments) -> u32 {
    match arguments {
        Arguments::None => 0,
        Arguments::Text(text) | Arguments::Free(text) => text_units(text),
        Arguments::Json(json) => text_units(json.get()),
    }
}

fn output(output: &Output) -> u32 {
    match output {
        Output::None => 0,
        Output::Text(text) => text_units(text),
        Output::Json(json) => text_units(json.get()),
        Output::Parts(parts) => contents_units(parts),
    }
}
