//! Reading items, request bodies, response bodies and errors.

use std::borrow::Cow;

use throughline_model::json::{RawJson, Value};
use throughline_model::{
    ApprovalRequest, ApprovalResponse, Arguments, Body, CallId, Content, Extra, Family, Form,
    Media, MediaKind, MediaSource, Message, Outcome, Output, Path, Reasoning, Request, Response,
    Role, Runner, Scope, Status, Stop, ToolCall, ToolDef, ToolResult, Usage, Vendor, VendorError,
    Wire,
};

use super::types::{ITEM_REFERENCE, MESSAGE};
use super::{Dialect, parts};
use crate::flat::{
    ItemPlacement, STANDALONE, group_items, is_part_list, response_scope, tool_name,
};
use crate::read::{self, member, number_of, text_of};
use crate::template::Extractor;
use crate::wire_type::{ArgumentsAt, IdMinter, ItemRole, OutputAt, WireType};
use crate::{DecodeError, DocumentKind, Problem, truncated_call};

/// Reads items one after the other; what has no id is paired with what came before.
pub(super) struct ItemDecoder<'d> {
    dialect: &'d Dialect,
    minter: IdMinter,
}

impl<'d> ItemDecoder<'d> {
    pub(super) fn new(dialect: &'d Dialect) -> Self {
        Self {
            dialect,
            minter: IdMinter::default(),
        }
    }

    fn wire(&self) -> Wire {
        self.dialect.wire.clone()
    }

    /// The contents of one item. `ordinal` counts the calls in `scope` and is moved on.
    pub(super) fn item(
        &mut self,
        item: &Value<'_>,
        scope: Scope<'_>,
        ordinal: &mut usize,
        path: &Path<'_>,
    ) -> Result<Vec<Content>, DecodeError> {
        self.placed_item(item, scope, ordinal, path)
            .map(|(contents, _)| contents)
    }

    fn placed_item(
        &mut self,
        item: &Value<'_>,
        scope: Scope<'_>,
        ordinal: &mut usize,
        path: &Path<'_>,
    ) -> Result<(Vec<Content>, ItemPlacement), DecodeError> {
        let tag = self.tag(item, path)?;
        if tag == MESSAGE {
            return self.message(item, path);
        }
        let Some(row) = self.dialect.item_type(&tag) else {
            return Ok((vec![self.opaque(&tag, item)], ItemPlacement::Model));
        };
        match row.role {
            ItemRole::Call | ItemRole::CallAndOutput => {
                let contents = self.call(row, item, scope, *ordinal, path)?;
                *ordinal += 1;
                Ok((contents, ItemPlacement::Model))
            }
            ItemRole::Output => {
                let content = self.output(row, item, scope, *ordinal, path)?;
                let placement = match row.runner {
                    Runner::Client => ItemPlacement::Results,
                    Runner::Vendor => ItemPlacement::Model,
                };
                Ok((vec![content], placement))
            }
            ItemRole::ApprovalRequest => {
                let content = self.approval_request(row, item, scope, *ordinal, path)?;
                *ordinal += 1;
                Ok((vec![content], ItemPlacement::Model))
            }
            ItemRole::ApprovalResponse => {
                let content = self.approval_response(row, item, scope, *ordinal, path)?;
                Ok((vec![content], ItemPlacement::Alone(Role::User)))
            }
            ItemRole::Reasoning => Ok((vec![self.reasoning(item, path)?], ItemPlacement::Model)),
            ItemRole::Other => {
                let placement = match row.tag {
                    "additional_tools" | "configuration_update" | "compaction_trigger" => {
                        ItemPlacement::Alone(Role::Developer)
                    }
                    _ => ItemPlacement::Model,
                };
                Ok((vec![self.opaque(&tag, item)], placement))
            }
        }
    }

