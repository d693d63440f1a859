//! Whether a client sent back an item that we gave it.

use throughline_model::json::{Node, RawJson, Value};

/// Members that clients drop, add or rewrite, and that are no part of the content.
const IGNORED_MEMBERS: [&str; 5] = [
    "id",
    "status",
    "encrypted_content",
    "created_by",
    "logprobs",
];

/// Whether two items with one id say the same. SDKs leave out members that are null or empty and
/// add others that are; such differences do not count, and neither does how far an item got.
pub fn same_item(one: &RawJson, two: &RawJson) -> bool {
    equal_objects(&one.value(), &two.value())
}

fn equal_objects(one: &Value<'_>, two: &Value<'_>) -> bool {
    let agrees = |from: &Value<'_>, to: &Value<'_>| {
        from.members().iter().all(|member| {
            let key = member.key.to_str();
            if IGNORED_MEMBERS.contains(&&*key) {
                return true;
            }
            // Of a key that stands twice the last counts.
            let value = from.get(&key).unwrap_or(&member.value);
            match to.get(&key) {
                Some(other) => equal_values(value, other),
                None => is_empty(value) || key == "type",
            }
        })
    };
    agrees(one, two) && agrees(two, one)
}

fn is_empty(value: &Value<'_>) -> bool {
    match value.node() {
        Node::Null => true,
        Node::Array(values) => values.is_empty(),
        Node::Object(members) => members.is_empty(),
        Node::Bool(_) | Node::Number | Node::String(_) => false,
    }
}

fn equal_values(one: &Value<'_>, two: &Value<'_>) -> bool {
    match (one.node(), two.node()) {
        (Node::Bool(one), Node::Bool(two)) => one == two,
        (Node::Number, Node::Number) => one.raw() == two.raw(),
        (Node::String(_), Node::String(_)) => one.as_str() == two.as_str(),
        (Node::Array(one), Node::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| equal_values(one, two))
        }
        (Node::Object(_), Node::Object(_)) => equal_objects(one, two),
        // The easy form of a message: a string instead of a list with one text.
        (Node::String(_), Node::Array(_)) => is_single_text(two, one),
        (Node::Array(_), Node::String(_)) => is_single_text(one, two),
        _ => is_empty(one) && is_empty(two),
    }
}

fn is_single_text(list: &Value<'_>, text: &Value<'_>) -> bool {
    let Some([part]) = list.as_array() else {
        return false;
    };
    let found = part.get("text").and_then(Value::as_str);
    found.is_some() && found == text.as_str()
}

#[cfg(test)]
mod tests {
    use super::{RawJson, same_item};

    fn same(one: &str, two: &str) -> bool {
        let (one, two) = (RawJson::new(one).unwrap(), RawJson::new(two).unwrap());
        assert_eq!(same_item(&one, &two), same_item(&two, &one));
        same_item(&one, &two)
    }

    #[test]
    fn what_sdks_leave_out_or_add_does_not_count() {
        let ours = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant",
            "content":[{"type":"output_text","text":"hi","annotations":[],"logprobs":[]}]}"#;
        for theirs in [
            r#"{"role":"assistant","content":"hi"}"#,
            r#"{"role":"assistant","content":[{"text":"hi","type":"output_text"}],"phase":null}"#,
            r#"{"type":"message","status":"incomplete","role":"assistant",
                "content":[{"type":"output_text","text":"h\u0069","annotations":[]}]}"#,
        ] {
            assert!(same(ours, theirs), "{theirs}");
        }
    }

    #[test]
    fn other_words_count() {
        let ours = r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#;
        for theirs in [
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{ }"}"#,
            r#"{"type":"function_call","call_id":"d","name":"f","arguments":"{}"}"#,
            r#"{"type":"function_call","call_id":"c","name":"f"}"#,
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}","namespace":"n"}"#,
            r#"{"type":"custom_tool_call","call_id":"c","name":"f","arguments":"{}"}"#,
        ] {
            assert!(!same(ours, theirs), "{theirs}");
        }
    }
}
