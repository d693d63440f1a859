//! Parts of contents, both ways.

use std::borrow::Cow;
use std::ops::Range;

use throughline_model::json::{RawJson, Value};
use throughline_model::{
    Arguments, Body, Content, Form, Media, MediaSource, Outcome, Output, Path, Reasoning, Role,
    Scope, Status, Text, ToolCall, ToolResult, Vendor, Wire,
};

use super::pairing::{Ordinals, PendingCalls};
use super::partial_args::PartialArgs;
use super::types::{
    CODE_RESULT, DATA_KEYS, EXECUTABLE_CODE, FILE_DATA, FILE_URI, FUNCTION_CALL, FUNCTION_RESPONSE,
    INLINE_DATA, MIME_TYPE, PARTIAL_ARGS, PARTS, PartData, SIGNATURE, TEXT, TOOL_CALL,
    TOOL_RESPONSE, WILL_CONTINUE, part_data, part_type,
};
use crate::DecodeError;
use crate::google::{either_member, either_string, media_kind, wrapped_arguments};
use crate::native;
use crate::read::{self, member};
use crate::template::Extractor;
use crate::template::{TemplateValue, restore};
use crate::wire_type::WireType;

/// Reads parts one after the other; what has no id is paired with what came before.
#[derive(Debug, Default)]
pub(super) struct PartDecoder {
    pending: PendingCalls,
}

impl PartDecoder {
    /// A content of this role begins.
    pub(super) fn begin_content(&mut self, role: &Role) {
        self.pending.begin_content(role);
    }

    /// Read one part. `ordinals` count the calls and results in `scope`.
    pub(super) fn part(
        &mut self,
        part: &Value<'_>,
        scope: Scope<'_>,
        ordinals: &mut Ordinals,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        if part.as_object().is_none() {
            return Err(DecodeError::expected(path, "a part", part));
        }
        let Some(found) = part_data(part) else {
            // A kind of part that is newer than this code, or one that holds nothing.
            let tag = part.members().first();
            let tag = tag.map(|member| member.key.to_str().into_owned());
            return Ok(opaque(&tag.unwrap_or_default(), part));
        };
        let here = path.key(found.key);
        match found.tag {
            TEXT => text(part, found, &here),
            INLINE_DATA | FILE_DATA => media(part, found, &here),
            FUNCTION_CALL if is_fragment(found.value) => Ok(opaque(FUNCTION_CALL, part)),
            _ => {
                if found.value.as_object().is_none() {
                    return Err(DecodeError::expected(&here, "an object", found.value));
                }
                let Some(row) = part_type(found.tag) else {
                    return Ok(opaque(found.tag, part));
                };
                match found.tag {
                    FUNCTION_CALL | EXECUTABLE_CODE | TOOL_CALL => {
                        self.call(row, part, found, scope, ordinals, &here)
                    }
                    _ => self.result(row, part, found, scope, ordinals, &here),
                }
            }
        }
    }

    fn call(
        &mut self,
        row: &WireType,
        part: &Value<'_>,
        found: PartData<'_, '_>,
        scope: Scope<'_>,
        ordinals: &mut Ordinals,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let id_fields = row.id_fields(found.value, path)?;
        let id = ordinals.call(row.given_id(&id_fields), scope);
        let name = name(found, path)?;
        self.pending.push(id.clone(), &row.family, &name);
        let mut extractor = Extractor::new(part);
        let arguments =
            match found.tag {
                EXECUTABLE_CODE => match member(found.value, "code") {
                    None => Arguments::None,
                    Some(code) => Arguments::Free(extractor.text(code).ok_or_else(|| {
                        DecodeError::expected(&path.key("code"), "a string", code)
                    })?),
                },
                _ => match (object(found.value, "args", path)?, found.value.get("args")) {
                    (Some(args), _) => Arguments::Json(extractor.json(args)),
                    (None, Some(_null)) => Arguments::None,
                    (None, None) => partial(found.value, path)?,
                },
            };
        let goes_on = either_member(found.value, WILL_CONTINUE);
        let call = ToolCall {
            call: id,
            family: row.family.clone(),
            name,
            arguments,
            status: goes_on
                .and_then(|(_, value)| value.as_bool())
                .filter(|goes_on| *goes_on)
                .map(|_| Status::InProgress),
            runner: row.runner,
        };
        let vendor =
            Vendor::part(Wire::Gemini, extractor.into_template()).with_id_fields(id_fields);
        Ok(Content::from(call).with_vendor(vendor))
    }

