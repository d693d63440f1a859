//! Parts and candidates that are put together from several frames.

use throughline_model::Path;
use throughline_model::json::{
    self, ObjectWriter, RawJson, Value, push_compact, push_compact_with,
};

use super::partial_args::PartialArgs;
use super::parts::is_fragment;
use super::types::{FUNCTION_CALL, PARTIAL_ARGS, PARTS, SIGNATURE, TEXT, WILL_CONTINUE, part_data};
use crate::DecodeError;
use crate::google::{either_member, merge_objects};
use crate::message_writer::array;
use crate::read::member;
use crate::template::{TemplateValue, restore};

/// One alternative answer of a streamed response.
pub(super) struct Candidate {
    /// Its index on the wire.
    pub(super) index: u64,
    /// Its members so far, without parts.
    candidate: RawJson,
    pieces: Vec<StreamedPart>,
    /// How many pieces there were when the frame began.
    before: usize,
}

/// One part so far.
enum StreamedPart {
    /// Plain text: the part without its text, and the text as a token.
    Plain {
        part: RawJson,
        token: String,
        thought: bool,
    },
    /// A call whose arguments arrive in fragments.
    Call {
        part: RawJson,
        args: PartialArgs,
        open: bool,
    },
    Whole(RawJson),
}

/// What became of a part.
pub(super) enum PartChange {
    /// Text that continues the part at this place.
    Continued(usize, String),
    /// It added nothing.
    Nothing,
    /// It is the piece at this place.
    New(usize),
}

impl Candidate {
    /// An alternative that nothing is known of yet.
    pub(super) fn new(index: u64) -> Self {
        Self {
            index,
            candidate: RawJson::object(|_| {}),
            pieces: Vec::new(),
            before: 0,
        }
    }

    /// A frame begins: its members replace those of the frames before.
    pub(super) fn begin_frame(&mut self, candidate: &Value<'_>) {
        self.candidate = merge_objects(Some(&self.candidate), candidate, merge_member);
        self.before = self.pieces.len();
    }

    /// Take one part of the frame.
    pub(super) fn add(
        &mut self,
        part: &Value<'_>,
        path: &Path<'_>,
    ) -> Result<PartChange, DecodeError> {
        let place = self.pieces.len();
        let piece = match plain(part) {
            Some((text, thought)) => {
                let first_of_frame = place == self.before;
                match self.pieces.last_mut() {
                    Some(StreamedPart::Plain {
                        token,
                        thought: kind,
                        ..
                    }) if first_of_frame && *kind == thought => {
                        token.push_str(text.token());
                        let text = text.to_str().into_owned();
                        return Ok(PartChange::Continued(place - 1, text));
                    }
                    _ if text.is_empty() && self.before > 0 => return Ok(PartChange::Nothing),
                    _ => StreamedPart::Plain {
                        part: without_text(part),
                        token: text.token().to_owned(),
                        thought,
                    },
                }
            }
            None => match self.call(part, path)? {
                Some(piece) => piece,
                None => return Ok(PartChange::Nothing),
            },
        };
        self.drop_empty();
        self.pieces.push(piece);
        Ok(PartChange::New(self.pieces.len() - 1))
    }

    /// Whether the piece at this place is a plain thought.
    pub(super) fn is_thought(&self, place: usize) -> bool {
        matches!(
            self.pieces.get(place),
            Some(StreamedPart::Plain { thought: true, .. })
        )
    }

    /// Whether the role is known. A content that is reported before its end must be one that can be
    /// sent back.
    pub(super) fn has_role(&self) -> bool {
        self.candidate.value().at(&["content", "role"]).is_some()
    }

    /// Leave out plain text of an earlier frame that stayed empty, now that more follows.
    fn drop_empty(&mut self) {
        let empty = matches!(
            self.pieces.last(),
            Some(StreamedPart::Plain { token, .. }) if token.is_empty()
        );
        if empty && self.pieces.len() == self.before {
            self.pieces.pop();
            self.before = self.pieces.len();
        }
    }

