use throughline_model::{Content, Message, Role, json};

use crate::render::{self, Repair, Target};
use crate::transcript::{self, Limits, Transcript, TranscriptShape};
use crate::{Codec, DecodeError, Format, Loss, LossKind, Losses, codec};

/// A transcript in another format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The JSON text.
    pub output: String,
    /// What the target cannot say.
    pub losses: Vec<Loss>,
    /// What was changed so that the target accepts it.
    pub repairs: Vec<Repair>,
}

/// Whether a history is repaired for its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Repairing {
    /// Only where it goes to another vendor than the one it came from.
    #[default]
    Elsewhere,
    /// Always, also where both formats are the same.
    Always,
}

/// How to convert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ConvertOptions {
    /// How much a file may hold.
    pub limits: Limits,
    /// Whether to repair.
    pub repairing: Repairing,
}

/// Convert a transcript file.
///
/// With `from` equal to `to`, and through `neutral` back to where it came from, this is a pure
/// codec: no repair, no reordering, no key added or dropped. To another vendor it renders, so that
/// the target accepts the history.
///
/// ```
/// use throughline_wire::convert;
///
/// let file = br#"[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}]"#;
/// let from = "openai-responses".parse().unwrap();
/// let neutral = "neutral".parse().unwrap();
/// let there = convert(file, &from, &neutral, Default::default()).unwrap();
/// let back = convert(there.output.as_bytes(), &neutral, &from, Default::default()).unwrap();
/// assert_eq!(back.output.as_bytes(), file);
///
/// let chat = convert(file, &from, &"openai-chat".parse().unwrap(), Default::default()).unwrap();
/// assert_eq!(chat.repairs[0].kind.as_str(), "closed_call");
/// ```
pub fn convert(
    file: &[u8],
    from: &Format,
    to: &Format,
    options: ConvertOptions,
) -> Result<Converted, DecodeError> {
    let transcript = transcript::read(file, from, options.limits)?;
    let target = match to {
        Format::Neutral => None,
        Format::Vendor(wire) => codec(wire),
    };
    let renders = match options.repairing {
        Repairing::Always => true,
        Repairing::Elsewhere => from != to && !is_from(&transcript, to),
    };
    match target {
        Some(codec) if renders => Ok(rendered(&transcript, codec)),
        _ => {
            let mut losses = Losses::default();
            Ok(Converted {
                output: transcript::write(&transcript, to, &mut losses),
                losses: losses.into_vec(),
                repairs: Vec::new(),
            })
        }
    }
}

/// Whether everything in a transcript came from one format.
fn is_from(transcript: &Transcript, format: &Format) -> bool {
    let Format::Vendor(wire) = format else {
        return false;
    };
    let request = &transcript.request;
    let mut contents = request
        .messages
        .iter()
        .flat_map(|message| &message.contents);
    let is_own = |content: &Content| {
        content
            .vendor
            .as_ref()
            .is_some_and(|vendor| vendor.wire == *wire)
    };
    let own_body = request
        .vendor
        .as_ref()
        .is_none_or(|vendor| vendor.wire == *wire);
    own_body && contents.all(is_own) && request.system.iter().all(is_own)
}

/// A transcript as the target accepts it.
fn rendered(transcript: &Transcript, codec: &dyn Codec) -> Converted {
    let mut request = transcript.request.clone();
    if transcript.shape == TranscriptShape::Array && !request.system.is_empty() {
        let system = std::mem::take(&mut request.system);
        request
            .messages
            .insert(0, Message::new(Role::System, system));
    }
    let target = Target::newest(codec.wire());
    let view = render::render(&request.messages, &target, &render::Options::default());
    let mut losses = Losses::default();
    let array = view.array();
    let output = match transcript.shape {
        TranscriptShape::Array => {
            if view.system.is_some() {
                let path = throughline_model::Path::Root.key("system");
                losses.note(
                    &path,
                    LossKind::SystemText,
                    "an array has no place for it here",
                );
            }
            array
        }
        TranscriptShape::Request => {
            // What was rendered is the target's own now, so its codec writes it as it is.
            let items = json::parse(&array);
            let messages = items.ok().and_then(|items| {
                let items = items.as_array()?;
                codec.decode_messages(items).ok()
            });
            request.messages = messages.unwrap_or_default();
            request.system.extend(view.system.map(Content::text));
            codec.encode_request(&request, &mut losses)
        }
    };
    let mut all = view.losses;
    all.extend(losses.into_vec());
    Converted {
        output,
        losses: all,
        repairs: view.repairs,
    }
}
