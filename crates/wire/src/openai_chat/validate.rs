//! OpenAI Chat Completions. Compatible servers differ; these are OpenAI's own rules.

use std::collections::BTreeMap;

use throughline_model::Path;
use throughline_model::json::Value;

use crate::validate::object_schema::{Field, Kind, KnownObject, member, required, text};
use crate::validate::profile::Profile;
use crate::validate::report::Report;

const LONGEST_ID: usize = 40;
const ROLES: [&str; 6] = [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];
const MEDIA_PARTS: [&str; 3] = ["image_url", "input_audio", "file"];

const FUNCTION: &[Field] = &[
    required("name", Kind::TEXT),
    required("arguments", Kind::TEXT),
];
const CUSTOM: &[Field] = &[required("name", Kind::TEXT), required("input", Kind::TEXT)];

/// The calls of the assistant message that may still be answered.
struct Open {
    index: usize,
    /// How many calls of an id still wait; mostly one or none.
    ids: BTreeMap<String, usize>,
}

pub(super) fn check(request: &Value<'_>, _profile: &Profile, report: &mut Report) {
    let messages = Path::Root.key("messages");
    let given = match request.as_array() {
        Some(list) => Some(list),
        None => request.get("messages").and_then(Value::as_array),
    };
    let Some(list) = given else {
        report.add("S-C1", &messages, "`messages` must be an array of messages");
        return;
    };
    let mut open: Option<Open> = None;
    for (index, message) in list.iter().enumerate() {
        let path = messages.index(index);
        if message.as_object().is_none() {
            let text = format!("a message must be an object, not {}", message.kind());
            report.add("S-C1", &path, text);
            continue;
        }
        let role = text(message, "role").unwrap_or_default();
        if !ROLES.contains(&role.as_str()) {
            let words = format!("`role` must be one of `{}`", ROLES.join("`, `"));
            report
                .add("S-C2", &path.key("role"), words)
                .about([role.as_str()]);
        }
        content(&role, message, &path, report);
        if role == "tool" {
            answer(message, open.as_mut(), &path, report);
            continue;
        }
        close(open.take(), report);
        if role == "assistant" {
            let ids = calls(message, &path, report);
            open = (!ids.is_empty()).then_some(Open { index, ids });
        }
    }
    close(open, report);
}

fn content(role: &str, message: &Value<'_>, path: &Path<'_>, report: &mut Report) {
    let place = path.key("content");
    let parts = match member(message, "content") {
        None => {
            let instead = ["tool_calls", "function_call", "refusal", "audio"];
            let excused = match role {
                "assistant" => instead.iter().any(|key| member(message, key).is_some()),
                // The old form of a result may be null.
                "function" => true,
                _ => false,
            };
            if !excused {
                let text = format!("a `{role}` message must have `content`");
                report.add("S-C2", &place, text).about([role]);
            }
            return;
        }
        Some(found) if found.as_str().is_some() => return,
        Some(found) => found.as_array(),
    };
    let Some(parts) = parts else {
        let text = "`content` must be a string or an array of parts";
        report.add("S-C2", &place, text).about([role]);
        return;
    };
    for (index, part) in parts.iter().enumerate() {
        let kind = text(part, "type").unwrap_or_default();
        let place = place.index(index);
        if role == "tool" && kind != "text" {
            let text = "a tool message takes text only; move the rest to a user message after it";
            report.add("C-5", &place, text).about([kind]);
        } else if role != "user" && MEDIA_PARTS.contains(&kind.as_str()) {
            let text = format!("`{kind}` stands in user messages only; move it to one");
            report.add("S-C5", &place, text).about([kind]);
        } else if kind.is_empty() {
            let text = "a part must be an object with a `type`";
            report.add("S-C2", &place, text).about([role]);
        }
    }
}

/// The ids of the calls; reports what is wrong with the calls themselves.
fn calls(message: &Value<'_>, path: &Path<'_>, report: &mut Report) -> BTreeMap<String, usize> {
    let Some(given) = member(message, "tool_calls") else {
        return BTreeMap::new();
    };
    let place = path.key("tool_calls");
    let Some(list) = given.as_array() else {
        report.add("S-C3", &place, "`tool_calls` must be an array of calls");
        return BTreeMap::new();
    };
    if list.is_empty() {
        report.add("C-3", &place, "`tool_calls` is empty; leave it out");
    }
    let mut ids = BTreeMap::new();
    for (index, call) in list.iter().enumerate() {
        let path = place.index(index);
        match text(call, "id") {
            Some(id) => {
                length(&id, &path.key("id"), report);
                *ids.entry(id).or_default() += 1;
            }
            None => {
                report.add("S-C3", &path.key("id"), "a call must have an `id`");
            }
        }
        let kind = text(call, "type").unwrap_or_default();
        let fields = match kind.as_str() {
            "function" => FUNCTION,
            "custom" => CUSTOM,
            _ => {
                let text = "the `type` of a call must be `function` or `custom`";
                report.add("S-C3", &path.key("type"), text).about([kind]);
                continue;
            }
        };
        let inner = path.key(&kind);
        match call.get(&kind).filter(|body| body.as_object().is_some()) {
            Some(body) => {
                let known = KnownObject {
                    rule: "S-C3",
                    tag: &kind,
                    object: body,
                    path: &inner,
                };
                known.check(fields, report);
            }
            None => {
                let text = format!("a call of type `{kind}` must have an object `{kind}`");
                report.add("S-C3", &inner, text).about([kind.as_str()]);
            }
        }
    }
    ids
}

fn length(id: &str, path: &Path<'_>, report: &mut Report) {
    let length = id.chars().count();
    if (1..=LONGEST_ID).contains(&length) {
        return;
    }
    let text = format!(
        "the id has {length} characters and must have 1 to {LONGEST_ID}; change call and result \
         the same way"
    );
    let vendor = match length {
        0 => String::new(),
        _ => format!(
            "Invalid '{path}': string too long. Expected a string with maximum length \
             {LONGEST_ID}, but got a string with length {length} instead."
        ),
    };
    report
        .add("C-4", path, text)
        .about([id])
        .with_vendor_text(vendor);
}

fn answer(message: &Value<'_>, open: Option<&mut Open>, path: &Path<'_>, report: &mut Report) {
    let place = path.key("tool_call_id");
    let Some(id) = text(message, "tool_call_id") else {
        let text = "a tool message must say which call it answers";
        report.add("S-C2", &place, text).about(["tool"]);
        return;
    };
    length(&id, &place, report);
    let Some(open) = open else {
        let text = "no assistant message with calls comes right before; send the call too, or the \
                    result as text";
        report.add("C-2", &path.key("role"), text).about([id]);
        return;
    };
    match open.ids.get_mut(&id) {
        None => {
            let text = "the assistant message before made no such call; send the call too, or \
                        the result as text";
            report.add("C-2", &place, text).about([id]);
        }
        Some(0) => {
            let text = "the call is answered already; send one tool message per call";
            report.add("S-C4", &place, text).about([id]);
        }
        Some(waiting) => *waiting -= 1,
    }
}

/// Another message follows, or none.
fn close(open: Option<Open>, report: &mut Report) {
    let Some(open) = open else { return };
    let left = open.ids.into_iter().filter(|(_, waiting)| *waiting > 0);
    let missing: Vec<String> = left.map(|(id, _)| id).collect();
    if !missing.is_empty() {
        let messages = Path::Root.key("messages");
        let text = "calls are not answered right after; add a tool message for each";
        report
            .add("C-1", &messages.index(open.index).key("tool_calls"), text)
            .about(missing);
    }
}
