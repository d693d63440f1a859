//! Reading contents, request bodies and response bodies.

use throughline_model::json::{RawJson, Value};
use throughline_model::{
    Body, Content, Extra, Form, Message, Path, Request, Response, Role, Runner, Scope, Stop, Usage,
    Vendor, Wire,
};

use super::pairing::Ordinals;
use super::parts::PartDecoder;
use super::types::{FINISH_REASON, PARTS, part_data, stop};
use super::{response_body, stream, tools};
use crate::flat::response_scope;
use crate::google::{self, either_member, either_string};
use crate::read::{self, member};
use crate::template::Extractor;
use crate::{DecodeError, DocumentKind, Problem, truncated_call};

/// The two spellings of the place of system text.
pub(super) const SYSTEM: (&str, &str) = ("systemInstruction", "system_instruction");

/// What a JSON object of this format is. A whole stream, an array of responses, counts as one.
pub(super) fn document_kind(value: &Value<'_>) -> DocumentKind {
    if let Some(list) = value.as_array() {
        let shapes = |kind: DocumentKind| {
            !list.is_empty() && list.iter().all(|it| document_kind_of(it) == kind)
        };
        return match list {
            [only] if document_kind_of(only) == DocumentKind::Error => DocumentKind::Error,
            _ if shapes(DocumentKind::Response) => DocumentKind::Response,
            _ => DocumentKind::Unknown,
        };
    }
    document_kind_of(value)
}

fn document_kind_of(value: &Value<'_>) -> DocumentKind {
    let has = |camel: &'static str, snake: &'static str| {
        value.get(camel).is_some() || value.get(snake).is_some()
    };
    if has("candidates", "candidates") || has("promptFeedback", "prompt_feedback") {
        DocumentKind::Response
    } else if has("contents", "contents") {
        DocumentKind::Request
    } else if has(PARTS, PARTS) || has("role", "role") {
        DocumentKind::Message
    } else if member(value, "error").is_some_and(|error| error.as_object().is_some()) {
        DocumentKind::Error
    } else if part_data(value).is_some() {
        // A bare part; reading it reports what is missing around it.
        DocumentKind::Message
    } else if has("usageMetadata", "usage_metadata") || has("modelVersion", "model_version") {
        DocumentKind::Response
    } else if has(SYSTEM.0, SYSTEM.1) || has("generationConfig", "generation_config") {
        DocumentKind::Request
    } else {
        DocumentKind::Unknown
    }
}

/// Read an array of contents.
pub(super) fn messages(items: &[Value<'_>], path: &Path<'_>) -> Result<Vec<Message>, DecodeError> {
    let mut decoder = PartDecoder::default();
    let mut messages: Vec<Message> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = path.index(index);
        let mut ordinals = Ordinals::default();
        let scope = Scope::Place(index);
        let (contents, base) = content(&mut decoder, item, scope, &mut ordinals, &path)?;
        let mut opened = false;
        for content in contents {
            let role = message_role(&content, &base);
            let goes_on = messages.last().is_some_and(|last| last.role == role)
                && (opened || role == Role::Tool);
            match messages.last_mut() {
                Some(last) if goes_on => last.contents.push(content),
                _ => messages.push(Message::new(role, vec![content])),
            }
            opened = true;
        }
    }
    Ok(messages)
}

/// The role of a neutral content of a wire content: results belong to tools.
fn message_role(content: &Content, base: &Role) -> Role {
    let client_result = content
        .as_tool_result()
        .is_some_and(|result| result.runner == Runner::Client);
    if client_result && *base != Role::Assistant {
        Role::Tool
    } else {
        base.clone()
    }
}

/// Read one content: its parts, with the envelope on the first, and the role.
fn content(
    decoder: &mut PartDecoder,
    item: &Value<'_>,
    scope: Scope<'_>,
    ordinals: &mut Ordinals,
    path: &Path<'_>,
) -> Result<(Vec<Content>, Role), DecodeError> {
    if item.as_object().is_none() {
        return Err(DecodeError::expected(path, "a content", item));
    }
    if item.get(PARTS).is_none() && item.get("role").is_none() {
        return Err(not_a_content(item, path));
    }
    let role = match read::optional_str(item, "role", path)?.as_deref() {
        Some("model") => Role::Assistant,
        Some("function") => Role::Tool,
        Some(other) => Role::named(other),
        // Legal for a single content, which is the user's.
        None => Role::User,
    };
    decoder.begin_content(&role);
    let contents = parts(decoder, item, scope, ordinals, path)?;
    if contents.is_empty() {
        // A content without parts is kept as it is.
        let kept = Vendor::item(Wire::Gemini, RawJson::of(item));
        let content = Content::new(Body::opaque("message")).with_vendor(kept);
        return Ok((vec![content], role));
    }
    Ok((contents, role))
}

