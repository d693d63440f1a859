//! How large messages are, and what a vendor will bill for them.
//!
//! A *unit* is about one token of a present-day vocabulary. Units are counted once, when a message
//! enters a record, and stay with it; no vocabulary is needed for it. What a vendor bills differs
//! by model and by what it adds on its side, so a [`Calibration`] learns from each bill what units
//! come to. Stored units never change.

mod calibration;
mod text;

use throughline_model::{Arguments, Body, Content, MediaSource, Message, Output, Reasoning};

pub use calibration::{Calibration, Calibrations, Estimate};
pub use text::text_units;

/// What a message costs beside its text: its role and what frames it.
const FRAME: u32 = 4;

/// What a call or its result costs beside its text: an id and the names of its members.
const ROUND: u32 = 6;

/// About what a picture or a page costs.
const MEDIA: u32 = 1_000;

/// About how many tokens a message has.
///
/// ```
/// use throughline_compact::tokens::units;
/// use throughline_model::Message;
///
/// assert_eq!(units(&Message::user("high water is at ten")), 10);
/// ```
pub fn units(message: &Message) -> u32 {
    let contents = message.contents.iter().map(content);
    contents.fold(FRAME, u32::saturating_add)
}

fn content(content: &Content) -> u32 {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => text_units(&text.text),
        // Without its vendor's form reasoning is never sent to anybody.
        Body::Reasoning(_) if content.vendor.is_none() => 0,
        Body::Reasoning(reasoning) => thought(reasoning),
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

fn thought(reasoning: &Reasoning) -> u32 {
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
        Output::Parts(parts) => parts.iter().map(content).fold(0, u32::saturating_add),
    }
}
