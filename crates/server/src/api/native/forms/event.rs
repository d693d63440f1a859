//! Events of runs.

use throughline::RunEvent;
use throughline_model::json::ObjectWriter;
use throughline_model::{Body, Content, Place};
use throughline_store::EventNo;

/// The names of all events.
pub const TYPES: [&str; 14] = [
    "started",
    "asked",
    "compacted",
    "narrated",
    "text",
    "refusal",
    "summary",
    "reasoning",
    "content",
    "incomplete",
    "dispatched",
    "result",
    "message",
    "ended",
];

/// The name of an event.
pub const fn name(event: &RunEvent) -> &'static str {
    match event {
        RunEvent::Started { .. } => "started",
        RunEvent::Asked { .. } => "asked",
        RunEvent::Compacted { .. } => "compacted",
        RunEvent::Narrated { .. } => "narrated",
        RunEvent::Text { .. } => "text",
        RunEvent::Refusal { .. } => "refusal",
        RunEvent::Summary { .. } => "summary",
        RunEvent::Reasoning { .. } => "reasoning",
        RunEvent::Content { .. } => "content",
        RunEvent::Incomplete { .. } => "incomplete",
        RunEvent::Dispatched { .. } => "dispatched",
        RunEvent::Result { .. } => "result",
        RunEvent::Message(_) => "message",
        RunEvent::Ended { .. } => "ended",
    }
}

/// `{"no","type", …}`: an event with its number and what it carries.
pub fn write(out: &mut String, no: EventNo, event: &RunEvent) {
    let mut object = ObjectWriter::new(out);
    object.number("no", no).str("type", name(event));
    match event {
        RunEvent::Started { run, thread } => {
            object
                .str("run", &run.to_string())
                .str("thread", thread.as_str());
        }
        RunEvent::Asked { step } => {
            object.number("step", u64::from(*step));
        }
        RunEvent::Compacted { step, report } => {
            object
                .number("step", u64::from(*step))
                .raw("report", &report.to_json());
        }
        RunEvent::Narrated { narrated } => narrated.write(object.key("narrated")),
        RunEvent::Text { step, at, delta }
        | RunEvent::Refusal { step, at, delta }
        | RunEvent::Reasoning { step, at, delta } => {
            place(&mut object, *step, *at);
            object.str("delta", delta);
        }
        RunEvent::Summary {
            step,
            at,
            part,
            delta,
        } => {
            place(&mut object, *step, *at);
            object.number("part", u64::from(*part)).str("delta", delta);
        }
        RunEvent::Content { step, at, content } => {
            place(&mut object, *step, *at);
            content.write_json(object.key("content"));
        }
        RunEvent::Incomplete { step, at } => place(&mut object, *step, *at),
        RunEvent::Dispatched {
            step,
            position,
            call,
            tool,
        } => {
            object
                .number("step", u64::from(*step))
                .number("position", u64::from(*position))
                .str("call", call.value())
                .str("tool", tool);
        }
        RunEvent::Result {
            step,
            position,
            result,
        } => {
            object
                .number("step", u64::from(*step))
                .number("position", u64::from(*position));
            let result = Content::new(Body::ToolResult(result.clone()));
            result.write_json(object.key("result"));
        }
        RunEvent::Message(message) => message.write_json(object.key("message")),
        RunEvent::Ended { stop } => {
            object.str("stop", stop.as_str());
        }
    }
    object.end();
}

/// Which content of which model call's answer an event is about.
fn place(object: &mut ObjectWriter<'_>, step: u32, at: Place) {
    object.number("step", u64::from(step));
    let mut place = ObjectWriter::new(object.key("at"));
    place
        .number("choice", at.choice as u64)
        .number("item", at.item as u64)
        .number("part", at.part as u64);
    place.end();
}
