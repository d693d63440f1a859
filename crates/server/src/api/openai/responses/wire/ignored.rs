//! What of a request is not carried out: each member is sent on, refused with 400, or named here.

use throughline::client::Loss;
use throughline_model::json::Value;

use super::items::read::member;
use super::request::{CreateRequest, Include, RequestTool};
use crate::api::ignored;
pub use crate::api::ignored::Ignored;

/// What becomes of a member of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// It is carried out here, whichever upstream answers.
    Here,
    /// It is translated for vendors that have such a parameter.
    Setting,
    /// It is sent on to upstreams that speak this API, as it was written; others have nothing like
    /// it.
    Responses,
    /// The same, but elsewhere the request is refused: without it the model would be asked something
    /// else.
    ResponsesOrRefused,
    /// Each element is handled by itself.
    Elements,
}

/// Every member of the request in OpenAI's and in the Open Responses specification, and our own.
const MEMBERS: [(&str, Handling); 34] = [
    ("background", Handling::Here),
    ("context_management", Handling::Here),
    ("conversation", Handling::Here),
    ("frequency_penalty", Handling::Setting),
    ("include", Handling::Elements),
    ("input", Handling::Elements),
    ("instructions", Handling::Here),
    ("max_output_tokens", Handling::Setting),
    ("max_tool_calls", Handling::Here),
    ("metadata", Handling::Here),
    ("model", Handling::Here),
    ("moderation", Handling::Responses),
    ("parallel_tool_calls", Handling::Setting),
    ("presence_penalty", Handling::Setting),
    ("previous_response_id", Handling::Here),
    ("prompt", Handling::ResponsesOrRefused),
    ("prompt_cache_key", Handling::Setting),
    ("prompt_cache_options", Handling::Responses),
    ("prompt_cache_retention", Handling::Setting),
    ("reasoning", Handling::Setting),
    ("safety_identifier", Handling::Setting),
    ("service_tier", Handling::Setting),
    ("store", Handling::Here),
    ("stream", Handling::Here),
    ("stream_options", Handling::Elements),
    ("temperature", Handling::Setting),
    ("text", Handling::Setting),
    ("throughline", Handling::Here),
    ("tool_choice", Handling::Setting),
    ("tools", Handling::Elements),
    ("top_logprobs", Handling::Responses),
    ("top_p", Handling::Setting),
    ("truncation", Handling::Here),
    ("user", Handling::Setting),
];

/// The member that a path begins with, if a specification has it.
pub(crate) fn member_of(path: &str) -> Option<&'static str> {
    ignored::member_of(path, MEMBERS.iter().map(|(known, _)| *known))
}

/// What becomes of a member by its name; `None` if no specification has it.
pub(crate) fn handling(name: &str) -> Option<Handling> {
    let found = MEMBERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, handling)| *handling)
}

/// Members that no vendor is asked about: those that are not known, and those that only upstreams
/// understand which speak this API. `native` says whether this one does.
pub(crate) fn left_out(request: &CreateRequest, native: bool) -> Vec<Ignored> {
    let body = request.body().value();
    let mut ignored = Vec::new();
    if request.stream() && request.asks_for_obfuscation() {
        let reason = "events are not padded";
        ignored.push(Ignored::new("stream_options.include_obfuscation", reason));
    }
    for found in body.members() {
        let key = found.key.to_str();
        let elsewhere = "only upstreams that speak this API have it";
        match handling(&key) {
            None => ignored.push(Ignored::new(&*key, "no such parameter is known")),
            Some(Handling::Responses) if !native && !is_default(&key, &found.value) => {
                ignored.push(Ignored::new(&*key, elsewhere));
            }
            Some(_) => {}
        }
    }
    if native {
        return ignored;
    }
    let known: [(&str, &[&str]); 2] = [
        ("reasoning", &["effort", "summary", "generate_summary"]),
        ("text", &["format", "verbosity"]),
    ];
    for (key, known) in known {
        let members = member(&body, key).map(Value::members).unwrap_or_default();
        unknown(&mut ignored, members, known, key);
    }
    let (user, identifier) = (member(&body, "user"), member(&body, "safety_identifier"));
    if let (Some(user), Some(identifier)) = (user, identifier)
        && user.as_str() != identifier.as_str()
    {
        let reason = "safety_identifier was sent in its place";
        ignored.push(Ignored::new("user", reason));
    }
    includes(&mut ignored, request);
    tools(&mut ignored, request);
    ignored
}

