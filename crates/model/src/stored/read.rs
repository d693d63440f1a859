use super::fields::{Fields, corrupt};
use super::{StoredError, VERSION};
use crate::json::{RawJson, Value};
use crate::{
    ApprovalRequest, ApprovalResponse, Arguments, Body, CallId, Citation, Content, Extra, Family,
    Fault, Form, IdField, IdFields, Media, MediaKind, MediaSource, Message, MessageId, Opaque,
    Origin, Outcome, Output, Path, Reasoning, Role, Runner, Source, Status, Text, ToolCall,
    ToolResult, Usage, Vendor, Wire,
};

pub(super) fn message(value: &Value<'_>, path: &Path<'_>) -> Result<Message, StoredError> {
    let mut fields = Fields::of(value, path)?;
    let version = fields.number("v")?.unwrap_or(VERSION);
    if version > VERSION {
        return Err(StoredError::Newer {
            path: path.to_string(),
            version,
        });
    }
    Ok(Message {
        id: fields.with("id", "an id of 1 to 128 visible characters", |value| {
            MessageId::new(&value.as_str()?).ok()
        })?,
        role: Role::named(&fields.required_str("role")?),
        contents: fields.list("contents", content)?,
        author: fields.str("author")?,
        created: fields.number("created")?,
        source: fields.str("source")?.map(|word| Source::named(&word)),
        status: fields.str("status")?.map(|word| Status::named(&word)),
        usage: match fields.get("usage") {
            Some(value) => Some(usage(value, &path.key("usage"))?),
            None => None,
        },
        meta: fields.raw_object("meta")?,
        extra: fields.rest(),
    })
}

pub(super) fn content(value: &Value<'_>, path: &Path<'_>) -> Result<Content, StoredError> {
    let mut fields = Fields::of(value, path)?;
    let kind = fields.required_str("kind")?;
    let body = match kind.as_str() {
        "text" => Body::Text(text(&mut fields)?),
        "refusal" => Body::Refusal(text(&mut fields)?),
        "reasoning" => Body::Reasoning(Reasoning {
            summary: fields.list("summary", string)?,
            text: fields.list("text", string)?,
            sealed: fields.flag("sealed")?,
        }),
        "media" => Body::Media(media(&mut fields)?),
        "tool_call" => Body::ToolCall(ToolCall {
            call: call_id(&mut fields, "call")?,
            family: family(&mut fields)?,
            name: fields.str("name")?.unwrap_or_default(),
            arguments: arguments(&mut fields)?,
            status: fields.str("status")?.map(|word| Status::named(&word)),
            runner: runner(&mut fields)?,
        }),
        "tool_result" => Body::ToolResult(tool_result(&mut fields)?),
        "approval_request" => Body::ApprovalRequest(ApprovalRequest {
            request: call_id(&mut fields, "request")?,
            name: fields.required_str("name")?,
            arguments: arguments(&mut fields)?,
            server: fields.str("server")?,
        }),
        "approval_response" => Body::ApprovalResponse(ApprovalResponse {
            request: call_id(&mut fields, "request")?,
            approved: fields
                .with("approved", "true or false", Value::as_bool)?
                .ok_or_else(|| fields.missing("approved", "true or false"))?,
            reason: fields.str("reason")?,
        }),
        "error" => Body::Error(Fault {
            message: fields.required_str("message")?,
            code: fields.str("code")?,
        }),
        "opaque" => Body::Opaque(Opaque {
            tag: fields.required_str("tag")?,
        }),
        _ => {
            return Ok(Content {
                body: Body::Unknown(RawJson::of(value)),
                vendor: None,
                extra: Extra::NONE,
            });
        }
    };
    let vendor = match fields.get("vendor") {
        Some(value) => Some(Box::new(vendor(value, &path.key("vendor"))?)),
        None => None,
    };
    Ok(Content {
        body,
        vendor,
        extra: fields.rest(),
    })
}

fn string(value: &Value<'_>, path: &Path<'_>) -> Result<String, StoredError> {
    match value.as_str() {
        Some(text) => Ok(text.into_owned()),
        None => Err(corrupt(path, "a string", value)),
    }
}

fn text(fields: &mut Fields<'_, '_>) -> Result<Text, StoredError> {
    Ok(Text {
        text: fields.required_str("text")?,
        citations: fields.list("citations", citation)?,
    })
}

fn citation(value: &Value<'_>, path: &Path<'_>) -> Result<Citation, StoredError> {
    let mut fields = Fields::of(value, path)?;
    Ok(Citation {
        url: fields.str("url")?,
        title: fields.str("title")?,
        file: fields.str("file")?,
        start: fields.number("start")?,
        end: fields.number("end")?,
        extra: fields.rest(),
    })
}

fn media(fields: &mut Fields<'_, '_>) -> Result<Media, StoredError> {
    let kind = fields
        .with(
            "media",
            "image, audio, video or file",
            |value| match &*value.as_str()? {
                "image" => Some(MediaKind::Image),
                "audio" => Some(MediaKind::Audio),
                "video" => Some(MediaKind::Video),
                "file" => Some(MediaKind::File),
                _ => None,
            },
        )?
        .ok_or_else(|| fields.missing("media", "image, audio, video or file"))?;
    let source = if let Some(uri) = fields.str("uri")? {
        MediaSource::Uri(uri)
    } else if let Some(data) = fields.str("data")? {
        MediaSource::Data(data)
    } else if let Some(file) = fields.str("file")? {
        MediaSource::File(file)
    } else {
        return Err(fields.missing("uri", "one of uri, data and file"));
    };
    Ok(Media {
        kind,
        media_type: fields.str("media_type")?,
        source,
        name: fields.str("name")?,
        transcript: fields.str("transcript")?,
    })
}

