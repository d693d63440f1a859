//! Each content and each part by itself.

use throughline_model::Path;
use throughline_model::json::{Member, Value};

use super::{
    CALL, CODE, CODE_RESULT, Checker, Content, PLACEHOLDER, Part, RESPONSE, TOOL_CALL,
    TOOL_RESPONSE, either,
};
use crate::validate::object_schema::{Field, Kind, KnownObject, member, optional, required, short};

const TEXT: Kind = Kind::TEXT;
const OBJECT: Kind = Kind::OBJECT;

/// A data key in both spellings, and the members that the service requires.
struct PartType {
    key: &'static str,
    snake: &'static str,
    fields: &'static [Field],
}

const fn part(key: &'static str, snake: &'static str, fields: &'static [Field]) -> PartType {
    PartType { key, snake, fields }
}

static PART_TYPES: &[PartType] = &[
    part("text", "text", &[]),
    part(
        CALL,
        "function_call",
        &[
            required("name", TEXT),
            optional("id", TEXT),
            optional("args", OBJECT),
        ],
    ),
    part(
        RESPONSE,
        "function_response",
        // The name has a rule of its own.
        &[required("response", OBJECT), optional("id", TEXT)],
    ),
    part(
        CODE,
        "executable_code",
        &[
            required("code", TEXT),
            required("language", TEXT),
            optional("id", TEXT),
        ],
    ),
    part(
        CODE_RESULT,
        "code_execution_result",
        &[
            required("outcome", TEXT),
            optional("output", TEXT),
            optional("id", TEXT),
        ],
    ),
    part(
        TOOL_CALL,
        "tool_call",
        &[optional("id", TEXT), optional("args", OBJECT)],
    ),
    part(
        TOOL_RESPONSE,
        "tool_response",
        &[optional("id", TEXT), optional("response", OBJECT)],
    ),
    part("inlineData", "inline_data", &[required("data", TEXT)]),
    part("fileData", "file_data", &[]),
];

/// Base64 in either alphabet, padded or not.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    digits.bytes().all(known)
        && digits.len() % 4 != 1
        && (padding == 0 || (padding <= 2 && text.len().is_multiple_of(4)))
}