/// Whether a value asks for nothing.
fn is_default(key: &str, value: &Value<'_>) -> bool {
    value.is_null() || key == "top_logprobs" && value.as_u64() == Some(0)
}

fn unknown(
    ignored: &mut Vec<Ignored>,
    members: &[throughline_model::json::Member<'_>],
    known: &[&str],
    path: &str,
) {
    for found in members {
        let key = found.key.to_str();
        if !known.contains(&&*key) && !found.value.is_null() {
            let reason = "only upstreams that speak this API have it";
            ignored.push(Ignored::new(format!("{path}.{key}"), reason));
        }
    }
}

/// What is asked to be added to the response and cannot be.
fn includes(ignored: &mut Vec<Ignored>, request: &CreateRequest) {
    for (index, include) in request.include().iter().enumerate() {
        let reason = match include {
            // The record has both.
            Include::EncryptedReasoning | Include::InputImages => continue,
            Include::Logprobs => "the upstream's likelihoods are not passed on",
            Include::FileSearchResults
            | Include::WebSearchResults
            | Include::WebSearchSources
            | Include::Screenshots
            | Include::CodeOutputs => "items of this upstream have no such member",
        };
        ignored.push(Ignored::new(format!("include[{index}]"), reason));
    }
}

/// Members of functions that other vendors do not have.
fn tools(ignored: &mut Vec<Ignored>, request: &CreateRequest) {
    let known = ["type", "name", "description", "parameters", "strict"];
    let mut hosted = false;
    for (index, tool) in request.tools().iter().enumerate() {
        match tool {
            RequestTool::Function { json, .. } => {
                let path = format!("tools[{index}]");
                unknown(ignored, json.value().members(), &known, &path);
            }
            RequestTool::Hosted { .. } => hosted = true,
            RequestTool::Custom { .. } | RequestTool::Namespace { .. } | RequestTool::Mcp(_) => {}
        }
    }
    if hosted && request.max_tool_calls().is_some() {
        let reason = "it bounds the tools that run here, not those of this upstream";
        ignored.push(Ignored::new("max_tool_calls", reason));
    }
}

/// Where a loss of a model call stands in the request. `tools` gives the place of each tool on offer
/// among the request's; one that is not the request's is not named.
pub(crate) fn of_loss(
    loss: &Loss,
    request: &CreateRequest,
    tools: &[Option<usize>],
) -> Option<Ignored> {
    let path = match loss.path.split_once(['.', '[']) {
        Some(("settings", key)) => setting(key, request).to_owned(),
        Some(("tools", rest)) => {
            let (index, rest) = rest.split_once(']')?;
            let index = tools.get(index.parse::<usize>().ok()?)?;
            format!("tools[{}]{rest}", (*index)?)
        }
        None if loss.path == "choice" => "tool_choice".to_owned(),
        _ => return None,
    };
    Some(Ignored {
        path,
        reason: loss.detail.clone(),
        sent: loss.sent.clone(),
    })
}

/// A loss of what the history holds.
pub(crate) fn of_history(loss: &Loss) -> Option<Ignored> {
    let rest = loss.path.strip_prefix("messages")?;
    let rest = rest.replacen("].contents[", "].content[", 1);
    Some(Ignored::new(format!("history{rest}"), loss.detail.clone()))
}

/// The member of a request that is behind a setting.
fn setting<'k>(key: &'k str, request: &CreateRequest) -> &'k str {
    match key {
        "effort" => "reasoning.effort",
        "summary" => "reasoning.summary",
        "verbosity" => "text.verbosity",
        "answer" => "text.format",
        "parallel_calls" => "parallel_tool_calls",
        "cache_key" => "prompt_cache_key",
        "cache_retention" => "prompt_cache_retention",
        "user" => match member(&request.body().value(), "safety_identifier") {
            Some(_) => "safety_identifier",
            None => "user",
        },
        key => key,
    }
}