/// The parts of a content, with the content itself, as a template, on the first.
fn parts(
    decoder: &mut PartDecoder,
    item: &Value<'_>,
    scope: Scope<'_>,
    ordinals: &mut Ordinals,
    path: &Path<'_>,
) -> Result<Vec<Content>, DecodeError> {
    let Some(list) = member(item, PARTS) else {
        return Ok(Vec::new());
    };
    let path = path.key(PARTS);
    let mut extractor = Extractor::new(item);
    let Some(elements) = extractor.elements(list) else {
        return Err(DecodeError::expected(&path, "an array of parts", list));
    };
    let mut contents = Vec::with_capacity(elements.len());
    for (index, part) in elements.iter().enumerate() {
        contents.push(decoder.part(part, scope, ordinals, &path.index(index))?);
    }
    if let Some(vendor) = contents.first_mut().and_then(|first| first.vendor.as_mut()) {
        vendor.envelope = Some(extractor.into_template());
    }
    Ok(contents)
}

/// The error for an object among contents that is not a content.
fn not_a_content(item: &Value<'_>, path: &Path<'_>) -> DecodeError {
    if let Some(found) = part_data(item) {
        return DecodeError::new(
            path,
            Problem::Fragment {
                found: format!("the part {}", found.key),
                wrapper: r#"{"role":…,"parts":[…]}"#,
            },
        );
    }
    if let Some(error) = google::decode_error(&Wire::Gemini, item) {
        return DecodeError::new(
            path,
            Problem::ErrorBody {
                message: error.message,
            },
        );
    }
    DecodeError::missing(&path.key(PARTS), "the parts of a content")
}