    /// The tag of an item. Messages and references may go without.
    fn tag(&self, item: &Value<'_>, path: &Path<'_>) -> Result<String, DecodeError> {
        if item.as_object().is_none() {
            return Err(DecodeError::expected(path, "an item", item));
        }
        if let Some(tag) = read::optional_str(item, "type", path)? {
            return match &*tag {
                "function" | "custom" if item.get("id").is_some() => Err(chat_call(path, &tag)),
                "input_text" | "output_text" | "refusal" | "input_image" | "input_file"
                | "input_audio" => Err(DecodeError::new(
                    path,
                    Problem::Fragment {
                        found: format!("the part {tag}"),
                        wrapper: r#"{"type":"message","role":…,"content":[…]}"#,
                    },
                )),
                _ => Ok(tag.into_owned()),
            };
        }
        if item.get("role").is_some() {
            return Ok(MESSAGE.to_owned());
        }
        if item.get("id").is_some() {
            return Ok(ITEM_REFERENCE.to_owned());
        }
        Err(DecodeError::missing(
            &path.key("type"),
            "the tag of an item",
        ))
    }

    fn opaque(&self, tag: &str, item: &Value<'_>) -> Content {
        Content::new(Body::opaque(tag)).with_vendor(Vendor::item(self.wire(), RawJson::of(item)))
    }

    fn message(
        &self,
        item: &Value<'_>,
        path: &Path<'_>,
    ) -> Result<(Vec<Content>, ItemPlacement), DecodeError> {
        let role = Role::named(&read::required_str(item, "role", path)?);
        let placement = match role {
            Role::Assistant => ItemPlacement::Model,
            role => ItemPlacement::Alone(role),
        };
        let mut extractor = Extractor::new(item);
        let path = path.key("content");
        let mut contents = Vec::new();
        match member(item, "content") {
            None => {}
            Some(content) => {
                if let Some(text) = extractor.text(content) {
                    let vendor = Vendor::form(self.wire(), Form::Bare);
                    contents.push(Content::text(text).with_vendor(vendor));
                } else if let Some(elements) = extractor.elements(content) {
                    for (index, part) in elements.iter().enumerate() {
                        contents.push(parts::decode(&self.dialect.wire, part, &path.index(index))?);
                    }
                } else {
                    return Err(DecodeError::expected(
                        &path,
                        "a string or an array of parts",
                        content,
                    ));
                }
            }
        }
        match contents.first_mut().and_then(|first| first.vendor.as_mut()) {
            Some(vendor) => vendor.envelope = Some(extractor.into_template()),
            // A message without contents is kept as it is.
            None => contents.push(self.opaque(MESSAGE, item)),
        }
        Ok((contents, placement))
    }

    fn call(
        &mut self,
        row: &WireType,
        item: &Value<'_>,
        scope: Scope<'_>,
        ordinal: usize,
        path: &Path<'_>,
    ) -> Result<Vec<Content>, DecodeError> {
        let id_fields = row.id_fields(item, path)?;
        let call = self
            .minter
            .call(row.given_id(&id_fields), &row.family, scope, ordinal);
        let mut extractor = Extractor::new(item);
        let call = ToolCall {
            call,
            family: row.family.clone(),
            name: tool_name(row, item, path)?,
            arguments: arguments(row, item, &mut extractor, path)?,
            status: read::optional_str(item, "status", path)?.map(|word| Status::named(&word)),
            runner: runner(row, item),
        };
        let result = match row.role {
            ItemRole::CallAndOutput => {
                combined_result(self.dialect, row, &call, item, &mut extractor)
            }
            _ => None,
        };
        let vendor = Vendor::item(self.wire(), extractor.into_template()).with_id_fields(id_fields);
        let mut contents = vec![Content::from(call).with_vendor(vendor)];
        if let Some(result) = result {
            let within = Vendor::form(self.wire(), Form::Within);
            contents.push(Content::from(result).with_vendor(within));
        }
        Ok(contents)
    }