    fn result(
        &mut self,
        row: &WireType,
        part: &Value<'_>,
        found: PartData<'_, '_>,
        scope: Scope<'_>,
        ordinals: &mut Ordinals,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let id_fields = row.id_fields(found.value, path)?;
        let name = name(found, path)?;
        let mut extractor = Extractor::new(part);
        let (output, outcome) = match found.tag {
            CODE_RESULT => code_output(found.value, &mut extractor, path)?,
            _ => output(found.value, &mut extractor, path)?,
        };
        let family = row.family.clone();
        let mut result = match row.given_id(&id_fields) {
            Some(id) => {
                self.pending.answered(&id);
                ToolResult::answering(id, family, output)
            }
            None => match self.pending.claim(&row.family, &name) {
                Some(id) => ToolResult::answering(id, family, output),
                None => ToolResult::standalone(ordinals.standalone(scope), family, output),
            },
        };
        result.name = Some(name).filter(|name| !name.is_empty());
        result.outcome = outcome;
        result.runner = row.runner;
        let vendor =
            Vendor::part(Wire::Gemini, extractor.into_template()).with_id_fields(id_fields);
        Ok(Content::from(result).with_vendor(vendor))
    }
}

/// Whether a function call only continues or ends one that was begun before.
pub(super) fn is_fragment(call: &Value<'_>) -> bool {
    call.as_object().is_some()
        && ["name", "id", "args"]
            .iter()
            .all(|key| member(call, key).is_none())
}

fn opaque(tag: &str, part: &Value<'_>) -> Content {
    Content::new(Body::opaque(tag)).with_vendor(Vendor::part(Wire::Gemini, RawJson::of(part)))
}

/// The name of a function, or the type of a server tool.
fn name(found: PartData<'_, '_>, path: &Path<'_>) -> Result<String, DecodeError> {
    let keys = match found.tag {
        FUNCTION_CALL | FUNCTION_RESPONSE => ("name", "name"),
        TOOL_CALL | TOOL_RESPONSE => ("toolType", "tool_type"),
        _ => return Ok(String::new()),
    };
    let Some((key, _)) = either_member(found.value, keys) else {
        return Ok(String::new());
    };
    let name = read::optional_str(found.value, key, path)?;
    Ok(name.unwrap_or_default().into_owned())
}

/// An object member; absent and null are none, anything else is an error.
fn object<'v, 'a>(
    value: &'v Value<'a>,
    key: &'static str,
    path: &Path<'_>,
) -> Result<Option<&'v Value<'a>>, DecodeError> {
    match member(value, key) {
        Some(found) if found.as_object().is_none() => {
            Err(DecodeError::expected(&path.key(key), "an object", found))
        }
        found => Ok(found),
    }
}

/// The arguments that one fragment brings.
fn partial(call: &Value<'_>, path: &Path<'_>) -> Result<Arguments, DecodeError> {
    let Some((key, fragments)) = either_member(call, PARTIAL_ARGS) else {
        return Ok(Arguments::None);
    };
    let mut args = PartialArgs::default();
    args.apply(fragments, &path.key(key))?;
    Ok(RawJson::new(&args.to_json()).map_or(Arguments::None, Arguments::Json))
}

fn text(
    part: &Value<'_>,
    found: PartData<'_, '_>,
    path: &Path<'_>,
) -> Result<Content, DecodeError> {
    let mut extractor = Extractor::new(part);
    let Some(text) = extractor.text(found.value) else {
        return Err(DecodeError::expected(path, "a string", found.value));
    };
    let thought = part.get("thought").and_then(Value::as_bool) == Some(true);
    let body = if thought {
        Body::Reasoning(Reasoning {
            summary: vec![text],
            text: Vec::new(),
            sealed: either_member(part, SIGNATURE).is_some(),
        })
    } else {
        Body::Text(Text {
            text,
            citations: Vec::new(),
        })
    };
    Ok(Content::new(body).with_vendor(Vendor::part(Wire::Gemini, extractor.into_template())))
}

