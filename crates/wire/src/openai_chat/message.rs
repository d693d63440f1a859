//! Reading messages.

use std::borrow::Cow;
use std::collections::HashMap;

use throughline_model::json::{RawJson, Value};
use throughline_model::{
    Arguments, Body, CallId, Citation, Content, Extra, Family, Form, Media, MediaKind, MediaSource,
    Message, Output, Path, Reasoning, Role, Runner, Scope, Text, ToolCall, ToolResult, Vendor,
};

use super::types::{self, MESSAGE};
use super::{WIRE, parts};
use crate::flat::STANDALONE;
use crate::read::{self, member, number_of, text_of};
use crate::template::Extractor;
use crate::wire_type::{ArgumentsAt, IdMinter, ItemRole, WireType};
use crate::{DecodeError, Problem};

/// How far the ordinals of the calls of two alternatives are apart. A stream cannot know how many
/// calls the alternatives before will have had, so each counts for itself.
const CALLS_PER_CHOICE: usize = 1 << 16;

/// Where calls stand that have no id: what their ids are derived from.
#[derive(Clone, Copy)]
pub(super) struct CallScope<'s> {
    pub(super) scope: Scope<'s>,
    /// The ordinal of the first call.
    pub(super) first: usize,
}

impl<'s> CallScope<'s> {
    /// An element of an array of messages.
    pub(super) fn at_index(index: usize) -> Self {
        Self {
            scope: Scope::Place(index),
            first: 0,
        }
    }

    /// An alternative of a response.
    pub(super) fn choice(response: Option<&'s str>, choice: usize) -> Self {
        Self {
            scope: response.map_or(Scope::Place(0), Scope::Response),
            first: choice.saturating_mul(CALLS_PER_CHOICE),
        }
    }
}

/// Reads messages one after the other; what has no id is paired with what came before.
#[derive(Default)]
pub(super) struct MessageDecoder {
    minter: IdMinter,
    /// Family and name of the calls so far, by id: results do not repeat them.
    calls: HashMap<CallId, (Family, String)>,
}

impl MessageDecoder {
    /// Any message, as a neutral message.
    pub(super) fn message(
        &mut self,
        message: &Value<'_>,
        origin: CallScope<'_>,
        path: &Path<'_>,
    ) -> Result<Message, DecodeError> {
        let role = role(message, path)?;
        if let Some(row) = types::row(ItemRole::Output, &role) {
            let result = self.result(row, message, origin, path)?;
            return Ok(Message::new(Role::Tool, vec![result]));
        }
        let role = Role::named(&role);
        let contents = match &role {
            Role::Assistant => self.assistant_contents(message, origin, path)?,
            Role::System | Role::Developer | Role::User | Role::Tool => {
                plain_contents(message, path)?
            }
            // Whatever else a role of tomorrow holds is kept.
            Role::Other(_) => {
                plain_contents(message, path).unwrap_or_else(|_| vec![opaque_message(message)])
            }
        };
        let mut found = Message::new(role, contents);
        found.author = text_of(message, "name");
        Ok(found)
    }

    /// The contents of an assistant message, in a fixed order: its members have none that means
    /// anything, and a stream may bring them in another one.
    pub(super) fn assistant_contents(
        &mut self,
        message: &Value<'_>,
        origin: CallScope<'_>,
        path: &Path<'_>,
    ) -> Result<Vec<Content>, DecodeError> {
        let within = |body| Content::new(body).with_vendor(Vendor::form(WIRE, Form::Within));
        let mut extractor = Extractor::new(message);
        let mut contents = Vec::new();
        if let Some(text) = reasoning(message) {
            contents.push(within(Body::Reasoning(Reasoning {
                summary: Vec::new(),
                text: vec![text],
                sealed: false,
            })));
        }
        read_content(message, &mut extractor, &mut contents, path)?;
        attach_citations(&mut contents, message);
        if let Some(text) = read::optional_str(message, "refusal", path)?.filter(|t| !t.is_empty())
        {
            contents.push(within(Body::Refusal(Text {
                text: text.into_owned(),
                citations: Vec::new(),
            })));
        }
        contents.extend(audio(message, path)?.map(|media| within(Body::Media(media))));
        let mut ordinal = origin.first;
        if let Some(call) = member(message, "function_call") {
            let path = path.key("function_call");
            contents.push(self.function_call(call, origin.scope, ordinal, &path)?);
            ordinal += 1;
        }
        if let Some(value) = member(message, "tool_calls") {
            let path = path.key("tool_calls");
            let Some(calls) = extractor.elements(value) else {
                return Err(DecodeError::expected(&path, "an array of calls", value));
            };
            for (index, call) in calls.iter().enumerate() {
                let path = path.index(index);
                contents.push(self.call(call, origin.scope, ordinal + index, &path)?);
            }
        }
        Ok(with_envelope(message, extractor, contents))
    }

