//! Writing a response as the events of a stream.

use throughline_model::Response;
use throughline_model::json::{
    self, ObjectWriter, RawJson, Value, push_compact, push_compact_with,
};

use super::encode;
use super::stream::{
    COMPLETED, CREATED, Decoder, STATUS_UPDATE, STEP_DELTA, STEP_START, STEP_STOP,
};
use super::streamed_step::{StepChange, StreamedStep};
use super::types::{ARGUMENTS, CONTENT, MODEL_OUTPUT, THOUGHT};
use crate::read::{member, text_of};
use crate::sse::Frame;
use crate::{Losses, StreamDecoder};

/// Write a response as the events of a stream: each step begins, brings its text and stops; the
/// interaction at the end comes without them. What would not come back the same stays whole.
pub(super) fn encode_stream(response: &Response, losses: &mut Losses) -> Vec<Frame> {
    if let Some((body, error)) = encode::failed_response(response, losses) {
        // The stream ends early: the interaction is sent as it began, and never as completed.
        let value = body.as_deref().and_then(|body| json::parse(body).ok());
        let mut frames = value.as_ref().map(frames).unwrap_or_default();
        frames.pop();
        frames.extend(value.as_ref().and_then(usage_frame));
        frames.push(frame("error", |object| {
            encode::push_error(object.key("error"), error);
        }));
        return frames;
    }
    let body = encode::response(response, losses);
    let streamed = json::parse(&body).ok().map(|value| frames(&value));
    let streamed = streamed.filter(|frames| reads_back(frames, &body));
    streamed.unwrap_or_else(|| {
        vec![frame(COMPLETED, |object| {
            object.raw("interaction", &body);
        })]
    })
}

/// The tokens of an interaction that fails, which only its end would report otherwise.
fn usage_frame(body: &Value<'_>) -> Option<Frame> {
    let (id, status) = (body.get("id")?, body.get("status")?);
    let usage = member(body, "usage")?;
    Some(frame(STATUS_UPDATE, |object| {
        object
            .raw("interaction_id", id.raw())
            .raw("status", status.raw());
        push_compact(object.key("usage"), usage);
    }))
}

fn frame(kind: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) -> Frame {
    let mut data = String::new();
    let mut object = ObjectWriter::new(&mut data);
    write(&mut object);
    object.str("event_type", kind);
    object.end();
    Frame {
        event: Some(kind.to_owned()),
        data,
        ..Frame::default()
    }
}

fn reads_back(frames: &[Frame], body: &str) -> bool {
    let mut decoder = Decoder::default();
    let read = frames.iter().all(|frame| decoder.push(frame).is_ok());
    read && decoder.body().is_some_and(|whole| whole.get() == body)
}

fn frames(body: &Value<'_>) -> Vec<Frame> {
    let begun = RawJson::object(|object| {
        for key in ["id", "object", "model", "agent", "created"] {
            if let Some(value) = body.get(key) {
                push_compact(object.key(key), value);
            }
        }
        object.str("status", "in_progress");
    });
    let mut frames = vec![frame(CREATED, |object| {
        object.raw("interaction", begun.get());
    })];
    let steps = member(body, "steps");
    let list = steps.and_then(Value::as_array).unwrap_or_default();
    for (index, step) in list.iter().enumerate() {
        let (begun, deltas) = step_start_and_deltas(step);
        frames.push(frame(STEP_START, |object| {
            object.number("index", index as u64).raw("step", &begun);
        }));
        for delta in deltas {
            frames.push(frame(STEP_DELTA, |object| {
                object.number("index", index as u64).raw("delta", &delta);
            }));
        }
        frames.push(frame(STEP_STOP, |object| {
            object.number("index", index as u64);
        }));
    }
    let mut end = String::new();
    match steps.filter(|_| !list.is_empty()) {
        Some(steps) => push_compact_with(&mut end, body, &[(steps, "[]")]),
        None => push_compact(&mut end, body),
    }
    frames.push(frame(COMPLETED, |object| {
        object.raw("interaction", &end);
    }));
    frames
}

/// A step as it begins and the deltas that make it whole; all at once if deltas cannot.
fn step_start_and_deltas(step: &Value<'_>) -> (String, Vec<String>) {
    let mut edits: Vec<(&Value<'_>, &str)> = Vec::new();
    let mut deltas = Vec::new();
    match text_of(step, "type").as_deref() {
        Some(MODEL_OUTPUT) => {
            if let Some(content) = step.get(CONTENT) {
                let parts = content.as_array().unwrap_or_default();
                deltas.extend(parts.iter().flat_map(part_deltas));
                edits.push((content, "[]"));
            }
        }
        Some("function_call") => {
            let arguments = step.get(ARGUMENTS);
            if let Some(arguments) = arguments.filter(|it| it.as_object().is_some()) {
                let mut object = String::new();
                push_compact(&mut object, arguments);
                deltas.push(delta("arguments_delta", |delta| {
                    delta.str(ARGUMENTS, &object);
                }));
                edits.push((arguments, "{}"));
            }
        }
        Some(THOUGHT) => {
            if let Some(summary) = step.get("summary") {
                for part in summary.as_array().unwrap_or_default() {
                    deltas.push(delta("thought_summary", |delta| {
                        push_compact(delta.key("content"), part);
                    }));
                }
                edits.push((summary, "[]"));
            }
            if let Some(signature) = member(step, "signature") {
                deltas.push(delta("thought_signature", |delta| {
                    delta.raw("signature", signature.raw());
                }));
                edits.push((signature, "\"\""));
            }
        }
        _ => {}
    }
    let begun = RawJson::of_with(step, &edits);
    let mut rebuilt = StreamedStep::begin(&begun.value());
    let read = deltas.iter().all(|delta| {
        json::parse(delta).is_ok_and(|delta| !matches!(rebuilt.apply(&delta), StepChange::Unknown))
    });
    let mut all = String::new();
    push_compact(&mut all, step);
    if read && rebuilt.to_json() == all {
        (begun.get().to_owned(), deltas)
    } else {
        (all, Vec::new())
    }
}

fn delta(kind: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.str("type", kind);
    write(&mut object);
    object.end();
    out
}

/// The deltas of one part of the model's output.
fn part_deltas(part: &Value<'_>) -> Vec<String> {
    let text = part.get("text").filter(|text| text.as_text().is_some());
    let Some(text) = text else {
        return vec![RawJson::of(part).get().to_owned()];
    };
    let mut deltas = vec![delta("text", |delta| {
        delta.raw("text", text.raw());
    })];
    if let Some(annotations) = member(part, "annotations") {
        deltas.push(delta("text_annotation_delta", |delta| {
            push_compact(delta.key("annotations"), annotations);
        }));
    }
    deltas
}