fn media(
    part: &Value<'_>,
    found: PartData<'_, '_>,
    path: &Path<'_>,
) -> Result<Content, DecodeError> {
    if found.value.as_object().is_none() {
        return Err(DecodeError::expected(path, "an object", found.value));
    }
    let mut extractor = Extractor::new(part);
    let Some((key, value)) = media_place(found) else {
        return Ok(opaque(found.tag, part));
    };
    let Some(text) = extractor.text(value) else {
        return Err(DecodeError::expected(&path.key(key), "a string", value));
    };
    let media_type = either_string(found.value, MIME_TYPE);
    let source = if found.tag == INLINE_DATA {
        MediaSource::Data(text)
    } else if text.contains("generativelanguage.googleapis.com/") {
        // A file uploaded to the service; the address is of no use to other vendors.
        MediaSource::File(text)
    } else {
        MediaSource::Uri(text)
    };
    let media = Media {
        kind: media_kind(media_type.as_deref().unwrap_or_default()),
        media_type,
        source,
        name: either_string(found.value, ("displayName", "display_name")),
        transcript: None,
    };
    let vendor = Vendor::part(Wire::Gemini, extractor.into_template());
    Ok(Content::new(Body::Media(media)).with_vendor(vendor))
}

/// The place of the bytes or of the address of media.
fn media_place<'v, 'a>(found: PartData<'v, 'a>) -> Option<(&'static str, &'v Value<'a>)> {
    match found.tag {
        INLINE_DATA => either_member(found.value, ("data", "data")),
        FILE_DATA => either_member(found.value, FILE_URI),
        _ => None,
    }
}

fn code_output<'v, 'a>(
    result: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    path: &Path<'_>,
) -> Result<(Output, Outcome), DecodeError> {
    let output = match member(result, "output") {
        None => Output::None,
        Some(text) => Output::Text(
            extractor
                .text(text)
                .ok_or_else(|| DecodeError::expected(&path.key("output"), "a string", text))?,
        ),
    };
    let outcome = match read::optional_str(result, "outcome", path)?.as_deref() {
        None | Some("OUTCOME_OK" | "OUTCOME_UNSPECIFIED") => Outcome::Ok,
        Some(_) => Outcome::Error,
    };
    Ok((output, outcome))
}

/// What a function or a server tool answered. Media beside the answer make it a list of contents:
/// the answer as text, then the media.
fn output<'v, 'a>(
    result: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    path: &Path<'_>,
) -> Result<(Output, Outcome), DecodeError> {
    let response = object(result, "response", path)?;
    let outcome = match response.and_then(|response| member(response, "error")) {
        Some(_) => Outcome::Error,
        None => Outcome::Ok,
    };
    let elements = member(result, PARTS).and_then(Value::as_array);
    if elements.is_some_and(|elements| !elements.is_empty()) {
        let path = path.key(PARTS);
        let mut contents: Vec<Content> = response.map(answer_text).into_iter().collect();
        let elements = member(result, PARTS).and_then(|parts| extractor.elements(parts));
        for (index, part) in elements.unwrap_or_default().iter().enumerate() {
            contents.push(match part_data(part) {
                Some(found) if matches!(found.tag, INLINE_DATA | FILE_DATA) => {
                    let path = path.index(index);
                    media(part, found, &path.key(found.key))?
                }
                found => opaque(found.map_or("part", |found| found.tag), part),
            });
        }
        return Ok((Output::Parts(contents), outcome));
    }
    let output = match response {
        Some(response) => Output::Json(extractor.json(response)),
        None => Output::None,
    };
    Ok((output, outcome))
}

/// The answer as text. The object itself stays in the part, so this text has no part of its own.
fn answer_text(response: &Value<'_>) -> Content {
    let answer = member(response, "output").or_else(|| member(response, "error"));
    let text = match answer.and_then(Value::as_str) {
        Some(text) => text.into_owned(),
        None => RawJson::of(answer.unwrap_or(response)).get().to_owned(),
    };
    Content::text(text).with_vendor(Vendor::form(Wire::Gemini, Form::Within))
}

