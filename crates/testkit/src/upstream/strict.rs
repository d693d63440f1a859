//! Whether a vendor would accept a request, and its error if not.

use serde_json::{Map, Value};
use throughline_model::{Wire, json};
use throughline_wire::validate::{Profile, validate};

use super::http::Incoming;
use super::members;
use super::memory::{CONTINUES, Memory, named};
use super::stored::Subject;
use super::vendor::{self, Refusal, Vendor, family};
use crate::scripted::Reading;

/// A request that the vendor accepts.
#[derive(Clone, Debug)]
pub(super) struct Accepted {
    pub(super) reading: Reading,
    pub(super) model: String,
    pub(super) body: Map<String, Value>,
    /// The billed tokens, if they are counted.
    pub(super) tokens: Option<u64>,
}

/// Judges a request as the vendor would, from the outside in.
pub(super) fn judge(
    profile: &Profile,
    memory: &Memory,
    request: &Incoming,
) -> Result<Accepted, Refusal> {
    let wire = &profile.wire;
    let place = place(wire, request)?;
    vendor::check_key(wire, request)?;
    headers(wire, request)?;
    let text = std::str::from_utf8(&request.body).map_err(|_| not_json(wire, "not UTF-8"))?;
    let body: Value = serde_json::from_str(text).map_err(|e| not_json(wire, &e.to_string()))?;
    let Value::Object(body) = body else {
        return Err(not_json(wire, "expected an object"));
    };
    members::check(wire, &body)?;
    let model = place.model.or_else(|| string(&body, "model"));
    let agent = body.contains_key("agent") || body.contains_key("agent_reference");
    let model = match model.filter(|model| !model.is_empty()) {
        Some(model) => model,
        None if agent => "agent".to_owned(),
        None => return Err(missing(wire, "model")),
    };
    required(wire, &body)?;
    tools(wire, &body)?;
    settings(wire, &body)?;
    history(profile, memory, text, &body)?;
    let streamed = body.get("stream").and_then(Value::as_bool) == Some(true);
    let said = match streamed {
        true => Reading::Streamed,
        false => Reading::Whole,
    };
    Ok(Accepted {
        reading: place.reading.unwrap_or(said),
        model,
        body,
        tokens: None,
    })
}

fn place(wire: &Wire, request: &Incoming) -> Result<vendor::Endpoint, Refusal> {
    let path = request.target.split('?').next().unwrap_or_default();
    let Some(place) = vendor::place(wire, &request.target) else {
        let message = match family(wire) {
            Vendor::OpenAi => format!("Invalid URL ({} {path})", request.method),
            Vendor::Anthropic => "Not found".to_owned(),
            Vendor::Google => format!("The requested URL {path} was not found on this server."),
        };
        return Err(Refusal::new(wire, 404, message));
    };
    match request.method.as_str() {
        "POST" => Ok(place),
        method => {
            let message = format!("Not allowed to {method} on {path}.");
            Err(Refusal::new(wire, 405, message))
        }
    }
}

fn headers(wire: &Wire, request: &Incoming) -> Result<(), Refusal> {
    let content_type = request.header("content-type").unwrap_or_default();
    let plain = content_type.split(';').next().unwrap_or_default().trim();
    if !plain.eq_ignore_ascii_case("application/json") {
        let message = format!(
            "Unsupported content type: '{content_type}'. This API method only accepts \
             'application/json' requests, but you specified the header 'Content-Type: {content_type}'."
        );
        return Err(Refusal::new(wire, 400, message));
    }
    if *wire == Wire::Anthropic && request.header("anthropic-version") != Some("2023-06-01") {
        let message = "anthropic-version: header is required";
        return Err(Refusal::new(wire, 400, message));
    }
    Ok(())
}

fn not_json(wire: &Wire, why: &str) -> Refusal {
    let message = match family(wire) {
        Vendor::OpenAi => "We could not parse the JSON body of your request.".to_owned(),
        Vendor::Anthropic => format!("The request body is not valid JSON: {why}"),
        Vendor::Google => format!("Invalid JSON payload received. {why}"),
    };
    Refusal::new(wire, 400, message)
}

fn missing(wire: &Wire, key: &str) -> Refusal {
    let message = match family(wire) {
        Vendor::OpenAi if key == "model" => "you must provide a model parameter".to_owned(),
        Vendor::OpenAi => format!("Missing required parameter: '{key}'."),
        Vendor::Anthropic => format!("{key}: Field required"),
        Vendor::Google => {
            format!("* GenerateContentRequest.{key}: {key} is not specified")
        }
    };
    Refusal::new(wire, 400, message)
        .code("missing_required_parameter")
        .param(key)
}

