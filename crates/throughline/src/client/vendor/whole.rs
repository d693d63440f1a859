//! Reads a whole body.

use throughline_model::json::{JsonErrorKind, Limits, Value, parse_bytes};
use throughline_model::{Event, Fold, Response, Stop, VendorError};
use throughline_wire::sse::Frame;
use throughline_wire::{Codec, DecodeError, DocumentKind};

use super::answer::Head;
use super::{failure, token_counts};
use crate::client::{ClientError, ErrorKind};

/// The response in a body. Anything but a complete answer is an error.
pub(super) fn read(codec: &Codec, head: &Head, body: &[u8]) -> Result<Response, ClientError> {
    let response = response(codec, head, &parse(head, body)?)?;
    check(head, &response.stop, response.error.as_ref())?;
    Ok(response)
}

/// The JSON in a body.
pub(super) fn parse<'b>(head: &Head, body: &'b [u8]) -> Result<Value<'b>, ClientError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(head.error(ErrorKind::Cut, "the answer is empty"));
    }
    parse_bytes(body, Limits::default()).map_err(|error| {
        let kind = match error.kind {
            JsonErrorKind::UnexpectedEnd => ErrorKind::Cut,
            _ => ErrorKind::Malformed,
        };
        head.error(kind, "the answer is not JSON")
            .with_source(error)
    })
}

/// The response in the JSON of a body, complete or not.
pub(super) fn response(
    codec: &Codec,
    head: &Head,
    value: &Value<'_>,
) -> Result<Response, ClientError> {
    let response = match codec.document_kind(value) {
        DocumentKind::Error => return Err(error_instead(codec, head, value)),
        DocumentKind::Response => decode(codec, value),
        DocumentKind::Request | DocumentKind::Message | DocumentKind::Unknown => {
            // Error bodies of servers that imitate the vendor.
            if value.get("error").is_some_and(|error| !error.is_null()) {
                return Err(error_instead(codec, head, value));
            }
            let text = "the answer is JSON, but no response";
            return Err(head.error(ErrorKind::Malformed, text));
        }
    };
    let mut response = response.map_err(|error| malformed(head, error))?;
    if let Some(usage) = &mut response.usage {
        token_counts::clamp(&head.upstream, usage);
    }
    let said = response.service.take();
    let vendor = response.vendor.as_ref();
    response.service = head.stored_by.service(said, response.id.as_deref(), vendor);
    Ok(response)
}

fn decode(codec: &Codec, value: &Value<'_>) -> Result<Response, DecodeError> {
    if value.as_array().is_none() || !codec.streams_as_array() {
        return codec.decode_response(value);
    }
    let mut decoder = codec.stream();
    let frame = Frame {
        data: value.raw().to_owned(),
        ..Frame::default()
    };
    let mut fold = Fold::new();
    let mut events: Vec<Event> = decoder.push(&frame)?;
    events.extend(decoder.end()?);
    for event in events {
        fold.push(event);
    }
    Ok(fold.finish())
}

pub(super) fn malformed(head: &Head, error: DecodeError) -> ClientError {
    head.error(
        ErrorKind::Malformed,
        "the answer is not what its format says",
    )
    .with_source(error)
}

/// The error in a body that should be an answer.
pub(super) fn error_instead(codec: &Codec, head: &Head, value: &Value<'_>) -> ClientError {
    match failure::error_in_body(codec, value) {
        Some(error) => head.vendor(error),
        None => head.error(ErrorKind::Unavailable, "the service tells of an error"),
    }
}

/// Checks that an answer with this stop reason is complete.
pub(super) fn check(
    head: &Head,
    stop: &Stop,
    error: Option<&VendorError>,
) -> Result<(), ClientError> {
    match stop {
        Stop::Failed => Err(match error {
            Some(error) => head.vendor(error.clone()),
            None => head.error(ErrorKind::Unavailable, "the service says that it failed"),
        }),
        Stop::Cut => Err(head.error(ErrorKind::Cut, "the answer does not say why it ended")),
        Stop::InProgress => Err(head.error(
            ErrorKind::Malformed,
            "the service has not finished the answer",
        )),
        Stop::Done
        | Stop::ToolCalls
        | Stop::Length
        | Stop::ContentFilter
        | Stop::Refusal
        | Stop::Paused
        | Stop::Cancelled
        | Stop::Other(_) => Ok(()),
    }
}
