//! The scripted model, and a client for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use throughline::client::{ClientBuilder, ClientError, ProxyChoice, Timeouts};
use throughline::{Anthropic, ChatClient, Foundry, Gemini, OpenAi};
use throughline_model::Wire;

use super::code::{Code, Kind, Mark, brackets};
use crate::upstream::{Gate, KEY, Recorded, Reply, Script};

/// The text of an answer with calls, and how that of an answer without calls ends.
const MORE: &str = "I look at the quay.";
const LAST: &str = "Two barges, and a pilot.";

/// Whether the text of an answer of the model is complete.
pub fn is_whole(text: &str) -> bool {
    text == MORE || text.ends_with(LAST)
}

/// The answers of the model for a wire; `say` receives a line for each accepted request: `asked
/// WIRE CODE ROUND REQUEST MARKS-SHOWN…`.
pub fn model(wire: &Wire, say: impl Fn(String) + Send + Sync + 'static) -> Script {
    Script::respond_with(answers(wire.as_str().to_owned(), say))
}

/// The answers of a service that stores conversations. Some streams break after their first event,
/// some pause in the middle, and some answers are looked up before they are finished.
pub fn service(name: &str, say: impl Fn(String) + Send + Sync + 'static) -> Script {
    let answer = answers(name.to_owned(), say);
    Script::respond_with(move |request: &Recorded| {
        let reply = answer(request);
        let is_streamed = request.body.get("stream") == Some(&Value::Bool(true));
        // The client of a whole answer has no way to ask for it.
        if !is_streamed {
            return reply;
        }
        let reply = match request.number % 11 {
            4 => reply.running_for(1),
            _ => reply,
        };
        match request.number % 5 {
            1 => reply.detached(),
            2 | 4 => {
                let gate = Gate::default();
                gate.close();
                let opened = gate.clone();
                // Long enough for a process to be killed, or its run to be cancelled, meanwhile.
                let paused = std::thread::Builder::new().spawn(move || {
                    std::thread::sleep(Duration::from_millis(80));
                    opened.open();
                });
                match paused {
                    Ok(_) => reply.held(&gate),
                    Err(_) => reply,
                }
            }
            _ => reply,
        }
    })
}

/// Decides an answer from the request, and prints what was requested.
fn answers(
    name: String,
    say: impl Fn(String) + Send + Sync + 'static,
) -> impl Fn(&Recorded) -> Reply + Send + Sync + 'static {
    // A service-owned history is not sent again: the previous answer says which turn continues.
    let kept: Mutex<HashMap<String, (Code, u32)>> = Mutex::default();
    move |request: &Recorded| {
        let number = request.number;
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
            // Another service may have answered rounds since.
            (_, Some((code, round))) => (code.clone(), answered(&text, code).max(round + 1)),
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
            Reply::text(format!("[[done {code}]] {LAST}"))
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
            Reply::text(MORE).and_calls(marked)
        };
        match code.thinks() {
            true => reply.reasoning_first("The quay first, then the list."),
            false => reply,
        }
    }
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
    built(builder)
}

/// A client for a service that stores conversations.
pub fn ask_service(name: &str, url: &str) -> Result<Arc<dyn ChatClient>, ClientError> {
    let builder = match service_wire(name) {
        Wire::Foundry => Foundry::new(url, "gpt-5"),
        _ => OpenAi::responses("gpt-5").base_url(url),
    };
    built(builder.upstream(name))
}

/// The format of a service. They differ, because of two with one format neither knows which items are
/// its own.
pub fn service_wire(name: &str) -> Wire {
    match name {
        "west" => Wire::Foundry,
        _ => Wire::OpenAiResponses,
    }
}

fn built(builder: ClientBuilder) -> Result<Arc<dyn ChatClient>, ClientError> {
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