    /// The piece that a part begins; none if it continues a call.
    fn call(
        &mut self,
        part: &Value<'_>,
        path: &Path<'_>,
    ) -> Result<Option<StreamedPart>, DecodeError> {
        let found = part_data(part).filter(|found| found.tag == FUNCTION_CALL);
        let Some(found) = found.filter(|found| found.value.as_object().is_some()) else {
            return Ok(Some(StreamedPart::Whole(RawJson::of(part))));
        };
        let goes_on =
            either_member(found.value, WILL_CONTINUE).and_then(|(_, value)| value.as_bool());
        let goes_on = goes_on == Some(true);
        let fragments = either_member(found.value, PARTIAL_ARGS);
        let path = path.key(found.key);
        if is_fragment(found.value) {
            let open = self.pieces.iter_mut().rev().find_map(|piece| match piece {
                StreamedPart::Call { part, args, open } if *open => Some((part, args, open)),
                _ => None,
            });
            let Some((begun, args, open)) = open else {
                return Ok(Some(StreamedPart::Whole(RawJson::of(part))));
            };
            if let Some((key, fragments)) = fragments {
                args.apply(fragments, &path.key(key))?;
            }
            *open = goes_on;
            if let Some((key, signature)) = either_member(part, SIGNATURE)
                && either_member(&begun.value(), SIGNATURE).is_none()
            {
                let mut out = String::new();
                restore(
                    &mut out,
                    begun,
                    &[(&[key], TemplateValue::Replace(signature.raw()))],
                );
                *begun = RawJson::new(&out).unwrap_or_else(|_| begun.clone());
            }
            return Ok(None);
        }
        if !goes_on && fragments.is_none() {
            return Ok(Some(StreamedPart::Whole(RawJson::of(part))));
        }
        let given = member(found.value, "args");
        let mut args = given.map(PartialArgs::of).unwrap_or_default();
        if let Some((key, fragments)) = fragments {
            args.apply(fragments, &path.key(key))?;
        }
        Ok(Some(StreamedPart::Call {
            part: RawJson::of(part),
            args,
            open: goes_on,
        }))
    }

    /// The candidate with its parts.
    pub(super) fn to_json(&self) -> String {
        let parts: Vec<String> = self.pieces.iter().map(StreamedPart::to_json).collect();
        let elements = parts.join(",");
        let fills: &[(&[&str], TemplateValue<'_>)] =
            &[(&["content", PARTS], TemplateValue::Elements(&elements))];
        let mut out = String::new();
        restore(&mut out, &self.candidate, fills);
        out
    }
}

impl StreamedPart {
    fn to_json(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Whole(part) => out.push_str(part.get()),
            Self::Plain { part, token, .. } => {
                let value = part.value();
                let token = format!("\"{token}\"");
                match value.get(TEXT) {
                    Some(text) => push_compact_with(&mut out, &value, &[(text, &token)]),
                    None => out.push_str(part.get()),
                }
            }
            Self::Call { part, args, .. } => {
                let value = part.value();
                match part_data(&value) {
                    Some(found) => {
                        let call = whole_call(found.value, args);
                        push_compact_with(&mut out, &value, &[(found.value, &call)]);
                    }
                    None => out.push_str(part.get()),
                }
            }
        }
        out
    }
}

/// The call without the members of its fragments, with the arguments that they gave.
fn whole_call(call: &Value<'_>, args: &PartialArgs) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    let fragment_keys = [
        PARTIAL_ARGS.0,
        PARTIAL_ARGS.1,
        WILL_CONTINUE.0,
        WILL_CONTINUE.1,
        "args",
    ];
    for member in call.members() {
        if !fragment_keys.contains(&&*member.key.to_str()) {
            push_compact(object.key_token(&member.key), &member.value);
        }
    }
    object.raw("args", &args.to_json());
    object.end();
    out
}

/// The text of a part that has nothing but text, and whether it is a thought.
pub(super) fn plain<'a>(part: &Value<'a>) -> Option<(json::Text<'a>, bool)> {
    let members = part.as_object()?;
    let known = |key: &json::Text<'_>| key.is(TEXT) || key.is("thought");
    if part.has_duplicate_keys() || !members.iter().all(|member| known(&member.key)) {
        return None;
    }
    let thought = match part.get("thought") {
        None => false,
        Some(value) => value.as_bool()?,
    };
    Some((part.get(TEXT)?.as_text()?, thought))
}

fn without_text(part: &Value<'_>) -> RawJson {
    match part.get(TEXT) {
        Some(text) => RawJson::of_with(part, &[(text, "\"\"")]),
        None => RawJson::of(part),
    }
}

/// What a member of a candidate becomes. Citations and token probabilities are sent frame by frame,
/// so their lists grow; everything else is sent anew.
fn merge_member(key: &str, old: Option<&Value<'_>>, new: &Value<'_>) -> Option<String> {
    match key {
        "content" if new.as_object().is_some() => {
            let old = old.filter(|old| old.as_object().is_some()).map(RawJson::of);
            let content = merge_objects(old.as_ref(), new, |key, _, _| {
                (key == PARTS).then(|| "[]".to_owned())
            });
            Some(content.get().to_owned())
        }
        // A frame that only ends the response may say that there is no content.
        "content" => old.map(|old| RawJson::of(old).get().to_owned()),
        "citationMetadata" | "logprobsResult" => {
            let old = old.filter(|old| old.as_object().is_some())?;
            let old = RawJson::of(old);
            let grown = merge_objects(Some(&old), new, |_, old, new| {
                let lists = (old?.as_array()?, new.as_array()?);
                let all = lists.0.iter().chain(lists.1);
                let all: Vec<_> = all.map(|it| RawJson::of(it).get().to_owned()).collect();
                Some(array(&all))
            });
            Some(grown.get().to_owned())
        }
        _ => None,
    }
}