    fn output(
        &mut self,
        row: &WireType,
        item: &Value<'_>,
        scope: Scope<'_>,
        ordinal: usize,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let id_fields = row.id_fields(item, path)?;
        let mut extractor = Extractor::new(item);
        let output = output(self.dialect, row, item, &mut extractor, path)?;
        let given = row.given_id(&id_fields);
        let given = given.or_else(|| self.minter.claim(&row.family));
        let mut result = match (given, row.call) {
            (Some(call), Some(_)) => ToolResult::answering(call, row.family.clone(), output),
            (Some(handle), None) => ToolResult::standalone(handle, row.family.clone(), output),
            (None, _) => {
                // A handle of its own, apart from the ordinals of calls.
                let handle = CallId::minted(scope, STANDALONE + ordinal);
                ToolResult::standalone(handle, row.family.clone(), output)
            }
        };
        result.name = Some(tool_name(row, item, path)?).filter(|name| !name.is_empty());
        result.outcome = outcome(item);
        result.runner = runner(row, item);
        let vendor = Vendor::item(self.wire(), extractor.into_template()).with_id_fields(id_fields);
        Ok(Content::from(result).with_vendor(vendor))
    }

    fn approval_request(
        &mut self,
        row: &WireType,
        item: &Value<'_>,
        scope: Scope<'_>,
        ordinal: usize,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let id_fields = row.id_fields(item, path)?;
        let request = self
            .minter
            .call(row.given_id(&id_fields), &row.family, scope, ordinal);
        let mut extractor = Extractor::new(item);
        let body = Body::ApprovalRequest(ApprovalRequest {
            request,
            name: tool_name(row, item, path)?,
            arguments: arguments(row, item, &mut extractor, path)?,
            server: read::optional_str(item, "server_label", path)?.map(Into::into),
        });
        let vendor = Vendor::item(self.wire(), extractor.into_template()).with_id_fields(id_fields);
        Ok(Content::new(body).with_vendor(vendor))
    }

    fn approval_response(
        &mut self,
        row: &WireType,
        item: &Value<'_>,
        scope: Scope<'_>,
        ordinal: usize,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let id_fields = row.id_fields(item, path)?;
        let request = row
            .given_id(&id_fields)
            .or_else(|| self.minter.claim(&row.family))
            .unwrap_or_else(|| CallId::minted(scope, STANDALONE + ordinal));
        let Some(approved) = item.get("approve").and_then(Value::as_bool) else {
            return Err(DecodeError::missing(&path.key("approve"), "true or false"));
        };
        let body = Body::ApprovalResponse(ApprovalResponse {
            request,
            approved,
            reason: read::optional_str(item, "reason", path)?.map(Into::into),
        });
        let vendor = Vendor::item(self.wire(), RawJson::of(item)).with_id_fields(id_fields);
        Ok(Content::new(body).with_vendor(vendor))
    }

    fn reasoning(&self, item: &Value<'_>, path: &Path<'_>) -> Result<Content, DecodeError> {
        let texts = |key: &str| -> Result<Vec<String>, DecodeError> {
            let Some(value) = member(item, key) else {
                return Ok(Vec::new());
            };
            let Some(list) = value.as_array() else {
                return Err(DecodeError::expected(&path.key(key), "an array", value));
            };
            Ok(list
                .iter()
                .filter_map(|part| text_of(part, "text"))
                .collect())
        };
        let body = Body::Reasoning(Reasoning {
            summary: texts("summary")?,
            text: texts("content")?,
            sealed: member(item, "encrypted_content").is_some(),
        });
        let row = self.dialect.item_type("reasoning");
        let id_fields = match row {
            Some(row) => row.id_fields(item, path)?,
            None => throughline_model::IdFields::default(),
        };
        let vendor = Vendor::item(self.wire(), RawJson::of(item)).with_id_fields(id_fields);
        Ok(Content::new(body).with_vendor(vendor))
    }
}

fn chat_call(path: &Path<'_>, tag: &str) -> DecodeError {
    DecodeError::new(
        path,
        Problem::Fragment {
            found: format!("a Chat Completions tool call ({tag})"),
            wrapper: r#"{"role":"assistant","content":null,"tool_calls":[…]} and read it as openai-chat"#,
        },
    )
}

fn runner(row: &WireType, item: &Value<'_>) -> Runner {
    match item.get("execution").and_then(Value::as_str).as_deref() {
        Some("server") => Runner::Vendor,
        Some("client") => Runner::Client,
        _ => row.runner,
    }
}