fn required(wire: &Wire, body: &Map<String, Value>) -> Result<(), Refusal> {
    let keys: &[&str] = match wire {
        Wire::OpenAiChat => &["messages"],
        Wire::Anthropic => &["messages", "max_tokens"],
        Wire::Gemini => &["contents"],
        Wire::OpenAiResponses | Wire::Foundry | Wire::GeminiInteractions | Wire::Other(_) => {
            &["input"]
        }
    };
    for key in keys {
        let given = match body.get(*key) {
            None | Some(Value::Null) => false,
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Number(number)) => number.as_u64().is_some_and(|number| number > 0),
            Some(_) => true,
        };
        if !given {
            return Err(missing(wire, key));
        }
    }
    Ok(())
}

/// The offered functions: their places, names and schemas.
fn functions<'b>(
    wire: &Wire,
    body: &'b Map<String, Value>,
) -> Vec<(&'b Value, &'b str, &'b Value)> {
    const NOTHING: &Value = &Value::Null;
    let list = body.get("tools").and_then(Value::as_array);
    let mut found = Vec::new();
    for tool in list.into_iter().flatten() {
        let holders: Vec<&Value> = match wire {
            Wire::OpenAiChat => tool.get("function").into_iter().collect(),
            Wire::Gemini => {
                let list = tool.get("functionDeclarations").and_then(Value::as_array);
                list.into_iter().flatten().collect()
            }
            _ => vec![tool],
        };
        for holder in holders {
            let own = matches!(
                holder.get("type").and_then(Value::as_str),
                None | Some("function" | "custom")
            );
            let schema = ["parameters", "input_schema", "parametersJsonSchema"]
                .iter()
                .find_map(|key| holder.get(*key));
            let name = holder.get("name").and_then(Value::as_str);
            if own {
                found.push((holder, name.unwrap_or_default(), schema.unwrap_or(NOTHING)));
            }
        }
    }
    found
}

fn tools(wire: &Wire, body: &Map<String, Value>) -> Result<(), Refusal> {
    let functions = functions(wire, body);
    for (place, (tool, name, schema)) in functions.iter().enumerate() {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let google = |c: char| plain(c) || matches!(c, '.' | ':');
        let fits = match family(wire) {
            Vendor::OpenAi => name.len() <= 64 && name.chars().all(plain),
            Vendor::Anthropic => name.len() <= 128 && name.chars().all(plain),
            Vendor::Google => name.len() <= 64 && name.chars().all(google),
        };
        if name.is_empty() || !fits {
            let message =
                format!("Invalid 'tools[{place}].name': '{name}' does not match pattern.");
            return Err(Refusal::new(wire, 400, message).code("invalid_value"));
        }
        if functions[..place].iter().any(|(_, other, _)| other == name) {
            let message = format!("tools: Tool names must be unique: {name}");
            return Err(Refusal::new(wire, 400, message));
        }
        let needs_schema = *wire == Wire::Anthropic;
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        let custom =
            *wire != Wire::Anthropic && tool.get("type").and_then(Value::as_str) == Some("custom");
        if !custom && !is_object && (needs_schema || !schema.is_null()) {
            let message = format!(
                "Invalid schema for function '{name}': schema must be a JSON Schema of \
                 'type: \"object\"'."
            );
            return Err(Refusal::new(wire, 400, message).code("invalid_function_parameters"));
        }
    }
    let none = body
        .get("tools")
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty);
    for key in ["tool_choice", "parallel_tool_calls"] {
        if *wire == Wire::OpenAiChat && none && body.contains_key(key) {
            let message = format!("'{key}' is only allowed when 'tools' are specified.");
            return Err(Refusal::new(wire, 400, message).param(key));
        }
    }
    Ok(())
}