    /// An element of `tool_calls`.
    fn call(
        &mut self,
        call: &Value<'_>,
        scope: Scope<'_>,
        ordinal: usize,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        if call.as_object().is_none() {
            return Err(DecodeError::expected(path, "a tool call", call));
        }
        let tag = call_type(call, path)?;
        let known = types::row(ItemRole::Call, &tag).filter(|row| row.id.is_some());
        let id_fields = known
            .unwrap_or(&types::UNKNOWN_CALL)
            .id_fields(call, path)?;
        let given = known.unwrap_or(&types::UNKNOWN_CALL).given_id(&id_fields);
        // Any result without an id may be meant for any call without one.
        let id = self
            .minter
            .call(given, &types::UNKNOWN_CALL.family, scope, ordinal);
        let mut extractor = Extractor::new(call);
        let (family, name, arguments) = match known {
            Some(row) => {
                let path = path.key(&tag);
                let Some(inner) = call.get(&tag) else {
                    return Err(DecodeError::missing(&path, "name and arguments"));
                };
                let (name, arguments) = named_arguments(row, inner, &path)?;
                let text = extractor.text(arguments).unwrap_or_default();
                let arguments = match row.arguments {
                    ArgumentsAt::Free(_) => Arguments::Free(text),
                    _ => Arguments::Text(text),
                };
                (row.family.clone(), name, arguments)
            }
            None => {
                let inner = member(call, &tag);
                let name = inner.and_then(|inner| text_of(inner, "name"));
                let arguments =
                    inner.map_or(Arguments::None, |inner| Arguments::Json(RawJson::of(inner)));
                (Family::named(&tag), name.unwrap_or_default(), arguments)
            }
        };
        let vendor = Vendor::part(WIRE, extractor.into_template()).with_id_fields(id_fields);
        Ok(self
            .remember_call(id, family, name, arguments)
            .with_vendor(vendor))
    }

    /// The old way to call a function.
    fn function_call(
        &mut self,
        call: &Value<'_>,
        scope: Scope<'_>,
        ordinal: usize,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let Some(row) = types::row(ItemRole::Call, "function_call") else {
            return Err(DecodeError::expected(path, "a function call", call));
        };
        let (name, arguments) = named_arguments(row, call, path)?;
        let id = self
            .minter
            .call(None, &legacy_family(&name), scope, ordinal);
        let text = arguments.as_str().unwrap_or_default().into_owned();
        let vendor = Vendor::form(WIRE, Form::Within);
        Ok(self
            .remember_call(id, row.family.clone(), name, Arguments::Text(text))
            .with_vendor(vendor))
    }

    fn remember_call(
        &mut self,
        call: CallId,
        family: Family,
        name: String,
        arguments: Arguments,
    ) -> Content {
        self.calls
            .insert(call.clone(), (family.clone(), name.clone()));
        Content::from(ToolCall {
            call,
            family,
            name,
            arguments,
            status: None,
            runner: Runner::Client,
        })
    }

