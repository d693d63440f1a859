//! The scripted model, and a client for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use throughline::client::{ClientError, ProxyChoice, Timeouts};
use throughline::{Anthropic, ChatClient, Foundry, Gemini, OpenAi};
use throughline_model::Wire;

use super::code::{Code, Kind, Mark, brackets};
use crate::upstream::{KEY, Recorded, Reply, Script};

/// The answers of the model for a wire; `say` receives a line for each accepted request: `asked
/// WIRE CODE ROUND REQUEST MARKS-SHOWN…`.
pub fn model(wire: &Wire, say: impl Fn(String) + Send + Sync + 'static) -> Script {
    let name = wire.as_str().to_owned();
    let count = AtomicU64::new(0);
    // A service-owned history is not sent again: the previous answer says which turn continues.
    let kept: Mutex<HashMap<String, (Code, u32)>> = Mutex::default();
    Script::respond_with(move |request: &Recorded| {
        // Ids of answers have the same numbers, as long as nothing was refused.
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        let text = request.body.to_string();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = request.body.get("previous_response_id");
        let before = previous.and_then(Value::as_str).and_then(|id| kept.get(id));
        let said = brackets(&text, "turn").last().map(str::parse::<Code>);
        let (code, round) = match (said, before) {
            (Some(Ok(code)), _) => {
                let round = answered(&text, &code);
                (code, round)
            }
            (_, Some((code, round))) => (code.clone(), round + 1),
            _ => return Reply::text("[[lost]] no turn was named"),
        };
        kept.insert(format!("resp_{number:08x}"), (code.clone(), round));
        let shown: Vec<&str> = brackets(&text, "ran").collect();
        say(format!(
            "asked {name} {code} {round} {number} {}",
            shown.join(" ")
        ));
        let calls = match code.kind == Kind::Budget && !offers_tools(&request.body) {
            true => Vec::new(),
            false => code.calls(round),
        };
        let reply = if calls.is_empty() {
            Reply::text(format!("[[done {code}]] Two barges, and a pilot."))
        } else {
            let marked = calls.iter().zip(0..).map(|(tool, position)| {
                let mark = Mark {
                    code: code.clone(),
                    round,
                    position,
                    request: format!("{name}-{number}"),
                };
                (*tool, format!("{{\"mark\":\"{mark}\"}}"))
            });
            Reply::text("I look at the quay.").and_calls(marked)
        };
        match code.thinks() {
            true => reply.reasoning_first("The quay first, then the list."),
            false => reply,
        }
    })
}

/// Whether the request offers tools.
fn offers_tools(body: &Value) -> bool {
    let tools = body.get("tools").and_then(Value::as_array);
    let choice = body.get("tool_choice");
    let forbids = |choice: &Value| choice == "none" || choice["type"] == "none";
    let mode = body.pointer("/toolConfig/functionCallingConfig/mode");
    tools.is_some_and(|tools| !tools.is_empty())
        && !choice.is_some_and(forbids)
        && mode.is_none_or(|mode| mode != "NONE")
}

/// How many rounds of a turn a request contains.
fn answered(text: &str, code: &Code) -> u32 {
    let before = format!("{code}/");
    let rounds = text.split(before.as_str()).skip(1);
    let rounds = rounds.filter_map(|rest| rest.split('/').next()?.parse::<u32>().ok());
    rounds.max().map_or(0, |round| round + 1)
}

/// A client for a wire at an address.
pub fn ask(wire: &Wire, url: &str) -> Result<Arc<dyn ChatClient>, ClientError> {
    let builder = match wire {
        Wire::OpenAiChat => OpenAi::chat("gpt-5").base_url(url),
        Wire::Anthropic => Anthropic::new("claude-sonnet-4-5").base_url(url),
        Wire::Gemini => Gemini::new("gemini-3-pro").base_url(url),
        Wire::GeminiInteractions => Gemini::interactions("gemini-3-pro").base_url(url),
        Wire::Foundry => Foundry::new(url, "gpt-5"),
        Wire::OpenAiResponses | Wire::Other(_) => OpenAi::responses("gpt-5").base_url(url),
    };
    let long = Some(Duration::from_secs(60));
    builder
        .api_key(KEY)
        .proxy(ProxyChoice::Direct)
        .timeouts(Timeouts {
            connect: long,
            first_byte: long,
            idle: long,
        })
        .build()
}