fn settings(wire: &Wire, body: &Map<String, Value>) -> Result<(), Refusal> {
    let refuse = |message: &str| Err(Refusal::new(wire, 400, message));
    match family(wire) {
        Vendor::OpenAi => {
            let stream = body.get("stream").and_then(Value::as_bool) == Some(true);
            if body.contains_key("stream_options") && !stream {
                return refuse(
                    "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
                );
            }
            if body.contains_key("conversation") && body.contains_key("previous_response_id") {
                return refuse("'conversation' and 'previous_response_id' are mutually exclusive.");
            }
        }
        Vendor::Anthropic => {
            let thinking = body.get("thinking");
            let kind = thinking
                .and_then(|value| value.get("type"))
                .and_then(Value::as_str);
            if kind == Some("enabled") {
                let budget = thinking.and_then(|value| value.get("budget_tokens")?.as_u64());
                let most = body.get("max_tokens").and_then(Value::as_u64);
                match budget {
                    Some(budget) if budget < 1024 => {
                        return refuse(
                            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
                        );
                    }
                    Some(budget) if Some(budget) >= most => {
                        return refuse(
                            "`max_tokens` must be greater than `thinking.budget_tokens`.",
                        );
                    }
                    Some(_) => {}
                    None => return refuse("thinking.enabled.budget_tokens: Field required"),
                }
            }
            let choice = body
                .get("tool_choice")
                .and_then(|choice| choice.get("type")?.as_str());
            let thinks = matches!(kind, Some("enabled" | "adaptive"));
            if kind == Some("enabled") && matches!(choice, Some("any" | "tool")) {
                return refuse("Thinking may not be enabled when tool_choice forces tool use.");
            }
            let temperature = body.get("temperature").and_then(Value::as_f64);
            if thinks && temperature.is_some_and(|value| value != 1.0) {
                return refuse("`temperature` may only be set to 1 when thinking is enabled.");
            }
        }
        Vendor::Google => {}
    }
    Ok(())
}

/// Checks every rule about histories, with what this server knows of earlier requests.
fn history(
    profile: &Profile,
    memory: &Memory,
    text: &str,
    body: &Map<String, Value>,
) -> Result<(), Refusal> {
    let wire = &profile.wire;
    let mut profile = profile.clone();
    for key in CONTINUES {
        let Some(id) = named(body, key) else {
            continue;
        };
        match memory.chained(id) {
            Some(chained) => profile.chained = Some(chained.clone()),
            None => return Err(not_held(wire, key, id)),
        }
    }
    if profile.issued.is_none() {
        profile.issued = memory.issued().cloned();
    }
    profile.stored |= stores(wire, body);
    let parsed = json::parse(text).map_err(|e| not_json(wire, &e.to_string()))?;
    let violations = validate(&parsed, &profile);
    let Some(first) = violations.first() else {
        return Ok(());
    };
    let message = match &first.vendor_text {
        // A failing test needs to know which rule it was.
        Some(text) => format!("{text} [{first}]"),
        None => first.to_string(),
    };
    let status = if first.rule == "O-7" { 404 } else { 400 };
    Err(Refusal::new(wire, status, message).param(first.path.clone()))
}

/// The vendor's error for an unknown id.
fn not_held(wire: &Wire, key: &str, id: &str) -> Refusal {
    let (status, message) = match (wire, key) {
        (_, "conversation") => (404, format!("Conversation with id '{id}' not found.")),
        (Wire::OpenAiResponses, _) => (400, format!("Previous response with id '{id}' not found.")),
        (Wire::GeminiInteractions, _) => (404, format!("Interaction '{id}' was not found.")),
        (_, _) => (404, format!("Previous response with id '{id}' not found.")),
    };
    let refusal = Refusal::new(wire, status, message).param(key);
    match key {
        "previous_response_id" => refusal.code("previous_response_not_found"),
        _ => refusal,
    }
}

/// The vendor's error for something that it does not store.
pub(super) fn not_stored(wire: &Wire, subject: &Subject) -> Refusal {
    let message = match (wire, subject) {
        (_, Subject::Conversation(id)) => format!("Conversation with id '{id}' not found."),
        (Wire::GeminiInteractions, Subject::Answer(id)) => {
            format!("Interaction '{id}' was not found.")
        }
        (_, Subject::Answer(id)) => format!("Response with id '{id}' not found."),
    };
    Refusal::new(wire, 404, message)
}

/// Whether the vendor stores the answer.
pub(super) fn stores(wire: &Wire, body: &Map<String, Value>) -> bool {
    let asked = body.get("store").and_then(Value::as_bool);
    match wire {
        Wire::OpenAiResponses | Wire::Foundry | Wire::GeminiInteractions => asked.unwrap_or(true),
        Wire::OpenAiChat | Wire::Anthropic | Wire::Gemini | Wire::Other(_) => false,
    }
}

fn string(body: &Map<String, Value>, key: &str) -> Option<String> {
    body.get(key)?.as_str().map(str::to_owned)
}