fn arguments<'v, 'a>(
    row: &WireType,
    item: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    path: &Path<'_>,
) -> Result<Arguments, DecodeError> {
    match row.arguments {
        ArgumentsAt::Nowhere => Ok(Arguments::None),
        ArgumentsAt::Text(key) => extractor
            .required_text(key, "JSON text in a string", path)
            .map(Arguments::Text),
        ArgumentsAt::Free(key) => match item.get(key) {
            None => Err(DecodeError::missing(&path.key(key), "a string")),
            Some(value) if value.is_null() => Ok(Arguments::None),
            Some(value) => extractor
                .text(value)
                .map(Arguments::Free)
                .ok_or_else(|| DecodeError::expected(&path.key(key), "a string", value)),
        },
        ArgumentsAt::Json(keys) => Ok(keys
            .iter()
            .find_map(|key| member(item, key))
            .map_or(Arguments::None, |value| {
                Arguments::Json(extractor.json(value))
            })),
    }
}

fn output<'v, 'a>(
    dialect: &Dialect,
    row: &WireType,
    item: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    path: &Path<'_>,
) -> Result<Output, DecodeError> {
    let key = match row.output {
        OutputAt::Nowhere => return Ok(Output::None),
        OutputAt::Any(key)
        | OutputAt::TextOrJson(key)
        | OutputAt::Json(key)
        | OutputAt::Image(key) => key,
    };
    let Some(value) = member(item, key) else {
        return Ok(Output::None);
    };
    if let OutputAt::Any(_) | OutputAt::TextOrJson(_) = row.output
        && let Some(text) = extractor.text(value)
    {
        return Ok(Output::Text(text));
    }
    if let OutputAt::Any(_) = row.output
        && is_part_list(value)
    {
        let elements = extractor.elements(value).unwrap_or_default();
        let path = path.key(key);
        let mut contents = Vec::with_capacity(elements.len());
        for (index, part) in elements.iter().enumerate() {
            contents.push(parts::decode(&dialect.wire, part, &path.index(index))?);
        }
        return Ok(Output::Parts(contents));
    }
    Ok(Output::Json(extractor.json(value)))
}

/// The result inside an item that is call and output in one; none while there is nothing yet.
fn combined_result<'v, 'a>(
    dialect: &Dialect,
    row: &WireType,
    call: &ToolCall,
    item: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
) -> Option<ToolResult> {
    let outcome = outcome(item);
    let output = match row.output {
        OutputAt::Image(key) => {
            let data = member(item, key).and_then(|value| extractor.text(value));
            let media_type = text_of(item, "output_format").map(|format| format!("image/{format}"));
            data.map(|data| {
                let media = Media {
                    kind: MediaKind::Image,
                    media_type,
                    source: MediaSource::Data(data),
                    name: None,
                    transcript: None,
                };
                let vendor = Vendor::form(dialect.wire.clone(), Form::Within);
                Output::Parts(vec![Content::new(Body::Media(media)).with_vendor(vendor)])
            })
        }
        OutputAt::Any(key) | OutputAt::TextOrJson(key) => {
            member(item, key).map(|value| match extractor.text(value) {
                Some(text) => Output::Text(text),
                None => Output::Json(extractor.json(value)),
            })
        }
        OutputAt::Json(key) => member(item, key).map(|value| Output::Json(extractor.json(value))),
        OutputAt::Nowhere => None,
    };
    match output {
        Some(output) => Some(call.answer(outcome, output)),
        None if outcome == Outcome::Error => {
            // As text, so that it is never mistaken for what belongs into the output's place.
            let text = member(item, "error").map(|error| {
                let message = error.as_str().map(Cow::into_owned);
                let message = message.or_else(|| text_of(error, "message"));
                Output::Text(message.unwrap_or_else(|| error.raw().to_owned()))
            });
            Some(call.answer(outcome, text.unwrap_or_default()))
        }
        None => None,
    }
}