/// Append a part that came from this format.
pub(super) fn encode(out: &mut String, body: &Body, part: &RawJson) {
    match body {
        Body::Text(text) => restore(out, part, &[([TEXT], TemplateValue::Text(&text.text))]),
        Body::Reasoning(reasoning) => {
            let text = match (reasoning.summary.as_slice(), reasoning.text.as_slice()) {
                ([text], []) => Cow::Borrowed(text.as_str()),
                // Streams that were cut leave the text of a thought where deltas go.
                (summary, text) => Cow::Owned([summary.concat(), text.concat()].concat()),
            };
            restore(out, part, &[([TEXT], TemplateValue::Text(&text))]);
        }
        Body::Media(media) => {
            let text = match &media.source {
                MediaSource::Uri(text) | MediaSource::Data(text) | MediaSource::File(text) => text,
            };
            match media_path(part) {
                Some(path) => restore(out, part, &[(path, TemplateValue::Text(text))]),
                None => out.push_str(part.get()),
            }
        }
        Body::ToolCall(call) => encode_call(out, call, part),
        Body::ToolResult(result) => encode_result(out, result, part),
        Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Refusal(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => out.push_str(part.get()),
    }
}

/// Where a kept part of media has its bytes or its address.
fn media_path(part: &RawJson) -> Option<[&'static str; 2]> {
    let (tag, key) = kept_data(part, &[INLINE_DATA, FILE_DATA])?;
    let inner = match tag {
        INLINE_DATA => "data",
        _ => kept_key(part, FILE_URI, |name| part.locate(&[key, name]))?,
    };
    Some([key, inner])
}

/// The first of some data keys that a kept part has: its camelCase name, and as it stands there.
fn kept_data(part: &RawJson, tags: &[&str]) -> Option<(&'static str, &'static str)> {
    let names = DATA_KEYS.iter().filter(|names| tags.contains(&names.0));
    names.copied().find_map(|names| {
        let key = kept_key(part, names, |name| part.locate(&[name]))?;
        Some((names.0, key))
    })
}

/// The name under which something stands that is not null.
fn kept_key(
    part: &RawJson,
    names: (&'static str, &'static str),
    locate: impl Fn(&str) -> Option<Range<usize>>,
) -> Option<&'static str> {
    let stands = |name: &&str| locate(name).is_some_and(|at| part.get().get(at) != Some("null"));
    [names.0, names.1].into_iter().find(stands)
}

fn encode_call(out: &mut String, call: &ToolCall, part: &RawJson) {
    let tags = [FUNCTION_CALL, EXECUTABLE_CODE, TOOL_CALL];
    let Some((tag, key)) = kept_data(part, &tags) else {
        out.push_str(part.get());
        return;
    };
    match (&call.arguments, tag) {
        (Arguments::Free(code), EXECUTABLE_CODE) => {
            restore(out, part, &[([key, "code"], TemplateValue::Text(code))]);
        }
        (Arguments::Json(json), FUNCTION_CALL | TOOL_CALL) => {
            restore(
                out,
                part,
                &[([key, "args"], TemplateValue::Json(json.get()))],
            );
        }
        // Edited arguments may be text in place of an object.
        (arguments @ (Arguments::Text(_) | Arguments::Free(_)), _) => {
            let (args, _) = wrapped_arguments(arguments);
            restore(out, part, &[([key, "args"], TemplateValue::Json(&args))]);
        }
        (Arguments::None | Arguments::Json(_), _) => out.push_str(part.get()),
    }
}

fn encode_result(out: &mut String, result: &ToolResult, part: &RawJson) {
    let tags = [FUNCTION_RESPONSE, CODE_RESULT, TOOL_RESPONSE];
    let Some((tag, key)) = kept_data(part, &tags) else {
        out.push_str(part.get());
        return;
    };
    match (&result.output, tag) {
        (Output::Text(text), CODE_RESULT) => {
            restore(out, part, &[([key, "output"], TemplateValue::Text(text))]);
        }
        // A shortened result may have text in place of an object.
        (Output::Text(text), _) => {
            let response = RawJson::object(|object| {
                object.str("output", text);
            });
            let path = [key, "response"];
            restore(out, part, &[(path, TemplateValue::Json(response.get()))]);
        }
        (Output::Json(json), FUNCTION_RESPONSE | TOOL_RESPONSE) => {
            restore(
                out,
                part,
                &[([key, "response"], TemplateValue::Json(json.get()))],
            );
        }
        (Output::Parts(contents), FUNCTION_RESPONSE | TOOL_RESPONSE) => {
            let mut elements = String::new();
            for content in contents {
                let Some(part) = native::part(content, &Wire::Gemini) else {
                    continue;
                };
                if !elements.is_empty() {
                    elements.push(',');
                }
                encode(&mut elements, &content.body, part);
            }
            restore(
                out,
                part,
                &[([key, PARTS], TemplateValue::Elements(&elements))],
            );
        }
        (Output::None | Output::Json(_) | Output::Parts(_), _) => out.push_str(part.get()),
    }
}