fn call_id(fields: &mut Fields<'_, '_>, key: &str) -> Result<CallId, StoredError> {
    const EXPECTED: &str = "natural, item or minted";
    let value = fields.required_str(key)?;
    let origin = fields
        .with("origin", EXPECTED, |value| {
            Origin::from_word(&value.as_str()?)
        })?
        .ok_or_else(|| fields.missing("origin", EXPECTED))?;
    CallId::with(&value, origin).ok_or_else(|| fields.missing(key, "an id that is not empty"))
}

fn family(fields: &mut Fields<'_, '_>) -> Result<Family, StoredError> {
    Ok(Family::named(&fields.required_str("family")?))
}

fn arguments(fields: &mut Fields<'_, '_>) -> Result<Arguments, StoredError> {
    if let Some(text) = fields.str("arguments")? {
        return Ok(Arguments::Text(text));
    }
    if let Some(text) = fields.str("input")? {
        return Ok(Arguments::Free(text));
    }
    // A call may be made with the JSON value null, so null is not absence here.
    Ok(match fields.get_or_null("arguments_json") {
        Some(value) => Arguments::Json(RawJson::of(value)),
        None => Arguments::None,
    })
}

fn runner(fields: &mut Fields<'_, '_>) -> Result<Runner, StoredError> {
    let found = fields.with("runner", "client or vendor", |value| {
        match &*value.as_str()? {
            "client" => Some(Runner::Client),
            "vendor" => Some(Runner::Vendor),
            _ => None,
        }
    })?;
    Ok(found.unwrap_or_default())
}

fn tool_result(fields: &mut Fields<'_, '_>) -> Result<ToolResult, StoredError> {
    const EXPECTED: &str = "one of the nine outcomes";
    let id = call_id(fields, "call")?;
    let standalone = fields.flag("standalone")?;
    let occurrence = fields.number("occurrence")?;
    let family = family(fields)?;
    let output = if let Some(text) = fields.str("text")? {
        Output::Text(text)
    } else if let Some(value) = fields.get_or_null("json") {
        Output::Json(RawJson::of(value))
    } else if fields.get("parts").is_some() {
        Output::Parts(fields.list("parts", content)?)
    } else {
        Output::None
    };
    let mut result = if standalone {
        ToolResult::standalone(id, family, output)
    } else {
        ToolResult::answering(id, family, output)
    };
    if let Some(occurrence) = occurrence {
        // More calls than a message can hold: no call has that number, so the result answers none.
        result = result.with_occurrence(u32::try_from(occurrence).unwrap_or(u32::MAX));
    }
    result.name = fields.str("name")?;
    result.outcome = fields
        .with("outcome", EXPECTED, |value| {
            Outcome::from_word(&value.as_str()?)
        })?
        .ok_or_else(|| fields.missing("outcome", EXPECTED))?;
    result.runner = runner(fields)?;
    Ok(result)
}

pub(super) fn vendor(value: &Value<'_>, path: &Path<'_>) -> Result<Vendor, StoredError> {
    let mut fields = Fields::of(value, path)?;
    let wire = Wire::named(&fields.required_str("wire")?);
    let id_fields = IdFields {
        id: id_field(&mut fields, "id", path)?,
        call: id_field(&mut fields, "call", path)?,
    };
    let envelope = fields.raw_object("envelope")?;
    let form = if fields.flag("bare")? {
        Form::Bare
    } else if fields.flag("within")? {
        Form::Within
    } else if let Some(part) = fields.raw("part") {
        Form::Part(part)
    } else if let Some(item) = fields.raw("item") {
        Form::Item(item)
    } else {
        return Err(fields.missing("item", "one of item, part, bare and within"));
    };
    Ok(Vendor {
        wire,
        id_fields,
        envelope,
        form,
        extra: fields.rest(),
    })
}

fn id_field(
    fields: &mut Fields<'_, '_>,
    key: &str,
    path: &Path<'_>,
) -> Result<IdField, StoredError> {
    let Some(value) = fields.get_or_null(key) else {
        return Ok(IdField::NoField);
    };
    if value.is_null() {
        return Ok(IdField::Null);
    }
    if value.as_bool() == Some(false) {
        return Ok(IdField::Missing);
    }
    match value.as_str() {
        Some(text) => Ok(IdField::Set(text.into())),
        None => Err(corrupt(&path.key(key), "a string, null or false", value)),
    }
}

fn usage(value: &Value<'_>, path: &Path<'_>) -> Result<Usage, StoredError> {
    let mut fields = Fields::of(value, path)?;
    Ok(Usage {
        input: fields.number("input")?,
        output: fields.number("output")?,
        total: fields.number("total")?,
        cache_read: fields.number("cache_read")?,
        cache_write: fields.number("cache_write")?,
        reasoning: fields.number("reasoning")?,
        vendor: fields.raw("vendor"),
        extra: fields.rest(),
    })
}