    /// A message that answers a call.
    fn result(
        &mut self,
        row: &WireType,
        message: &Value<'_>,
        origin: CallScope<'_>,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let id_fields = row.id_fields(message, path)?;
        let name = read::optional_str(message, "name", path)?;
        let mut extractor = Extractor::new(message);
        let output = output(message, &mut extractor, path)?;
        let id = row.given_id(&id_fields).or_else(|| match row.call {
            Some(_) => self.minter.claim(&types::UNKNOWN_CALL.family),
            None => self.minter.claim(&legacy_family(name.as_deref()?)),
        });
        let mut result = match id {
            Some(id) => {
                let (family, name) = match self.calls.get(&id) {
                    Some((family, name)) => (family.clone(), Some(name.clone())),
                    None => (row.family.clone(), None),
                };
                let mut result = ToolResult::answering(id, family, output);
                result.name = name.filter(|name| !name.is_empty());
                result
            }
            None => {
                let handle = CallId::minted(origin.scope, STANDALONE);
                ToolResult::standalone(handle, row.family.clone(), output)
            }
        };
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            result.name = Some(name.into_owned());
        }
        let vendor = Vendor::item(WIRE, extractor.into_template()).with_id_fields(id_fields);
        Ok(Content::from(result).with_vendor(vendor))
    }
}

/// What an old function call waits under: its result has nothing but the name.
fn legacy_family(name: &str) -> Family {
    Family::named(&format!("function_call {name}"))
}

