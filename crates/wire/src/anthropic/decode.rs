//! Reading blocks, messages, response bodies and errors.

use throughline_model::json::{self, RawJson, Value};
use throughline_model::{
    Arguments, Body, CallId, Content, Extra, Family, Form, Message, Outcome, Output, Path,
    Response, Role, Runner, Scope, Status, Stop, ToolCall, Usage, Vendor, VendorError, Wire,
};

use super::types::{self, INPUT};
use super::{CONTENT, parts};
use crate::flat::STANDALONE;
use crate::read::{self, member, number_of, text_of};
use crate::template::Extractor;
use crate::wire_type::{IdMinter, ItemRole, OutputAt, WireType};
use crate::{DecodeError, DocumentKind, Problem, truncated_call};

/// Reads blocks one after the other; what has no id is paired with what came before.
#[derive(Default)]
pub(super) struct BlockDecoder {
    minter: IdMinter,
}

impl BlockDecoder {
    /// The content of one block. `ordinal` counts the calls in `scope` and is moved on.
    pub(super) fn block(
        &mut self,
        block: &Value<'_>,
        scope: Scope<'_>,
        ordinal: &mut usize,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        match parts::block_type(block, path)? {
            Some(row) if row.role == ItemRole::Call => {
                let content = self.call(row, block, scope, *ordinal, path);
                *ordinal += 1;
                content
            }
            Some(row) if row.role == ItemRole::Output => {
                self.output(row, block, scope, *ordinal, path)
            }
            _ => parts::decode(block, path),
        }
    }

    fn call(
        &mut self,
        row: &WireType,
        block: &Value<'_>,
        scope: Scope<'_>,
        ordinal: usize,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let id_fields = row.id_fields(block, path)?;
        // A call without the name of what to call cannot be understood.
        let name = read::required_str(block, "name", path)?.into_owned();
        let mut extractor = Extractor::new(block);
        let Some(input) = block.get(INPUT) else {
            return Err(DecodeError::missing(&path.key(INPUT), "an object"));
        };
        let (arguments, status) = match extractor.text(input) {
            // The text of an input that a stream ended in; see the module.
            Some(text) => {
                let whole = json::parse(&text).is_ok_and(|value| value.as_object().is_some());
                let status = (!whole).then_some(Status::Incomplete);
                (Arguments::Text(text), status)
            }
            None => (Arguments::Json(extractor.json(input)), None),
        };
        let answered_by = types::answered_by(row, &name);
        let given = row.given_id(&id_fields);
        let call = ToolCall {
            call: self.minter.call(given, &answered_by, scope, ordinal),
            family: family(row, block, path)?,
            name,
            arguments,
            status,
            runner: row.runner,
        };
        let vendor =
            Vendor::part(Wire::Anthropic, extractor.into_template()).with_id_fields(id_fields);
        Ok(Content::from(call).with_vendor(vendor))
    }

    fn output(
        &mut self,
        row: &WireType,
        block: &Value<'_>,
        scope: Scope<'_>,
        ordinal: usize,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let id_fields = row.id_fields(block, path)?;
        let mut extractor = Extractor::new(block);
        let output = output(row, block, &mut extractor, path)?;
        let family = family(row, block, path)?;
        let handle = || CallId::minted(scope, STANDALONE + ordinal);
        let mut result = self.minter.result(row, &id_fields, family, output, handle);
        result.outcome = outcome(block);
        result.runner = row.runner;
        let vendor =
            Vendor::part(Wire::Anthropic, extractor.into_template()).with_id_fields(id_fields);
        Ok(Content::from(result).with_vendor(vendor))
    }

    /// The contents of one message and the neutral role of its speaker; the first content has
    /// the envelope.
    fn message(
        &mut self,
        item: &Value<'_>,
        place: usize,
        path: &Path<'_>,
    ) -> Result<(Role, Vec<Content>), DecodeError> {
        let role = Role::named(&message_role(item, path)?);
        // A response that was put into a history as it came keeps the scope of its ids.
        let id = item
            .get("type")
            .filter(|tag| tag.is_str("message"))
            .and_then(|_| text_of(item, "id"))
            .filter(|id| !id.is_empty());
        let scope = id.as_deref().map_or(Scope::Place(place), Scope::Response);
        let mut extractor = Extractor::new(item);
        let mut contents = self.contents(item, &mut extractor, scope, &mut 0, path)?;
        match contents.first_mut().and_then(|first| first.vendor.as_mut()) {
            Some(vendor) => vendor.envelope = Some(extractor.into_template()),
            // A message without contents is kept as it is.
            None => {
                let vendor = Vendor::item(Wire::Anthropic, RawJson::of(item));
                contents.push(Content::new(Body::opaque("message")).with_vendor(vendor));
            }
        }
        Ok((role, contents))
    }