impl Checker<'_> {
    /// One content by itself.
    pub(super) fn content<'v, 'a>(
        &mut self,
        index: usize,
        value: &'v Value<'a>,
    ) -> Option<Content<'v, 'a>> {
        let contents = Path::Root.key("contents");
        let path = contents.index(index);
        if value.as_object().is_none() {
            let message = format!("a content must be an object, not {}", value.kind());
            self.report.add("S-G1", &path, message);
            return None;
        }
        let place = path.key("parts");
        let list = match member(value, "parts").map(Value::as_array) {
            Some(Some(list)) => list,
            Some(None) => {
                let message = "`parts` must be an array of parts";
                self.report.add("S-G1", &place, message);
                &[]
            }
            None => &[],
        };
        let wrong = member(value, "parts").is_some_and(|parts| parts.as_array().is_none());
        if list.is_empty() && !wrong {
            let message = "the content has no parts; leave it out";
            self.report.add("G-8", &path, message).with_vendor_text(
                "Unable to submit request because it must have a text parameter. …",
            );
        }
        let mut parts = Vec::with_capacity(list.len());
        for (index, part) in list.iter().enumerate() {
            parts.extend(self.part(index, part, &place.index(index)));
        }
        let role = member(value, "role").and_then(Value::as_str);
        let content = Content {
            index,
            is_model: role.as_deref() == Some("model"),
            parts,
        };
        let known = match role.as_deref() {
            Some("user" | "model") => true,
            Some("function") => content.has(RESPONSE),
            Some(_) => false,
            // One that is missing is the user's.
            None => member(value, "role").is_none(),
        };
        if !known {
            let message = "`role` must be `user` or `model`; system text goes to \
                           `systemInstruction` or into user text";
            let role = role.unwrap_or_default();
            self.report
                .add("S-G2", &path.key("role"), message)
                .about([role.into_owned()]);
        }
        for part in &content.parts {
            let misplaced = match part.tag {
                CALL | CODE | CODE_RESULT | TOOL_CALL | TOOL_RESPONSE => known && !content.is_model,
                RESPONSE => content.is_model,
                _ => false,
            };
            if misplaced {
                let right = if content.is_model { "user" } else { "model" };
                let message = format!("`{}` stands in `{right}` contents only", part.key);
                self.report
                    .add("S-G4", &place.index(part.index), message)
                    .about([part.key]);
            }
        }
        Some(content)
    }

    fn part<'v, 'a>(
        &mut self,
        index: usize,
        value: &'v Value<'a>,
        path: &Path<'_>,
    ) -> Option<Part<'v, 'a>> {
        if value.as_object().is_none() {
            let message = format!("a part must be an object, not {}", value.kind());
            self.report.add("S-G1", path, message);
            return None;
        }
        let signature = either(value, "thoughtSignature", "thought_signature");
        let signature = signature.and_then(Value::as_str);
        let signature = signature.filter(|text| !text.is_empty());
        if let Some(signature) = &signature {
            self.signature(signature, path);
        }
        let mut found = PART_TYPES.iter().filter_map(|kind| {
            let key = if value.get(kind.key).is_some() {
                kind.key
            } else {
                kind.snake
            };
            Some((kind, key, member(value, key)?))
        });
        let Some((kind, key, body)) = found.next() else {
            // A kind that is not known here has a key that is not known here.
            let beside =
                |key: &str| ["thought", "thoughtSignature", "thought_signature"].contains(&key);
            let empty =
                |member: &Member<'_>| member.value.is_null() || beside(&member.key.to_str());
            if value.members().iter().all(empty) {
                let message = "the part holds nothing; leave it out";
                self.report.add("G-8", path, message);
            }
            return None;
        };
        if let Some((_, second, _)) = found.next() {
            let message = format!("a part has one data key, not both `{key}` and `{second}`");
            self.report.add("S-G3", path, message).about([key, second]);
        }
        let place = path.key(key);
        if kind.key == "text" {
            match body.as_text() {
                None => {
                    let message = "`text` must be a string";
                    self.report.add("S-G3", &place, message).about([key]);
                }
                Some(text) if text.is_empty() && signature.is_none() => {
                    let message = "the text is empty; leave the part out";
                    let vendor = "Unable to submit request because it has an empty text \
                                  parameter. Add a value to the parameter and try again.";
                    self.report
                        .add("G-8", path, message)
                        .with_vendor_text(vendor);
                }
                Some(_) => {}
            }
            return None;
        }
        if body.as_object().is_none() {
            let message = format!("`{key}` must be an object");
            self.report.add("S-G3", &place, message).about([key]);
            return None;
        }
        let known = KnownObject {
            rule: "S-G3",
            tag: key,
            object: body,
            path: &place,
        };
        known.check(kind.fields, self.report);
        let part = Part {
            index,
            tag: kind.key,
            key,
            snake: kind.snake,
            body,
            signature: signature.map(std::borrow::Cow::into_owned),
        };
        self.tool_part(&part, &place);
        Some(part)
    }

    /// Check a part against the model's generation and the list of issued ids.
    fn tool_part(&mut self, part: &Part<'_, '_>, place: &Path<'_>) {
        let generation = self.profile.generation;
        let id = part.id();
        let issued = self.profile.issued.as_ref();
        let invented = match (issued, &id) {
            (Some(issued), Some(id)) => !issued.has_id(id),
            _ => false,
        };
        match part.tag {
            TOOL_CALL | TOOL_RESPONSE => {
                let problem = if !generation.tool_combination {
                    "the model does not know tool combination"
                } else if id.is_none() {
                    "it has no id"
                } else if invented {
                    "Gemini did not issue its id"
                } else {
                    return;
                };
                let message = format!("{problem}; leave the part out, or send it as text");
                self.report
                    .add("G-10", place, message)
                    .about(id.or_else(|| Some(part.key.to_owned())));
            }
            CALL | RESPONSE | CODE | CODE_RESULT => {
                if id.is_some() && (!generation.call_ids || invented) {
                    let (message, vendor) = if invented && generation.call_ids {
                        let message = "Gemini did not issue this id; leave it out on both ends";
                        (message, String::new())
                    } else {
                        let at = place.to_string().replace(part.key, part.snake);
                        let vendor = format!(
                            "Invalid JSON payload received. Unknown name \"id\" at '{at}': \
                             Cannot find field."
                        );
                        ("the model takes no ids; leave them out", vendor)
                    };
                    self.report
                        .add("G-4", &place.key("id"), message)
                        .about(id)
                        .with_vendor_text(vendor);
                }
                let media = part.tag == RESPONSE
                    && member(part.body, "parts")
                        .and_then(Value::as_array)
                        .is_some_and(|parts| !parts.is_empty());
                if media && !generation.result_media {
                    let message = "the model takes no media in results; put it into a user part \
                                   after them";
                    self.report
                        .add("S-G5", &place.key("parts"), message)
                        .about(part.name());
                }
            }
            _ => {}
        }
    }

    fn signature(&mut self, signature: &str, path: &Path<'_>) {
        let issued = self.profile.issued.as_ref();
        let invented = issued.is_some_and(|issued| issued.sealed(signature).is_none());
        if signature != PLACEHOLDER && (invented || !is_base64(signature)) {
            let message = format!(
                "not a signature that Gemini issued; leave it out, or put `{PLACEHOLDER}` on the \
                 first call of the step"
            );
            self.report
                .add("G-6", &path.key("thoughtSignature"), message)
                .about([short(signature)]);
        }
    }
}