/// Read a request body.
pub(super) fn request(body: &Value<'_>) -> Result<Request, DecodeError> {
    if body.as_object().is_none() {
        return Err(DecodeError::expected(&Path::Root, "a request", body));
    }
    let mut request = Request::default();
    let mut edits: Vec<(&Value<'_>, &str)> = Vec::new();
    if let Some((key, system)) = either_member(body, SYSTEM) {
        let path = Path::Root.key(key);
        request.system = self::system(system, &path, &mut edits)?;
    }
    if let Some(contents) = member(body, "contents") {
        let path = Path::Root.key("contents");
        if let Some(items) = contents.as_array() {
            request.messages = messages(items, &path)?;
            edits.push((contents, "[]"));
        } else if contents.as_object().is_some() {
            // One content that stands alone; the empty object in its place marks that.
            request.messages = messages(std::slice::from_ref(contents), &path)?;
            edits.push((contents, "{}"));
        } else if let Some(text) = contents.as_text() {
            if text.is_canonical() {
                edits.push((contents, "\"\""));
            }
            let vendor = Vendor::form(Wire::Gemini, Form::Bare);
            let content = Content::text(text.to_str()).with_vendor(vendor);
            let message = Message::new(Role::User, vec![content]);
            request.messages.push(message);
        } else {
            return Err(DecodeError::expected(
                &path,
                "an array of contents",
                contents,
            ));
        }
    }
    request.tools = tools::decode(body);
    let kept = RawJson::of_with(body, &edits);
    request.vendor = Some(Vendor::item(Wire::Gemini, kept));
    Ok(request)
}

/// Read system text: a content, or a bare string. A content leaves the empty object in its place.
fn system<'v, 'a>(
    value: &'v Value<'a>,
    path: &Path<'_>,
    edits: &mut Vec<(&'v Value<'a>, &'static str)>,
) -> Result<Vec<Content>, DecodeError> {
    if let Some(text) = value.as_text() {
        if text.is_canonical() {
            edits.push((value, "\"\""));
        }
        let vendor = Vendor::form(Wire::Gemini, Form::Bare);
        return Ok(vec![Content::text(text.to_str()).with_vendor(vendor)]);
    }
    if value.as_object().is_none() {
        return Err(DecodeError::expected(path, "a content or a string", value));
    }
    let contents = parts(
        &mut PartDecoder::default(),
        value,
        Scope::Place(0),
        &mut Ordinals::default(),
        path,
    )?;
    if !contents.is_empty() {
        edits.push((value, "{}"));
    }
    Ok(contents)
}

/// Read a response body; also an array of them, which together are one stream.
pub(super) fn response(body: &Value<'_>) -> Result<Response, DecodeError> {
    if let Some(items) = body.as_array() {
        return decode_stream_array(items);
    }
    if body.as_object().is_none() {
        return Err(DecodeError::expected(&Path::Root, "a response", body));
    }
    let id = response_id(body);
    let usage = usage(body);
    let mut edits: Vec<(&Value<'_>, &str)> = Vec::new();
    let mut messages = Vec::new();
    let mut decoder = PartDecoder::default();
    let mut ordinals = Ordinals::default();
    let path = Path::Root.key("candidates");
    for (index, candidate) in candidates(body)?.iter().enumerate() {
        let path = path.index(index);
        if candidate.as_object().is_none() {
            return Err(DecodeError::expected(&path, "a candidate", candidate));
        }
        let Some(content) = member(candidate, "content") else {
            continue;
        };
        let path = path.key("content");
        if content.as_object().is_none() {
            return Err(DecodeError::expected(&path, "a content", content));
        }
        let scope = response_scope(id.as_deref());
        // Alternatives do not answer each other.
        decoder.begin_content(&Role::User);
        let mut contents = parts(&mut decoder, content, scope, &mut ordinals, &path)?;
        if let Some(reason) = either_string(candidate, FINISH_REASON) {
            truncated_call::mark(
                without_trailing_empty_texts(&mut contents),
                &stop(&reason, false),
            );
        }
        if !contents.is_empty() {
            messages.push(Message::new(Role::Assistant, contents));
            // Its envelope has the rest; an array never stands here, so this place is known again.
            edits.push((content, response_body::CONTENT_PLACEHOLDER));
        }
    }
    if let Some(first) = messages.first_mut() {
        first.usage.clone_from(&usage);
    }
    let error = google::decode_error(&Wire::Gemini, body);
    Ok(Response {
        id,
        model: either_string(body, ("modelVersion", "model_version")),
        stop: match &error {
            Some(_) => Stop::Failed,
            None => response_stop(body, &messages),
        },
        messages,
        usage,
        error,
        vendor: Some(Vendor::item(Wire::Gemini, RawJson::of_with(body, &edits))),
        service: None,
    })
}

/// The contents without empty texts at their end, which carry a signature or nothing.
fn without_trailing_empty_texts(contents: &mut [Content]) -> &mut [Content] {
    let has_text = |content: &Content| content.as_text() != Some("");
    let end = contents
        .iter()
        .rposition(has_text)
        .map_or(0, |last| last + 1);
    &mut contents[..end]
}

/// Read the responses of a stream that came as one array.
fn decode_stream_array(items: &[Value<'_>]) -> Result<Response, DecodeError> {
    let mut decoder = stream::Decoder::default();
    let mut fold = throughline_model::Fold::new();
    let mut events = Vec::new();
    for (index, item) in items.iter().enumerate() {
        // An array of contents is a history, not an empty stream.
        if matches!(
            document_kind_of(item),
            DocumentKind::Message | DocumentKind::Request
        ) {
            let path = Path::Root.index(index);
            return Err(DecodeError::expected(&path, "a response", item));
        }
        decoder.take(item, &mut events)?;
    }
    events.extend(crate::StreamDecoder::end(&mut decoder)?);
    for event in events {
        fold.push(event);
    }
    Ok(fold.finish())
}

/// The candidates of a response; none if it has no such member.
pub(super) fn candidates<'v, 'a>(body: &'v Value<'a>) -> Result<&'v [Value<'a>], DecodeError> {
    match member(body, "candidates") {
        None => Ok(&[]),
        Some(list) => list.as_array().ok_or_else(|| {
            DecodeError::expected(
                &Path::Root.key("candidates"),
                "an array of candidates",
                list,
            )
        }),
    }
}

/// The vendor's id of the response; the empty string is none.
pub(super) fn response_id(body: &Value<'_>) -> Option<String> {
    either_string(body, ("responseId", "response_id")).filter(|id| !id.is_empty())
}

/// Why the prompt was refused, if it was.
pub(super) fn block_reason(body: &Value<'_>) -> Option<String> {
    let (_, feedback) = either_member(body, ("promptFeedback", "prompt_feedback"))?;
    either_string(feedback, ("blockReason", "block_reason"))
}

fn response_stop(body: &Value<'_>, messages: &[Message]) -> Stop {
    let waits = messages
        .iter()
        .flat_map(|message| &message.contents)
        .filter_map(Content::as_tool_call)
        .any(|call| call.runner == Runner::Client);
    let candidates = body.get("candidates").and_then(Value::as_array);
    let reason = candidates
        .unwrap_or_default()
        .iter()
        .find_map(|candidate| either_string(candidate, FINISH_REASON));
    match reason {
        Some(reason) => stop(&reason, waits),
        None if block_reason(body).is_some() => Stop::ContentFilter,
        None => stop("STOP", waits),
    }
}

/// The tokens that a response reports.
pub(super) fn usage(body: &Value<'_>) -> Option<Usage> {
    let (_, value) = either_member(body, ("usageMetadata", "usage_metadata"))?;
    let number = |camel: &'static str, snake: &'static str| {
        either_member(value, (camel, snake)).and_then(|(_, value)| value.as_u64())
    };
    let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    };
    let reasoning = number("thoughtsTokenCount", "thoughts_token_count");
    Some(Usage {
        // What tools brought into the prompt was sent too, but is counted apart.
        input: sum(
            number("promptTokenCount", "prompt_token_count"),
            number("toolUsePromptTokenCount", "tool_use_prompt_token_count"),
        ),
        // Candidates do not include thoughts.
        output: sum(
            number("candidatesTokenCount", "candidates_token_count"),
            reasoning,
        ),
        total: number("totalTokenCount", "total_token_count"),
        cache_read: number("cachedContentTokenCount", "cached_content_token_count"),
        cache_write: None,
        reasoning,
        vendor: Some(RawJson::of(value)),
        extra: Extra::NONE,
    })
}
