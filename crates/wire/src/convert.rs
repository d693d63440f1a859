use throughline_model::{Content, Message, Role, json};

use crate::render::{self, Repair, Target};
use crate::transcript::{self, Limits, Transcript, TranscriptShape};
use crate::{Codec, DecodeError, Format, Loss, LossKind, Losses, codec};

/// A transcript in another format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The JSON text.
    pub output: String,
    /// What the target cannot express.
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
    Ok(match options.repairing {
        Repairing::Always => render_transcript(&transcript, to, &render::Options::default()),
        Repairing::Elsewhere => convert_transcript(&transcript, from, to),
    })
}

/// Convert a transcript that was read from a file of a format, by the rules of [`convert`].
pub fn convert_transcript(transcript: &Transcript, from: &Format, to: &Format) -> Converted {
    if from == to || is_from(transcript, to) {
        written(transcript, to)
    } else {
        render_transcript(transcript, to, &render::Options::default())
    }
}

/// A transcript as its target accepts it, whatever it came from. Our own form takes everything as
/// it is.
pub fn render_transcript(
    transcript: &Transcript,
    to: &Format,
    options: &render::Options,
) -> Converted {
    let target = match to {
        Format::Neutral => None,
        Format::Vendor(wire) => codec(wire),
    };
    match target {
        Some(codec) => rendered(transcript, codec, options),
        None => written(transcript, to),
    }
}

/// A transcript through a codec alone.
fn written(transcript: &Transcript, to: &Format) -> Converted {
    let mut losses = Losses::default();
    Converted {
        output: transcript::write(transcript, to, &mut losses),
        losses: losses.into_vec(),
        repairs: Vec::new(),
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
fn rendered(transcript: &Transcript, codec: &Codec, options: &render::Options) -> Converted {
    let mut request = transcript.request.clone();
    let leading = transcript.shape == TranscriptShape::Array && !request.system.is_empty();
    if leading {
        let system = std::mem::take(&mut request.system);
        request
            .messages
            .insert(0, Message::new(Role::System, system));
    }
    let target = Target::newest(codec.wire());
    let view = render::render(&request.messages, &target, options);
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
    let (mut all, mut repairs) = (view.losses, view.repairs);
    if leading {
        let losses = all.iter_mut().map(|loss| &mut loss.path);
        let repairs = repairs.iter_mut().map(|repair| &mut repair.path);
        for path in losses.chain(repairs) {
            *path = in_file(path);
        }
    }
    all.extend(losses.into_vec());
    Converted {
        output,
        losses: all,
        repairs,
    }
}

/// A path in the file, where the system text went before the messages as one of them.
fn in_file(path: &str) -> String {
    let numbered = path
        .strip_prefix("messages[")
        .and_then(|rest| rest.split_once(']'));
    let Some((Ok(index), rest)) = numbered.map(|(index, rest)| (index.parse::<usize>(), rest))
    else {
        return path.to_owned();
    };
    match index.checked_sub(1) {
        Some(index) => format!("messages[{index}]{rest}"),
        None => format!("system{}", rest.strip_prefix(".contents").unwrap_or(rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::{convert, in_file};
    use crate::LossKind;

    #[test]
    fn paths_are_those_of_the_file() {
        assert_eq!(in_file("messages[0]"), "system");
        assert_eq!(in_file("messages[0].contents[1]"), "system[1]");
        assert_eq!(
            in_file("messages[12].contents[1].output[0]"),
            "messages[11].contents[1].output[0]"
        );
        assert_eq!(in_file("system"), "system");
    }

    #[test]
    fn system_text_before_the_messages_does_not_shift_what_is_listed() {
        let file = br#"{"format":"throughline.neutral/1","system":"Be brief.","messages":[
            {"role":"user","contents":[{"kind":"text","text":"Ahoy."}]},
            {"role":"assistant","contents":[{"kind":"reasoning","text":["hm"]},{"kind":"tool_call","call":"c","origin":"natural","family":"function","name":"f"}]}]}"#;
        let (from, to) = (
            "neutral".parse().unwrap(),
            "openai-responses".parse().unwrap(),
        );
        let found = convert(file, &from, &to, Default::default()).unwrap();
        assert_eq!(found.losses[0].kind, LossKind::Reasoning);
        assert_eq!(found.losses[0].path, "messages[1].contents[0]");
        assert_eq!(found.repairs[0].kind.as_str(), "closed_call");
        assert_eq!(found.repairs[0].path, "messages[1].contents[1]");
    }
}