/// The role of a message. What has none may be a piece of a message.
fn role<'a>(message: &Value<'a>, path: &Path<'_>) -> Result<Cow<'a, str>, DecodeError> {
    if message.as_object().is_none() {
        return Err(DecodeError::expected(path, "a message", message));
    }
    if message.get("role").is_none() {
        let tag = text_of(message, "type").unwrap_or_default();
        let wrapper = if is_call(message) {
            Some(r#"{"role":"assistant","content":null,"tool_calls":[…]}"#)
        } else if parts::is_part(&tag) {
            Some(r#"{"role":"user","content":[…]}"#)
        } else {
            None
        };
        if let Some(wrapper) = wrapper {
            let found = match (is_call(message), tag.is_empty()) {
                (true, true) => "a tool call".to_owned(),
                (true, false) => format!("a tool call ({tag})"),
                (false, _) => format!("the part {tag}"),
            };
            return Err(DecodeError::new(path, Problem::Fragment { found, wrapper }));
        }
    }
    read::required_str(message, "role", path)
}

/// Whether an object is an element of `tool_calls`.
pub(super) fn is_call(value: &Value<'_>) -> bool {
    let has = |key| {
        value
            .get(key)
            .is_some_and(|inner| inner.as_object().is_some())
    };
    has("function") || has("custom")
}

/// The type of a call; some servers leave it out where the other members imply it.
fn call_type<'a>(call: &Value<'a>, path: &Path<'_>) -> Result<Cow<'a, str>, DecodeError> {
    match read::optional_str(call, "type", path)? {
        Some(tag) => Ok(tag),
        None if member(call, "function").is_some() => Ok(Cow::Borrowed("function")),
        None if member(call, "custom").is_some() => Ok(Cow::Borrowed("custom")),
        None => Err(DecodeError::missing(&path.key("type"), "a string")),
    }
}

/// The name of what is called and the string with its arguments.
fn named_arguments<'v, 'a>(
    row: &WireType,
    inner: &'v Value<'a>,
    path: &Path<'_>,
) -> Result<(String, &'v Value<'a>), DecodeError> {
    if inner.as_object().is_none() {
        return Err(DecodeError::expected(path, "an object", inner));
    }
    let name = read::required_str(inner, row.name.unwrap_or("name"), path)?;
    let key = match row.arguments {
        ArgumentsAt::Text(key) | ArgumentsAt::Free(key) => key,
        ArgumentsAt::Nowhere | ArgumentsAt::Json(_) => "arguments",
    };
    match inner.get(key) {
        None => Err(DecodeError::missing(&path.key(key), "a string")),
        Some(value) if value.as_text().is_some() => Ok((name.into_owned(), value)),
        Some(value) => Err(DecodeError::expected(&path.key(key), "a string", value)),
    }
}

/// The contents of a message that is nothing but its content.
fn plain_contents(message: &Value<'_>, path: &Path<'_>) -> Result<Vec<Content>, DecodeError> {
    let mut extractor = Extractor::new(message);
    let mut contents = Vec::new();
    read_content(message, &mut extractor, &mut contents, path)?;
    Ok(with_envelope(message, extractor, contents))
}

/// Put the envelope on the first content; a message without contents is kept as it is.
fn with_envelope(
    message: &Value<'_>,
    extractor: Extractor<'_, '_>,
    mut contents: Vec<Content>,
) -> Vec<Content> {
    if contents.len() > 1 {
        // An empty string beside calls is no content; the envelope keeps it.
        contents.retain(|content| !is_empty_string(content));
    }
    match contents.first_mut().and_then(|first| first.vendor.as_mut()) {
        Some(vendor) => vendor.envelope = Some(extractor.into_template()),
        None => contents.push(opaque_message(message)),
    }
    contents
}

fn is_empty_string(content: &Content) -> bool {
    let form = content.vendor.as_ref().map(|vendor| &vendor.form);
    form == Some(&Form::Bare) && content.as_text() == Some("")
}

fn opaque_message(message: &Value<'_>) -> Content {
    Content::new(Body::opaque(MESSAGE)).with_vendor(Vendor::item(WIRE, RawJson::of(message)))
}

fn read_content<'v, 'a>(
    message: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    contents: &mut Vec<Content>,
    path: &Path<'_>,
) -> Result<(), DecodeError> {
    let Some(content) = member(message, "content") else {
        return Ok(());
    };
    let path = path.key("content");
    if let Some(text) = extractor.text(content) {
        let vendor = Vendor::form(WIRE, Form::Bare);
        contents.push(Content::text(text).with_vendor(vendor));
    } else if let Some(elements) = extractor.elements(content) {
        contents.extend(parts::decode_all(elements, &path)?);
    } else {
        let expected = "a string or an array of parts";
        return Err(DecodeError::expected(&path, expected, content));
    }
    Ok(())
}

/// What a tool gave back.
fn output<'v, 'a>(
    message: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    path: &Path<'_>,
) -> Result<Output, DecodeError> {
    let Some(content) = member(message, "content") else {
        return Ok(Output::None);
    };
    let path = path.key("content");
    if let Some(text) = extractor.text(content) {
        Ok(Output::Text(text))
    } else if let Some(elements) = extractor.elements(content) {
        Ok(Output::Parts(parts::decode_all(elements, &path)?))
    } else {
        let expected = "a string or an array of parts";
        Err(DecodeError::expected(&path, expected, content))
    }
}

/// Thoughts, as compatible servers send them.
fn reasoning(message: &Value<'_>) -> Option<String> {
    ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|key| text_of(message, key).filter(|text| !text.is_empty()))
}

/// A spoken answer: its sound, or the vendor's name for it.
fn audio(message: &Value<'_>, path: &Path<'_>) -> Result<Option<Media>, DecodeError> {
    let Some(audio) = member(message, "audio") else {
        return Ok(None);
    };
    if audio.as_object().is_none() {
        return Err(DecodeError::expected(
            &path.key("audio"),
            "an object",
            audio,
        ));
    }
    let data = text_of(audio, "data").map(MediaSource::Data);
    let source = data.or_else(|| text_of(audio, "id").map(MediaSource::File));
    Ok(source.map(|source| Media {
        kind: MediaKind::Audio,
        media_type: None,
        source,
        name: None,
        transcript: text_of(audio, "transcript"),
    }))
}

/// Annotations stand beside the text that they are about.
fn attach_citations(contents: &mut [Content], message: &Value<'_>) {
    let annotations = message.get("annotations").and_then(Value::as_array);
    let text = contents
        .iter_mut()
        .find_map(|content| match &mut content.body {
            Body::Text(text) => Some(text),
            _ => None,
        });
    let (Some(annotations), Some(text)) = (annotations, text) else {
        return;
    };
    text.citations = annotations
        .iter()
        .filter_map(|annotation| member(annotation, "url_citation"))
        .map(|cited| Citation {
            url: text_of(cited, "url"),
            title: text_of(cited, "title"),
            file: None,
            start: number_of(cited, &["start_index"]),
            end: number_of(cited, &["end_index"]),
            extra: Extra::NONE,
        })
        .collect();
}