    /// What stands in the member `content` of a message or a response.
    pub(super) fn contents<'v, 'a>(
        &mut self,
        item: &'v Value<'a>,
        extractor: &mut Extractor<'v, 'a>,
        scope: Scope<'_>,
        ordinal: &mut usize,
        path: &Path<'_>,
    ) -> Result<Vec<Content>, DecodeError> {
        let Some(content) = member(item, CONTENT) else {
            return Ok(Vec::new());
        };
        let path = path.key(CONTENT);
        if let Some(text) = extractor.text(content) {
            let vendor = Vendor::form(Wire::Anthropic, Form::Bare);
            return Ok(vec![Content::text(text).with_vendor(vendor)]);
        }
        let Some(blocks) = extractor.elements(content) else {
            let expected = "a string or an array of blocks";
            return Err(DecodeError::expected(&path, expected, content));
        };
        let mut contents = Vec::with_capacity(blocks.len());
        for (index, block) in blocks.iter().enumerate() {
            contents.push(self.block(block, scope, ordinal, &path.index(index))?);
        }
        Ok(contents)
    }
}

/// The family of a call or result. Members of a toolset share the block of functions; their toolset
/// names their family.
fn family(row: &WireType, block: &Value<'_>, path: &Path<'_>) -> Result<Family, DecodeError> {
    if row.runner == Runner::Vendor {
        return Ok(row.family.clone());
    }
    Ok(
        match read::optional_str(block, "toolset_name", path)?.as_deref() {
            None | Some("") => row.family.clone(),
            Some("computer") => Family::COMPUTER,
            Some(toolset) => Family::named(toolset),
        },
    )
}

fn output<'v, 'a>(
    row: &WireType,
    block: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    path: &Path<'_>,
) -> Result<Output, DecodeError> {
    let Some(value) = member(block, CONTENT) else {
        return Ok(Output::None);
    };
    if row.output == OutputAt::Json(CONTENT) {
        return Ok(Output::Json(extractor.json(value)));
    }
    if let Some(text) = extractor.text(value) {
        return Ok(Output::Text(text));
    }
    let path = path.key(CONTENT);
    let Some(elements) = extractor.elements(value) else {
        let expected = "a string or an array of blocks";
        return Err(DecodeError::expected(&path, expected, value));
    };
    let mut contents = Vec::with_capacity(elements.len());
    for (index, part) in elements.iter().enumerate() {
        contents.push(parts::decode(part, &path.index(index))?);
    }
    Ok(Output::Parts(contents))
}

/// Failure is a flag, or an error object in the place of the content.
fn outcome(block: &Value<'_>) -> Outcome {
    let flag = block.get("is_error").and_then(Value::as_bool);
    let error = block
        .at(&[CONTENT, "type"])
        .and_then(Value::as_str)
        .is_some_and(|tag| tag.ends_with("_tool_result_error"));
    if flag == Some(true) || error {
        Outcome::Error
    } else {
        Outcome::Ok
    }
}

/// The role of a message; an object without one is something else, and is named.
fn message_role(item: &Value<'_>, path: &Path<'_>) -> Result<String, DecodeError> {
    if item.as_object().is_none() {
        return Err(DecodeError::expected(path, "a message", item));
    }
    if item.get("role").is_some() {
        return Ok(read::required_str(item, "role", path)?.into_owned());
    }
    if let Some(error) = error(item) {
        let message = error.message;
        return Err(DecodeError::new(path, Problem::ErrorBody { message }));
    }
    match text_of(item, "type") {
        Some(tag) => Err(DecodeError::new(
            path,
            Problem::Fragment {
                found: format!("the block {tag}"),
                wrapper: r#"{"role":…,"content":[…]}"#,
            },
        )),
        None => Err(DecodeError::missing(&path.key("role"), "a string")),
    }
}

