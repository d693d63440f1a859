//! Stored answers and lists as the service shows them.

use serde_json::{Value, json};
use throughline_model::Wire;

use super::StoredAnswer;
use super::operation::Page;

/// The body of a stored answer.
pub(super) fn answer(wire: &Wire, answer: &StoredAnswer, is_running: bool) -> Value {
    let mut body = answer.body.clone();
    if is_running {
        empty(&mut body, "in_progress");
    }
    if *wire == Wire::GeminiInteractions {
        // A stored interaction begins with its input.
        let made = body.get("steps").and_then(Value::as_array);
        let made = made.into_iter().flatten();
        let steps: Vec<Value> = answer.input.iter().chain(made).cloned().collect();
        body["steps"] = Value::Array(steps);
    }
    body
}

/// Makes an answer one that ended without content.
pub(super) fn end(body: &mut Value, status: &str) {
    empty(body, status);
    if status == "failed" {
        body["error"] = json!({"code": "server_error", "message": "The model failed."});
    }
}

fn empty(body: &mut Value, status: &str) {
    body["status"] = json!(status);
    for key in ["output", "steps"] {
        if let Some(items) = body.get_mut(key) {
            *items = json!([]);
        }
    }
    if let Some(members) = body.as_object_mut() {
        members.remove("usage");
    }
}

/// A page of a list; none if it is to begin after an item that is not in it.
pub(super) fn list(mut items: Vec<Value>, page: &Page, most: usize) -> Option<Value> {
    if page.descending {
        items.reverse();
    }
    let begin = match &page.after {
        None => 0,
        Some(after) => {
            let place = items.iter().position(|item| item["id"] == json!(after));
            place? + 1
        }
    };
    let limit = page.limit.unwrap_or(20).clamp(1, most);
    let rest = &items[begin..];
    let shown = &rest[..limit.min(rest.len())];
    let id = |item: Option<&Value>| item.map(|item| item["id"].clone());
    Some(
        json!({"object": "list", "data": shown, "first_id": id(shown.first()),
        "last_id": id(shown.last()), "has_more": shown.len() < rest.len()}),
    )
}
