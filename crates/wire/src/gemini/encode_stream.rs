//! Writing a response as the frames of a stream.

use throughline_model::json::{
    self, ObjectWriter, RawJson, Value, push_compact, push_compact_with,
};
use throughline_model::{Response, Wire};

use super::candidate::plain;
use super::encode;
use super::stream::Decoder;
use super::types::PARTS;
use crate::Losses;
use crate::google;
use crate::message_writer::array;
use crate::read::member;
use crate::sse::Frame;

/// Write a response as the frames of a stream: a frame for each part, the last with everything
/// else. What would not come back the same is one frame.
pub(super) fn encode_stream(response: &Response, losses: &mut Losses) -> Vec<Frame> {
    let frames = match encode::failed_response(response, losses) {
        // The stream breaks off with an error.
        Some((body, error)) => {
            let mut frames = body.map(frames_or_whole).unwrap_or_default();
            frames.push(google::encode_error(&Wire::Gemini, error));
            frames
        }
        None => frames_or_whole(encode::response(response, losses)),
    };
    let frame = |data| Frame {
        data,
        ..Frame::default()
    };
    frames.into_iter().map(frame).collect()
}

fn frames_or_whole(body: String) -> Vec<String> {
    let frames = frames(&body).filter(|frames| reads_back(frames, &body));
    frames.unwrap_or_else(|| vec![body])
}

fn reads_back(frames: &[String], body: &str) -> bool {
    let mut decoder = Decoder::default();
    for frame in frames {
        let Ok(value) = json::parse(frame) else {
            return false;
        };
        if decoder.take(&value, &mut Vec::new()).is_err() {
            return false;
        }
    }
    decoder.body().is_some_and(|whole| whole.get() == body)
}

/// The frames of a body with one candidate.
fn frames(body: &str) -> Option<Vec<String>> {
    let value = json::parse(body).ok()?;
    let [candidate] = value.get("candidates")?.as_array()? else {
        return None;
    };
    let content = candidate.get("content")?;
    let list = content.get(PARTS)?;
    // Parts that would run together stay in one frame.
    let mut runs: Vec<Vec<String>> = Vec::new();
    let mut last: Option<&Value<'_>> = None;
    for part in list.as_array()? {
        let kind = |part: &Value<'_>| plain(part).map(|(_, thought)| thought);
        let is_empty = |part: &Value<'_>| plain(part).is_some_and(|(text, _)| text.is_empty());
        let joins = last.is_some_and(|last| {
            is_empty(last) || is_empty(part) || (kind(last).is_some() && kind(last) == kind(part))
        });
        let text = RawJson::of(part).get().to_owned();
        match runs.last_mut() {
            Some(run) if joins => run.push(text),
            _ => runs.push(vec![text]),
        }
        last = Some(part);
    }
    let last = runs.pop()?;
    let mut frames = Vec::with_capacity(runs.len() + 1);
    for run in &runs {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        let mut json = String::new();
        push_compact_with(&mut json, content, &[(list, &array(run))]);
        let mut one = String::from("[");
        let mut inner = ObjectWriter::new(&mut one);
        inner.raw("content", &json);
        if let Some(index) = candidate.get("index") {
            inner.raw("index", index.raw());
        }
        inner.end();
        one.push(']');
        object.raw("candidates", &one);
        for key in ["modelVersion", "responseId"] {
            if let Some(value) = member(&value, key) {
                push_compact(object.key(key), value);
            }
        }
        object.end();
        frames.push(out);
    }
    let mut out = String::new();
    push_compact_with(&mut out, &value, &[(list, &array(&last))]);
    frames.push(out);
    Some(frames)
}
