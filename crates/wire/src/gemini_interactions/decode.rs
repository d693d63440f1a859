//! Reading steps, request bodies and response bodies.

use throughline_model::json::{RawJson, Value};
use throughline_model::{
    Arguments, Body, CallId, Content, Extra, Fault, Form, Message, Outcome, Output, Path,
    Reasoning, Request, Response, Role, Runner, Scope, ToolCall, ToolDef, ToolResult, Usage,
    Vendor, Wire,
};

use super::parts::{self, as_item, as_part};
use super::types::{
    ARGUMENTS, CONTENT, MODEL_OUTPUT, RESULT, THOUGHT, USER_INPUT, is_content, step_type, stop,
};
use crate::flat::{
    ItemPlacement, STANDALONE, group_items, is_part_list, response_scope, tool_name,
};
use crate::google;
use crate::read::{self, member, number_of, text_of};
use crate::template::Extractor;
use crate::wire_type::{IdMinter, ItemRole, WireType};
use crate::{DecodeError, DocumentKind, Problem, truncated_call};

const WIRE: Wire = Wire::GeminiInteractions;

/// Reads steps one after the other; what has no id is paired with what came before.
#[derive(Default)]
pub(super) struct StepDecoder {
    minter: IdMinter,
}

impl StepDecoder {
    /// The contents of a step of a response. A step of the user is not the model's: it is kept, but
    /// not read.
    pub(super) fn response_step(
        &mut self,
        step: &Value<'_>,
        scope: Scope<'_>,
        ordinal: &mut usize,
        path: &Path<'_>,
    ) -> Result<Vec<Content>, DecodeError> {
        if step.get("type").is_some_and(|tag| tag.is_str(USER_INPUT)) {
            return Ok(vec![opaque(USER_INPUT, step)]);
        }
        let (contents, _) = self.step(step, scope, ordinal, path)?;
        Ok(contents)
    }

    /// The contents of one step. `ordinal` counts the calls in `scope` and is moved on.
    fn step(
        &mut self,
        step: &Value<'_>,
        scope: Scope<'_>,
        ordinal: &mut usize,
        path: &Path<'_>,
    ) -> Result<(Vec<Content>, ItemPlacement), DecodeError> {
        let tag = tag(step, path)?;
        match tag.as_str() {
            USER_INPUT => Ok((
                message_contents(&tag, step, path)?,
                ItemPlacement::Alone(Role::User),
            )),
            MODEL_OUTPUT => Ok((message_contents(&tag, step, path)?, ItemPlacement::Model)),
            THOUGHT => Ok((vec![thought(step, path)?], ItemPlacement::Model)),
            _ if is_content(&tag) => {
                let content = parts::decode(step, as_item, path)?;
                Ok((vec![content], ItemPlacement::Joined(Role::User)))
            }
            _ => match step_type(&tag) {
                None => Ok((vec![opaque(&tag, step)], ItemPlacement::Model)),
                Some(row) if row.role == ItemRole::Call => {
                    let content = self.call(row, step, scope, *ordinal, path)?;
                    *ordinal += 1;
                    Ok((vec![content], ItemPlacement::Model))
                }
                Some(row) => {
                    let content = self.result(row, step, scope, *ordinal, path)?;
                    let placement = match row.runner {
                        Runner::Client => ItemPlacement::Results,
                        Runner::Vendor => ItemPlacement::Model,
                    };
                    Ok((vec![content], placement))
                }
            },
        }
    }

    fn call(
        &mut self,
        row: &WireType,
        step: &Value<'_>,
        scope: Scope<'_>,
        ordinal: usize,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let id_fields = row.id_fields(step, path)?;
        let given = row.given_id(&id_fields);
        let mut extractor = Extractor::new(step);
        let call = ToolCall {
            call: self.minter.call(given, &row.family, scope, ordinal),
            family: row.family.clone(),
            name: tool_name(row, step, path)?,
            arguments: arguments(step, &mut extractor, path)?,
            status: None,
            runner: row.runner,
        };
        let vendor = Vendor::item(WIRE, extractor.into_template()).with_id_fields(id_fields);
        Ok(Content::from(call).with_vendor(vendor))
    }

