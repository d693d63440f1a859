//! Sessions that were recorded, where they are there.

use std::path::Path;
use std::sync::Arc;

use throughline_compact::{Policy, ToolHistory};
use throughline_model::json::{self, RawJson, Value};
use throughline_model::{
    Arguments, CallId, Content, Family, Message, Outcome, Output, Role, ToolCall, ToolResult,
};

use crate::chained::play;
use crate::check;

/// Where recorded sessions lie beside a checkout.
const FOLDER: &str = "../../../shared/trajectories";

/// The messages of one session.
fn session(text: &str) -> Vec<Arc<Message>> {
    let value = json::parse(text).unwrap();
    let messages = value.get("messages").and_then(Value::as_array).unwrap();
    let messages = messages.iter().map(|one| Arc::new(message(one)));
    messages.collect()
}

fn message(value: &Value<'_>) -> Message {
    let str = |key: &str| value.get(key).and_then(Value::as_str);
    let text = str("text").unwrap_or_default().into_owned();
    let role = Role::named(&str("role").unwrap());
    if role == Role::Tool {
        let id = CallId::natural(&str("tool_call_id").unwrap()).unwrap();
        let mut result = ToolResult::answering(id, Family::FUNCTION, Output::Text(text));
        result.name = str("tool_name").map(std::borrow::Cow::into_owned);
        if value.get("is_error").and_then(Value::as_bool) == Some(true) {
            result.outcome = Outcome::Error;
        }
        return Message::new(role, vec![result.into()]);
    }
    let mut contents = Vec::new();
    if !text.is_empty() {
        contents.push(Content::text(text));
    }
    let calls = value.get("tool_calls").and_then(Value::as_array);
    for call in calls.unwrap_or_default() {
        let id = CallId::natural(&call.get("id").and_then(Value::as_str).unwrap()).unwrap();
        let name = call.get("name").and_then(Value::as_str).unwrap();
        let arguments = call.get("arguments").map(RawJson::of).unwrap();
        contents.push(Content::from(ToolCall {
            arguments: Arguments::Json(arguments),
            ..ToolCall::function(id, name, "")
        }));
    }
    Message::new(role, contents)
}

#[test]
fn recorded_sessions_keep_every_invariant_at_every_budget() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!(
            "recorded sessions: 0, the folder is not there; generated ones are checked elsewhere"
        );
        return;
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".json") && name != "MANIFEST.json"
    });
    files.sort();
    let (mut views, mut epochs) = (0, 0);
    for file in &files {
        let told = session(&std::fs::read_to_string(file).unwrap());
        let thresholds = [Policy::default()].into_iter();
        let budgets = [8_000, 16_000, 32_000, 64_000].map(Policy::with_budget);
        for policy in thresholds.chain(budgets) {
            let told = &told[..told.len().min(400)];
            let (history, made) = play(told, ToolHistory::new(policy), |_| false)
                .unwrap_or_else(|problem| unreachable!("{}: {problem}", file.display()));
            check::pinned(history.view(), told).unwrap();
            views += told.len();
            epochs += made;
        }
    }
    println!(
        "recorded sessions: {}, {views} views, {epochs} epochs, 0 split groups",
        files.len()
    );
}
