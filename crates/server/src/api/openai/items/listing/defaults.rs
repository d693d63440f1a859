//! Items that clients sent, with the members that readers count on.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value};

/// An item that a client sent, with what readers count on.
pub(crate) fn with_defaults(item: &Value<'_>, tag: &str, id: &str) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.str("id", id).str("type", tag);
    let mut status = false;
    let role = item.get("role").and_then(Value::as_str);
    for member in item.members() {
        let key = member.key.to_str();
        let last = item
            .get(&key)
            .is_some_and(|last| std::ptr::eq(last, &member.value));
        if !last || key == "id" || key == "type" {
            continue;
        }
        if key == "status" {
            if member.value.is_null() {
                continue;
            }
            status = true;
        }
        match (tag, &*key) {
            ("message", "content") => {
                content(object.key("content"), &member.value, role.as_deref());
            }
            _ => drop(object.raw(&key, member.value.raw())),
        }
    }
    let has_status = [
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "computer_call_output",
    ];
    if !status && has_status.contains(&tag) {
        object.str("status", "completed");
    }
    object.end();
    out
}

/// The content of a message as a list of parts.
fn content(out: &mut String, content: &Value<'_>, role: Option<&str>) {
    let said = role == Some("assistant");
    let mut list = ArrayWriter::new(out);
    if let Some(text) = content.as_text() {
        let mut part = ObjectWriter::new(list.slot());
        part.str("type", if said { "output_text" } else { "input_text" });
        let token = part.key("text");
        token.push('"');
        token.push_str(text.token());
        token.push('"');
        if said {
            part.raw("annotations", "[]").raw("logprobs", "[]");
        }
        part.end();
    }
    for part in content.as_array().unwrap_or_default() {
        let lacks = |key: &str| part.get(key).is_none_or(Value::is_null);
        let is = |tag: &str| part.get("type").is_some_and(|found| found.is_str(tag));
        let mut members = ObjectWriter::new(list.slot());
        members.members_of(RawJson::of(part).without(|key| lacks(key)).get());
        if is("output_text") {
            for key in ["annotations", "logprobs"] {
                if lacks(key) {
                    members.raw(key, "[]");
                }
            }
        }
        if is("input_image") && lacks("detail") {
            members.str("detail", "auto");
        }
        members.end();
    }
    list.end();
}