    fn result(
        &mut self,
        row: &WireType,
        step: &Value<'_>,
        scope: Scope<'_>,
        ordinal: usize,
        path: &Path<'_>,
    ) -> Result<Content, DecodeError> {
        let id_fields = row.id_fields(step, path)?;
        let mut extractor = Extractor::new(step);
        let output = output(step, &mut extractor, path);
        let (family, handle) = (row.family.clone(), || {
            CallId::minted(scope, STANDALONE + ordinal)
        });
        let mut result = self.minter.result(row, &id_fields, family, output, handle);
        result.name = Some(tool_name(row, step, path)?).filter(|name| !name.is_empty());
        result.runner = row.runner;
        if step.get("is_error").and_then(Value::as_bool) == Some(true) {
            result.outcome = Outcome::Error;
        }
        let vendor = Vendor::item(WIRE, extractor.into_template()).with_id_fields(id_fields);
        Ok(Content::from(result).with_vendor(vendor))
    }
}

/// The tag of a step; every step has one.
fn tag(step: &Value<'_>, path: &Path<'_>) -> Result<String, DecodeError> {
    if step.as_object().is_none() {
        return Err(DecodeError::expected(path, "a step", step));
    }
    if let Some(tag) = read::optional_str(step, "type", path)? {
        return Ok(tag.into_owned());
    }
    if let Some(error) = google::decode_error(&WIRE, step) {
        let message = error.message;
        return Err(DecodeError::new(path, Problem::ErrorBody { message }));
    }
    Err(DecodeError::missing(&path.key("type"), "the tag of a step"))
}

fn opaque(tag: &str, step: &Value<'_>) -> Content {
    Content::new(Body::opaque(tag)).with_vendor(Vendor::item(WIRE, RawJson::of(step)))
}

/// The contents of a step of the user or the model.
fn message_contents(
    tag: &str,
    step: &Value<'_>,
    path: &Path<'_>,
) -> Result<Vec<Content>, DecodeError> {
    let mut extractor = Extractor::new(step);
    let mut contents = Vec::new();
    if let Some(contents_value) = member(step, CONTENT) {
        let path = path.key(CONTENT);
        if let Some(text) = extractor.text(contents_value) {
            let vendor = Vendor::form(WIRE, Form::Bare);
            contents.push(Content::text(text).with_vendor(vendor));
        } else if let Some(elements) = extractor.elements(contents_value) {
            for (index, part) in elements.iter().enumerate() {
                contents.push(parts::decode(part, as_part, &path.index(index))?);
            }
        } else {
            return Err(DecodeError::expected(
                &path,
                "an array of contents",
                contents_value,
            ));
        }
    }
    match contents.first_mut().and_then(|first| first.vendor.as_mut()) {
        Some(vendor) => vendor.envelope = Some(extractor.into_template()),
        // A step without contents is kept as it is; one that failed has an error.
        None => contents.push(match member(step, "error") {
            Some(error) => {
                let fault = Fault {
                    message: text_of(error, "message").unwrap_or_default(),
                    code: member(error, "code").map(|code| code.raw().to_owned()),
                };
                Content::new(Body::Error(fault)).with_vendor(Vendor::item(WIRE, RawJson::of(step)))
            }
            None => opaque(tag, step),
        }),
    }
    Ok(contents)
}

fn thought(step: &Value<'_>, path: &Path<'_>) -> Result<Content, DecodeError> {
    let summary = match member(step, "summary") {
        None => Vec::new(),
        Some(list) => match list.as_array() {
            Some(parts) => parts
                .iter()
                .filter_map(|part| text_of(part, "text"))
                .collect(),
            None => {
                return Err(DecodeError::expected(
                    &path.key("summary"),
                    "an array",
                    list,
                ));
            }
        },
    };
    let body = Body::Reasoning(Reasoning {
        summary,
        text: Vec::new(),
        sealed: read::optional_str(step, "signature", path)?.is_some(),
    });
    let vendor = Vendor::item(WIRE, RawJson::of(step));
    Ok(Content::new(body).with_vendor(vendor))
}