/// Read an array of messages.
pub(super) fn messages(items: &[Value<'_>], path: &Path<'_>) -> Result<Vec<Message>, DecodeError> {
    let mut decoder = BlockDecoder::default();
    let mut messages: Vec<Message> = Vec::new();
    // Whether the last message gathers results, and further ones may join it.
    let mut gathering = false;
    for (index, item) in items.iter().enumerate() {
        let (role, contents) = decoder.message(item, index, &path.index(index))?;
        if role != Role::User {
            messages.push(Message::new(role, contents));
            gathering = false;
            continue;
        }
        let mut speaking = false;
        for content in contents {
            let results = is_client_result(&content);
            let joins = if results { gathering } else { speaking };
            match messages.last_mut() {
                Some(message) if joins => message.contents.push(content),
                _ => {
                    let role = if results { Role::Tool } else { Role::User };
                    messages.push(Message::new(role, vec![content]));
                }
            }
            gathering = results;
            speaking = !results;
        }
    }
    Ok(messages)
}

fn is_client_result(content: &Content) -> bool {
    content
        .as_tool_result()
        .is_some_and(|result| result.runner == Runner::Client)
}

/// What a JSON object of this format is.
pub(super) fn document_kind(value: &Value<'_>) -> DocumentKind {
    if error(value).is_some() {
        return DocumentKind::Error;
    }
    if value.get("messages").is_some() {
        return DocumentKind::Request;
    }
    let has = |key: &str| value.get(key).is_some();
    let tagged = |tag: &str| value.get("type").is_some_and(|found| found.is_str(tag));
    if tagged("message") && has("role") && (has("stop_reason") || has("usage") || has("id")) {
        return DocumentKind::Response;
    }
    // A lone block counts as a message so that reading it can report what is missing around it.
    if has("role") || has("type") {
        return DocumentKind::Message;
    }
    DocumentKind::Unknown
}

/// Read a response body.
pub(super) fn response(body: &Value<'_>) -> Result<Response, DecodeError> {
    if body.as_object().is_none() {
        return Err(DecodeError::expected(&Path::Root, "a response", body));
    }
    if let Some(error) = error(body) {
        let message = error.message;
        return Err(DecodeError::new(
            &Path::Root,
            Problem::ErrorBody { message },
        ));
    }
    let mut extractor = Extractor::new(body);
    let id = text_of(body, "id");
    let scope = response_scope(id.as_deref());
    let mut decoder = BlockDecoder::default();
    let mut contents = decoder.contents(body, &mut extractor, scope, &mut 0, &Path::Root)?;
    let mut response = response_without_content(body, extractor.into_template());
    truncated_call::mark(&mut contents, &response.stop);
    if !contents.is_empty() {
        let mut message = Message::new(Role::Assistant, contents);
        message.usage.clone_from(&response.usage);
        response.messages.push(message);
    }
    Ok(response)
}

/// What minted ids of a response are derived from.
pub(super) fn response_scope(id: Option<&str>) -> Scope<'_> {
    id.filter(|id| !id.is_empty())
        .map_or(Scope::Place(0), Scope::Response)
}

/// Everything of a response body but its content.
pub(super) fn response_without_content(body: &Value<'_>, kept: RawJson) -> Response {
    Response {
        id: text_of(body, "id"),
        model: text_of(body, "model"),
        messages: Vec::new(),
        usage: member(body, "usage").map(usage),
        stop: stop(body),
        error: None,
        vendor: Some(Vendor::item(Wire::Anthropic, kept)),
        service: None,
    }
}

fn stop(body: &Value<'_>) -> Stop {
    match text_of(body, "stop_reason").as_deref() {
        None => Stop::InProgress,
        Some("end_turn" | "stop_sequence") => Stop::Done,
        Some("tool_use") => Stop::ToolCalls,
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("refusal") => Stop::Refusal,
        Some("pause_turn") => Stop::Paused,
        Some(other) => Stop::Other(other.into()),
    }
}

/// The vendor counts cached tokens apart from the input; we count them in.
fn usage(value: &Value<'_>) -> Usage {
    let cache_read = number_of(value, &["cache_read_input_tokens"]);
    let cache_write = number_of(value, &["cache_creation_input_tokens"]);
    let fresh = number_of(value, &["input_tokens"]);
    Usage {
        input: fresh.map(|fresh| {
            fresh
                .saturating_add(cache_read.unwrap_or(0))
                .saturating_add(cache_write.unwrap_or(0))
        }),
        output: number_of(value, &["output_tokens"]),
        total: None,
        cache_read,
        cache_write,
        reasoning: number_of(value, &["output_tokens_details", "thinking_tokens"]),
        vendor: Some(RawJson::of(value)),
        extra: Extra::NONE,
    }
}

/// Read `{"type":"error","error":{…}}`.
pub(super) fn error(body: &Value<'_>) -> Option<VendorError> {
    body.get("type").filter(|tag| tag.is_str("error"))?;
    let error = member(body, "error").filter(|error| error.as_object().is_some())?;
    Some(VendorError {
        wire: Wire::Anthropic,
        message: text_of(error, "message").unwrap_or_default(),
        kind: text_of(error, "type"),
        code: error
            .at(&["details", "error_code"])
            .and_then(Value::as_str)
            .map(Into::into),
        param: None,
        retry_after_ms: None,
        body: Some(RawJson::of(body)),
    })
}

/// Read text that we put together from texts that passed the usual limits: it may be a few
/// levels deeper than they were.
pub(super) fn parse_rebuilt(text: &str) -> Result<Value<'_>, json::JsonError> {
    let limits = json::Limits {
        depth: json::Limits::DEEPEST,
        ..json::Limits::default()
    };
    json::parse_with(text, limits)
}