/// Failure is a status, or an error beside the output; otherwise errors are ordinary text.
fn outcome(item: &Value<'_>) -> Outcome {
    let failed = item
        .get("status")
        .is_some_and(|status| status.is_str("failed"));
    let cancelled = item
        .get("status")
        .is_some_and(|status| status.is_str("cancelled"));
    if failed || member(item, "error").is_some() {
        Outcome::Error
    } else if cancelled {
        Outcome::Cancelled
    } else {
        Outcome::Ok
    }
}

/// Read an array of items.
pub(crate) fn messages(
    dialect: &Dialect,
    items: &[Value<'_>],
    path: &Path<'_>,
) -> Result<Vec<Message>, DecodeError> {
    let mut decoder = ItemDecoder::new(dialect);
    group_items(items.iter().enumerate().map(|(index, item)| {
        decoder.placed_item(item, Scope::Place(index), &mut 0, &path.index(index))
    }))
}

/// What a JSON object of this format is.
pub(crate) fn document_kind(value: &Value<'_>) -> DocumentKind {
    if value
        .get("object")
        .is_some_and(|name| name.is_str("response"))
        && value.get("output").is_some()
    {
        return DocumentKind::Response;
    }
    if value.get("type").is_some() || value.get("role").is_some() {
        return DocumentKind::Message;
    }
    if value
        .get("error")
        .is_some_and(|error| error.as_object().is_some())
    {
        return DocumentKind::Error;
    }
    if value
        .get("output")
        .is_some_and(|output| output.as_array().is_some())
    {
        return DocumentKind::Response;
    }
    if value.get("input").is_some() || value.get("model").is_some() {
        return DocumentKind::Request;
    }
    if value.get("id").is_some() {
        return DocumentKind::Message;
    }
    DocumentKind::Unknown
}

/// Read a request body.
pub(crate) fn request(dialect: &Dialect, body: &Value<'_>) -> Result<Request, DecodeError> {
    let mut extractor = Extractor::new(body);
    let mut request = Request::default();
    let bare = || Vendor::form(dialect.wire.clone(), Form::Bare);
    if let Some(text) = member(body, "instructions").and_then(|value| extractor.text(value)) {
        request.system.push(Content::text(text).with_vendor(bare()));
    }
    if let Some(input) = member(body, "input") {
        if let Some(text) = extractor.text(input) {
            let content = Content::text(text).with_vendor(bare());
            request
                .messages
                .push(Message::new(Role::User, vec![content]));
        } else if let Some(items) = extractor.elements(input) {
            request.messages = messages(dialect, items, &Path::Root.key("input"))?;
        } else {
            return Err(DecodeError::expected(
                &Path::Root.key("input"),
                "a string or an array of items",
                input,
            ));
        }
    }
    request.tools = tools(body);
    request.vendor = Some(Vendor::item(
        dialect.wire.clone(),
        extractor.into_template(),
    ));
    Ok(request)
}

fn tools(body: &Value<'_>) -> Vec<ToolDef> {
    let Some(list) = body.get("tools").and_then(Value::as_array) else {
        return Vec::new();
    };
    list.iter()
        .map(|tool| ToolDef {
            family: Family::named(&text_of(tool, "type").unwrap_or_default()),
            name: text_of(tool, "name").unwrap_or_default(),
            description: text_of(tool, "description"),
            parameters: member(tool, "parameters").map(RawJson::of),
            ..ToolDef::default()
        })
        .collect()
}

/// Read a response body.
pub(crate) fn response(dialect: &Dialect, body: &Value<'_>) -> Result<Response, DecodeError> {
    if body.as_object().is_none() {
        return Err(DecodeError::expected(&Path::Root, "a response", body));
    }
    let mut extractor = Extractor::new(body);
    let id = text_of(body, "id");
    let mut decoder = ItemDecoder::new(dialect);
    let mut contents = Vec::new();
    if let Some(output) = member(body, "output") {
        let path = Path::Root.key("output");
        let Some(items) = extractor.elements(output) else {
            return Err(DecodeError::expected(&path, "an array of items", output));
        };
        let mut ordinal = 0;
        for (index, item) in items.iter().enumerate() {
            let scope = response_scope(id.as_deref());
            contents.extend(decoder.item(item, scope, &mut ordinal, &path.index(index))?);
        }
    }
    Ok(response_with_output(
        dialect,
        body,
        id,
        contents,
        extractor.into_template(),
    ))
}

/// A response whose output has been read, by item or as a whole.
pub(super) fn response_with_output(
    dialect: &Dialect,
    body: &Value<'_>,
    id: Option<String>,
    contents: Vec<Content>,
    kept: RawJson,
) -> Response {
    let usage = member(body, "usage").map(usage);
    let mut messages = if contents.is_empty() {
        Vec::new()
    } else {
        let mut message = Message::new(Role::Assistant, contents);
        message.usage.clone_from(&usage);
        vec![message]
    };
    let stop = stop(body, &messages);
    if let Some(message) = messages.last_mut() {
        truncated_call::mark(&mut message.contents, &stop);
    }
    Response {
        service: service(body, id.as_deref()),
        id,
        model: text_of(body, "model"),
        stop,
        messages,
        usage,
        error: member(body, "error").map(|value| error_object(&dialect.wire, value)),
        vendor: Some(Vendor::item(dialect.wire.clone(), kept)),
    }
}

/// The id by which the service knows the conversation, if it stores it: the conversation that the
/// response belongs to, or the response itself.
fn service(body: &Value<'_>, id: Option<&str>) -> Option<String> {
    let conversation = member(body, "conversation").and_then(|value| {
        let named = value.get("id").unwrap_or(value);
        named.as_str().map(Cow::into_owned)
    });
    conversation.or_else(|| {
        let stored = member(body, "store").and_then(Value::as_bool);
        id.filter(|_| stored == Some(true)).map(str::to_owned)
    })
}

fn stop(body: &Value<'_>, messages: &[Message]) -> Stop {
    let waits = || {
        let calls = messages
            .iter()
            .flat_map(|message| &message.contents)
            .filter_map(Content::as_tool_call)
            .filter(|call| call.runner == Runner::Client)
            .count();
        calls > 0
    };
    let status = text_of(body, "status");
    match status.as_deref() {
        Some("completed") | None if waits() => Stop::ToolCalls,
        Some("completed") | None => Stop::Done,
        Some("incomplete") => {
            let reason = body.at(&["incomplete_details", "reason"]);
            match reason.and_then(Value::as_str).as_deref() {
                Some("max_output_tokens") => Stop::Length,
                Some("content_filter") => Stop::ContentFilter,
                Some(other) => Stop::Other(other.into()),
                None => Stop::Other("incomplete".into()),
            }
        }
        Some("failed") => Stop::Failed,
        Some("cancelled") => Stop::Cancelled,
        Some("in_progress" | "queued") => Stop::InProgress,
        Some(other) => Stop::Other(other.into()),
    }
}

fn usage(value: &Value<'_>) -> Usage {
    Usage {
        input: number_of(value, &["input_tokens"]),
        output: number_of(value, &["output_tokens"]),
        total: number_of(value, &["total_tokens"]),
        cache_read: number_of(value, &["input_tokens_details", "cached_tokens"]),
        cache_write: number_of(value, &["input_tokens_details", "cache_write_tokens"]),
        reasoning: number_of(value, &["output_tokens_details", "reasoning_tokens"]),
        vendor: Some(RawJson::of(value)),
        extra: Extra::NONE,
    }
}

/// Read `{"error": {…}}`.
pub(crate) fn error(wire: &Wire, body: &Value<'_>) -> Option<VendorError> {
    let error = member(body, "error")?;
    error.as_object()?;
    let mut found = error_object(wire, error);
    found.body = Some(RawJson::of(body));
    Some(found)
}

/// Read the object with `message`, `type`, `code` and `param`.
pub(super) fn error_object(wire: &Wire, error: &Value<'_>) -> VendorError {
    VendorError {
        wire: wire.clone(),
        message: text_of(error, "message").unwrap_or_default(),
        kind: text_of(error, "type"),
        code: text_of(error, "code"),
        param: text_of(error, "param"),
        retry_after_ms: None,
        body: Some(RawJson::of(error)),
    }
}
