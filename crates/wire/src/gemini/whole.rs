//! Whole response bodies, written.

use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson, Value, push_compact_with};
use throughline_model::{Response, Stop, Usage};

use super::types::PARTS;
use crate::fill::{Fill, fill};

/// What stands in a kept body where the content of a candidate was. The wire never has an array
/// there, so it cannot be taken for anything else.
pub(super) const HOLE: &str = "[]";

const NOTHING: &str = r#"{"role":"model","parts":[]}"#;

/// The one content of a candidate. A message that was put together from several gives all their
/// parts to the first.
pub(super) fn one_content(mut items: Vec<String>) -> String {
    let first = match items.as_slice() {
        [] => return NOTHING.to_owned(),
        [_] => return items.remove(0),
        [first, ..] => first,
    };
    let mut parts = Vec::new();
    for item in &items {
        if let Ok(value) = json::parse(item) {
            let found = value.get(PARTS).and_then(Value::as_array);
            let found = found.unwrap_or_default().iter();
            parts.extend(found.map(|part| RawJson::of(part).get().to_owned()));
        }
    }
    let all = crate::gather::array(&parts);
    match RawJson::new(first) {
        Ok(first) => {
            let mut out = String::new();
            fill(&mut out, &first, &[(&[PARTS], Fill::Replace(&all))]);
            out
        }
        Err(_) => first.clone(),
    }
}

/// Put what the candidates said back into a kept body. Candidates without a content stay so; what
/// is left over becomes candidates of its own.
pub(super) fn filled(body: &RawJson, said: &[String]) -> String {
    let value = body.value();
    let candidates = value.get("candidates").and_then(Value::as_array);
    let candidates = candidates.unwrap_or_default();
    let mut said = said.iter();
    let mut list = String::new();
    let mut array = ArrayWriter::new(&mut list);
    let mut changed = false;
    for candidate in candidates {
        match candidate.get("content") {
            Some(hole) if hole.as_array().is_some() => {
                let content = said.next().map_or(NOTHING, String::as_str);
                push_compact_with(array.slot(), candidate, &[(hole, content)]);
                changed = true;
            }
            _ => push_compact_with(array.slot(), candidate, &[]),
        }
    }
    for (extra, content) in said.enumerate() {
        let mut object = ObjectWriter::new(array.slot());
        object
            .raw("content", content)
            .number("index", (candidates.len() + extra) as u64);
        object.end();
        changed = true;
    }
    array.end();
    let mut out = String::new();
    if changed {
        fill(&mut out, body, &[(&["candidates"], Fill::Replace(&list))]);
    } else {
        out.push_str(body.get());
    }
    out
}

/// A body for a response that came from elsewhere, with the reason why it finished. An error has
/// no place in it.
pub(super) fn made(response: &Response, said: &[String], reason: Option<&str>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    if said.is_empty() && response.stop == Stop::ContentFilter {
        let mut feedback = ObjectWriter::new(object.key("promptFeedback"));
        feedback.str("blockReason", "OTHER");
        feedback.end();
    } else {
        let mut list = ArrayWriter::new(object.key("candidates"));
        let nothing = [NOTHING.to_owned()];
        let said = if said.is_empty() { &nothing } else { said };
        for (index, content) in said.iter().enumerate() {
            let mut candidate = ObjectWriter::new(list.slot());
            candidate.raw("content", content);
            if let Some(reason) = reason {
                candidate.str("finishReason", reason);
            }
            candidate.number("index", index as u64);
            candidate.end();
        }
        list.end();
    }
    if let Some(found) = &response.usage {
        usage(object.key("usageMetadata"), found);
    }
    if let Some(model) = &response.model {
        object.str("modelVersion", model);
    }
    if let Some(id) = &response.id {
        object.str("responseId", id);
    }
    object.end();
    out
}

fn usage(out: &mut String, usage: &Usage) {
    let mut object = ObjectWriter::new(out);
    let candidates = usage
        .output
        .map(|output| output.saturating_sub(usage.reasoning.unwrap_or(0)));
    for (key, value) in [
        ("promptTokenCount", usage.input),
        ("cachedContentTokenCount", usage.cache_read),
        ("candidatesTokenCount", candidates),
        ("thoughtsTokenCount", usage.reasoning),
        ("totalTokenCount", usage.total),
    ] {
        if let Some(value) = value {
            object.number(key, value);
        }
    }
    object.end();
}