/// The arguments of a call: an object, or, where a stream ended inside it, its text.
fn arguments<'v, 'a>(
    step: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    path: &Path<'_>,
) -> Result<Arguments, DecodeError> {
    let Some(value) = member(step, ARGUMENTS) else {
        return Ok(Arguments::None);
    };
    if value.as_object().is_some() {
        return Ok(Arguments::Json(extractor.json(value)));
    }
    match extractor.text(value) {
        Some(text) => Ok(Arguments::Text(text)),
        None => Err(DecodeError::expected(
            &path.key(ARGUMENTS),
            "an object",
            value,
        )),
    }
}

/// What a result gives: text, contents, or any other JSON.
fn output<'v, 'a>(
    step: &'v Value<'a>,
    extractor: &mut Extractor<'v, 'a>,
    path: &Path<'_>,
) -> Output {
    let Some(value) = member(step, RESULT) else {
        return Output::None;
    };
    if let Some(text) = extractor.text(value) {
        return Output::Text(text);
    }
    if is_part_list(value) {
        let path = path.key(RESULT);
        let elements = value.as_array().unwrap_or_default().iter();
        // The application's own data may have tags too; only what reads as contents is taken so.
        let contents: Result<Vec<_>, _> = elements
            .map(|part| parts::decode(part, as_part, &path))
            .collect();
        if let Ok(contents) = contents {
            extractor.elements(value);
            return Output::Parts(contents);
        }
    }
    Output::Json(extractor.json(value))
}

