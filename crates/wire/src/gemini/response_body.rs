//! Whole response bodies, written.

use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson, Value, push_compact_with};
use throughline_model::{Response, Stop, Usage};

use super::types::PARTS;
use crate::template::{TemplateValue, restore};

/// What stands in a kept body where the content of a candidate was. The wire never has an array
/// there, so it cannot be taken for anything else.
pub(super) const CONTENT_PLACEHOLDER: &str = "[]";

const EMPTY_CONTENT: &str = r#"{"role":"model","parts":[]}"#;

/// The one content of a candidate. A message that was put together from several gives all their
/// parts to the first.
pub(super) fn merge_contents(mut items: Vec<String>) -> String {
    let first = match items.as_slice() {
        [] => return EMPTY_CONTENT.to_owned(),
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
    let all = crate::message_writer::array(&parts);
    match RawJson::new(first) {
        Ok(first) => {
            let mut out = String::new();
            restore(
                &mut out,
                &first,
                &[(&[PARTS], TemplateValue::Replace(&all))],
            );
            out
        }
        Err(_) => first.clone(),
    }
}

/// Put the contents of the candidates back into a kept body. Candidates without a content stay so;
/// what is left over becomes candidates of its own.
pub(super) fn restore_body(body: &RawJson, contents: &[String]) -> String {
    let value = body.value();
    let list = value.get("candidates");
    let candidates = list.and_then(Value::as_array).unwrap_or_default();
    let holes = candidates
        .iter()
        .filter_map(|candidate| candidate.get("content"))
        .filter(|content| content.as_array().is_some());
    let mut rest = contents.iter();
    let edits: Vec<(&Value<'_>, &str)> = holes
        .map(|hole| (hole, rest.next().map_or(EMPTY_CONTENT, String::as_str)))
        .collect();
    let size: usize = contents.iter().map(String::len).sum();
    let mut out = String::with_capacity(body.get().len() + size);
    if rest.len() == 0 {
        push_compact_with(&mut out, &value, &edits);
        return out;
    }
    let mut all = String::with_capacity(size);
    match list.filter(|_| !candidates.is_empty()) {
        Some(list) => {
            push_compact_with(&mut all, list, &edits);
            all.pop();
            all.push(',');
        }
        None => all.push('['),
    }
    for (extra, content) in rest.enumerate() {
        if extra > 0 {
            all.push(',');
        }
        let mut object = ObjectWriter::new(&mut all);
        object
            .raw("content", content)
            .number("index", (candidates.len() + extra) as u64);
        object.end();
    }
    all.push(']');
    restore(
        &mut out,
        body,
        &[(["candidates"], TemplateValue::Replace(&all))],
    );
    out
}

/// The body of a response of another vendor, with the reason why it finished. An error has no place
/// in it.
pub(super) fn build_body(response: &Response, contents: &[String], reason: Option<&str>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    if contents.is_empty() && response.stop == Stop::ContentFilter {
        let mut feedback = ObjectWriter::new(object.key("promptFeedback"));
        feedback.str("blockReason", "OTHER");
        feedback.end();
    } else {
        let mut list = ArrayWriter::new(object.key("candidates"));
        let nothing = [EMPTY_CONTENT.to_owned()];
        let contents = if contents.is_empty() {
            &nothing
        } else {
            contents
        };
        for (index, content) in contents.iter().enumerate() {
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
