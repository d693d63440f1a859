//! How large messages are, in tokens, without a vendor's vocabulary.
//!
//! A *unit* is about one token of the vocabulary o200k. Vendors and models cut texts differently,
//! so a count is an estimate; it is the same for every vendor, depends on nothing but the content,
//! and takes one pass over it. A store counts each item once, when it enters, and keeps the count;
//! what a vendor bills for it is estimated by `throughline-compact`, from the count and from the
//! [`Mix`] of the texts.

mod class;
mod languages;
mod mix;
mod pieces;
#[cfg(test)]
mod tests;
mod text;
mod weights;

pub use class::Class;
pub use mix::Mix;
pub use pieces::Pieces;
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
/// assert_eq!(tokens::units(&Message::user("high water is at ten")), 9);
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
/// assert_eq!(tokens::contents_units(&message.contents), 5);
/// ```
pub fn contents_units(contents: &[Content]) -> u32 {
    contents.iter().map(content).fold(0, u32::saturating_add)
}

/// Passes every text of a message that counts to a function, and returns the units of what is no
/// text: for programs that count tokens with a vocabulary.
///
/// ```
/// use throughline_model::{Message, tokens};
///
/// let message = Message::user("high water is at ten");
/// let mut units = 0;
/// let frame = tokens::for_each_text(&message, &mut |text| units += tokens::text_units(text));
/// assert_eq!(frame + units, tokens::units(&message));
/// ```
pub fn for_each_text(message: &Message, text: &mut impl FnMut(&str)) -> u32 {
    let frames = message.contents.iter().map(|content| visit(content, text));
    FRAME.saturating_add(frames.fold(0, u32::saturating_add))
}

fn content(content: &Content) -> u32 {
    let mut texts: u32 = 0;
    let frame = visit(content, &mut |text| {
        texts = texts.saturating_add(text_units(text));
    });
    frame.saturating_add(texts)
}

/// Passes on every text of a content. Returns the units of what is no text.
fn visit(content: &Content, text: &mut impl FnMut(&str)) -> u32 {
    match &content.body {
        Body::Text(body) | Body::Refusal(body) => text(&body.text),
        // Without its vendor's form reasoning is never sent.
        Body::Reasoning(_) if content.vendor.is_none() => {}
        Body::Reasoning(reasoning) => visit_reasoning(reasoning, text),
        Body::Media(media) => match &media.source {
            MediaSource::Uri(_) | MediaSource::Data(_) | MediaSource::File(_) => return MEDIA,
        },
        Body::ToolCall(call) => {
            text(&call.name);
            visit_arguments(&call.arguments, text);
            return ROUND;
        }
        Body::ToolResult(result) => {
            return visit_output(&result.output, text).saturating_add(ROUND);
        }
        Body::ApprovalRequest(request) => {
            text(&request.name);
            visit_arguments(&request.arguments, text);
            return ROUND;
        }
        Body::ApprovalResponse(_) | Body::Opaque(_) => return ROUND,
        Body::Error(fault) => text(&fault.message),
        Body::Unknown(json) => text(json.get()),
    }
    0
}

fn visit_reasoning(reasoning: &Reasoning, text: &mut impl FnMut(&str)) {
    let texts = reasoning.text.iter().chain(&reasoning.summary);
    texts.for_each(|part| text(part));
}

fn visit_arguments(arguments: &Arguments, text: &mut impl FnMut(&str)) {
    match arguments {
        Arguments::None => {}
        Arguments::Text(part) | Arguments::Free(part) => text(part),
        Arguments::Json(json) => text(json.get()),
    }
}

fn visit_output(output: &Output, text: &mut impl FnMut(&str)) -> u32 {
    match output {
        Output::None => 0,
        Output::Text(part) => {
            text(part);
            0
        }
        Output::Json(json) => {
            text(json.get());
            0
        }
        Output::Parts(parts) => {
            let frames = parts.iter().map(|part| visit(part, text));
            frames.fold(0, u32::saturating_add)
        }
    }
}