/// Read an array of steps, or of contents of one input.
pub(super) fn messages(items: &[Value<'_>], path: &Path<'_>) -> Result<Vec<Message>, DecodeError> {
    let mut decoder = StepDecoder::default();
    group_items(
        items.iter().enumerate().map(|(index, item)| {
            decoder.step(item, Scope::Place(index), &mut 0, &path.index(index))
        }),
    )
}

/// What a JSON object of this format is.
pub(super) fn document_kind(value: &Value<'_>) -> DocumentKind {
    if let Some(list) = value.as_array() {
        return match list {
            [only] if google::decode_error(&WIRE, only).is_some() => DocumentKind::Error,
            _ => DocumentKind::Unknown,
        };
    }
    let has = |key: &str| value.get(key).is_some();
    let is_text = |key: &str| value.get(key).is_some_and(|it| it.as_text().is_some());
    if is_text("type") {
        DocumentKind::Message
    } else if has("steps")
        || has("outputs")
        || (is_text("status") && is_text("id"))
        || value
            .get("object")
            .is_some_and(|it| it.is_str("interaction"))
    {
        DocumentKind::Response
    } else if member(value, "error").is_some_and(|error| error.as_object().is_some()) {
        DocumentKind::Error
    } else if has("input") || has("model") || has("agent") {
        DocumentKind::Request
    } else {
        DocumentKind::Unknown
    }
}

/// Read a request body.
pub(super) fn request(body: &Value<'_>) -> Result<Request, DecodeError> {
    if body.as_object().is_none() {
        return Err(DecodeError::expected(&Path::Root, "a request", body));
    }
    let mut request = Request::default();
    let mut edits: Vec<(&Value<'_>, &str)> = Vec::new();
    let bare = |text: throughline_model::json::Text<'_>| {
        Content::text(text.to_str()).with_vendor(Vendor::form(WIRE, Form::Bare))
    };
    if let Some(system) = member(body, "system_instruction") {
        let Some(text) = system.as_text() else {
            let path = Path::Root.key("system_instruction");
            return Err(DecodeError::expected(&path, "a string", system));
        };
        if text.is_canonical() {
            edits.push((system, "\"\""));
        }
        request.system.push(bare(text));
    }
    if let Some(input) = member(body, "input") {
        let path = Path::Root.key("input");
        if let Some(text) = input.as_text() {
            if text.is_canonical() {
                edits.push((input, "\"\""));
            }
            let message = Message::new(Role::User, vec![bare(text)]);
            request.messages.push(message);
        } else if let Some(items) = input.as_array() {
            request.messages = messages(items, &path)?;
            edits.push((input, "[]"));
        } else if input.as_object().is_some() {
            // One content that stands alone; the empty object in its place marks that.
            request.messages = messages(std::slice::from_ref(input), &path)?;
            edits.push((input, "{}"));
        } else {
            return Err(DecodeError::expected(
                &path,
                "a string, a content or an array of steps",
                input,
            ));
        }
    }
    request.tools = tools(body);
    let kept = RawJson::of_with(body, &edits);
    request.vendor = Some(Vendor::item(WIRE, kept));
    Ok(request)
}

fn tools(body: &Value<'_>) -> Vec<ToolDef> {
    let list = body.get("tools").and_then(Value::as_array);
    list.unwrap_or_default()
        .iter()
        .map(|tool| ToolDef {
            family: google::tool_family(&text_of(tool, "type").unwrap_or_default()),
            name: text_of(tool, "name").unwrap_or_default(),
            description: text_of(tool, "description"),
            parameters: member(tool, "parameters").map(RawJson::of),
            ..ToolDef::default()
        })
        .collect()
}

/// The member of a response that has the steps; older responses call it `outputs`.
pub(super) fn steps_key(body: &Value<'_>) -> &'static str {
    if member(body, "steps").is_none() && member(body, "outputs").is_some() {
        "outputs"
    } else {
        "steps"
    }
}

/// Read a response body.
pub(super) fn response(body: &Value<'_>) -> Result<Response, DecodeError> {
    let (response, _) = response_with_counts(body)?;
    Ok(response)
}

/// The same, and for each step how many contents it has.
pub(super) fn response_with_counts(
    body: &Value<'_>,
) -> Result<(Response, Vec<usize>), DecodeError> {
    if body.as_object().is_none() {
        return Err(DecodeError::expected(&Path::Root, "an interaction", body));
    }
    let id = text_of(body, "id").filter(|id| !id.is_empty());
    let mut extractor = Extractor::new(body);
    let mut contents = Vec::new();
    let mut counts = Vec::new();
    let key = steps_key(body);
    if let Some(list) = member(body, key) {
        let path = Path::Root.key(key);
        let Some(steps) = extractor.elements(list) else {
            return Err(DecodeError::expected(&path, "an array of steps", list));
        };
        let mut decoder = StepDecoder::default();
        let mut ordinal = 0;
        for (index, step) in steps.iter().enumerate() {
            let scope = response_scope(id.as_deref());
            let step_contents =
                decoder.response_step(step, scope, &mut ordinal, &path.index(index))?;
            counts.push(step_contents.len());
            contents.extend(step_contents);
        }
    }
    let stop = stop(
        text_of(body, "status").as_deref(),
        waits_for_client(&contents),
    );
    truncated_call::mark(&mut contents, &stop);
    let usage = member(body, "usage").map(usage);
    let mut messages = Vec::new();
    if !contents.is_empty() {
        let mut message = Message::new(Role::Assistant, contents);
        message.usage.clone_from(&usage);
        messages.push(message);
    }
    let errors = body.get("errors").and_then(Value::as_array);
    let error = member(body, "error").or_else(|| errors.and_then(<[_]>::first));
    let stored = member(body, "store").and_then(Value::as_bool) == Some(true);
    let response = Response {
        service: id.clone().filter(|_| stored),
        id,
        model: text_of(body, "model").or_else(|| text_of(body, "agent")),
        messages,
        usage,
        stop,
        error: error.map(|error| google::decode_error_object(&WIRE, error)),
        vendor: Some(Vendor::item(WIRE, extractor.into_template())),
    };
    Ok((response, counts))
}

/// Whether a call waits for the application.
fn waits_for_client(contents: &[Content]) -> bool {
    let answered = |call: &CallId| {
        let results = contents.iter().filter_map(Content::as_tool_result);
        results.map(ToolResult::call).any(|found| found == call)
    };
    contents
        .iter()
        .filter_map(Content::as_tool_call)
        .any(|call| call.runner == Runner::Client && !answered(&call.call))
}

/// Read usage. Thoughts and what tools brought into the prompt are counted apart on this wire.
pub(super) fn usage(value: &Value<'_>) -> Usage {
    let number = |key: &str| number_of(value, &[key]);
    let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    };
    let reasoning = number("total_thought_tokens");
    Usage {
        input: sum(
            number("total_input_tokens"),
            number("total_tool_use_tokens"),
        ),
        output: sum(number("total_output_tokens"), reasoning),
        total: number("total_tokens"),
        cache_read: number("total_cached_tokens"),
        cache_write: None,
        reasoning,
        vendor: Some(RawJson::of(value)),
        extra: Extra::NONE,
    }
}
