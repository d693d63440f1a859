//! Our own file format: `{"format":"throughline.neutral/1", "system"?, "messages", "request"?}`.

use throughline_model::json::{ArrayWriter, ObjectWriter, Value};
use throughline_model::stored::{Fields, StoredError};
use throughline_model::{Content, Form, Message, Path, Request, Vendor};

use super::{Transcript, TranscriptShape, trajectory};
use crate::{DecodeError, Problem, codec};

const FORMAT: &str = "throughline.neutral/1";

pub(super) fn read(value: &Value<'_>) -> Result<Transcript, DecodeError> {
    if let Some(items) = value.as_array() {
        let messages = items
            .iter()
            .enumerate()
            .map(|(index, item)| Message::from_value(item, &Path::Root.index(index)))
            .collect::<Result<_, StoredError>>()?;
        return Ok(Transcript::of(messages));
    }
    let format = value.get("format").and_then(Value::as_str);
    match format.as_deref() {
        Some(FORMAT) => document(value),
        Some(trajectory::FORMAT) => trajectory::read(value).map(Transcript::of),
        Some(other) => Err(DecodeError::new(
            &Path::Root.key("format"),
            Problem::Expected {
                expected: "throughline.neutral/1 or throughline.trajectory/1",
                found: format!("{other:?}"),
            },
        )),
        // A single message is a list of one.
        None if value.get("role").is_some() => {
            let message = Message::from_value(value, &Path::Root)?;
            Ok(Transcript::of(vec![message]))
        }
        None => Err(DecodeError::missing(
            &Path::Root.key("format"),
            "throughline.neutral/1 or throughline.trajectory/1",
        )),
    }
}

fn document(value: &Value<'_>) -> Result<Transcript, DecodeError> {
    let mut fields = Fields::of(value, &Path::Root)?;
    let mut request = Request {
        messages: fields.list("messages", Message::from_value)?,
        ..Request::default()
    };
    request.system = match fields.get("system").map(|system| (system, system.as_str())) {
        Some((_, Some(text))) => vec![Content::text(text)],
        Some((_, None)) => fields.list("system", Content::from_value)?,
        None => Vec::new(),
    };
    let Some(found) = fields.get("request") else {
        return Ok(Transcript {
            shape: TranscriptShape::Array,
            request,
        });
    };
    let vendor = Vendor::from_value(found, &Path::Root.key("request"))?;
    // Tools are read from the vendor's own body, where they are kept whole.
    if let (Some(codec), Form::Item(body)) = (codec(&vendor.wire), &vendor.form) {
        request.tools = codec.decode_request(&body.value())?.tools;
    }
    request.vendor = Some(vendor);
    Ok(Transcript {
        shape: TranscriptShape::Request,
        request,
    })
}

pub(super) fn write(transcript: &Transcript) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.str("format", FORMAT);
    let request = &transcript.request;
    if !request.system.is_empty() {
        let mut array = ArrayWriter::new(object.key("system"));
        for content in &request.system {
            content.write_json(array.slot());
        }
        array.end();
    }
    let mut array = ArrayWriter::new(object.key("messages"));
    for message in &request.messages {
        message.write_json(array.slot());
    }
    array.end();
    if let (TranscriptShape::Request, Some(vendor)) = (transcript.shape, &request.vendor) {
        vendor.write_json(object.key("request"));
    }
    object.end();
    out
}
