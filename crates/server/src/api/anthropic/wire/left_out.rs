//! Members of a request that an upstream which speaks another API cannot be sent: refused where the
//! answer would be another without them, named in the answer otherwise.

use axum::http::HeaderMap;
use throughline_model::Path;
use throughline_model::json::Value;

use super::{MessagesRequest, settings};
use crate::api::ignored::{self, Ignored};
use crate::api::read::member;
use crate::error::ApiError;

/// What becomes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberRule {
    /// It is carried out here, or translated for vendors that have such a setting.
    Here,
    /// It changes little, and the answer names it.
    Listed,
    /// Without it the model would be asked something else.
    Refused,
}

use MemberRule::{Here, Listed, Refused};

/// Every member of the API, and our own.
const MEMBERS: [(&str, MemberRule); 24] = [
    ("cache_control", Listed),
    ("container", Refused),
    ("context_management", Listed),
    ("inference_geo", Refused),
    ("max_tokens", Here),
    ("mcp_servers", Refused),
    ("messages", Here),
    ("metadata", Here),
    ("model", Here),
    ("output_config", Here),
    ("output_format", Here),
    ("service_tier", Here),
    ("speed", Listed),
    ("stop_sequences", Here),
    ("stream", Here),
    ("system", Here),
    ("temperature", Here),
    ("thinking", Here),
    ("thread", Refused),
    ("throughline", Refused),
    ("tool_choice", Here),
    ("tools", Here),
    ("top_k", Listed),
    ("top_p", Here),
];

const ANTHROPIC_ONLY: &str = "only upstreams that speak Anthropic's Messages have it";

/// The header that names features in beta.
const BETA: &str = "anthropic-beta";

/// The features in beta that a request uses.
pub(in crate::api::anthropic) fn betas(headers: &HeaderMap) -> Result<Vec<String>, ApiError> {
    let mut betas = Vec::new();
    for value in headers.get_all(BETA) {
        let text = value.to_str().map_err(|_| {
            ApiError::invalid(format!("The header {BETA} is not plain text."))
                .code("invalid_value")
                .param(BETA)
        })?;
        let names = text.split(',').map(str::trim);
        betas.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    Ok(betas)
}

/// What of a request is not carried out, as far as no upstream is asked. `native` says whether the
/// upstream speaks this API and is sent every member.
pub(in crate::api::anthropic) fn left_out(
    request: &MessagesRequest,
    native: bool,
    betas: &[String],
) -> Result<Vec<Ignored>, ApiError> {
    let body = request.body();
    let mut ignored = Vec::new();
    if body.get("throughline").is_some() {
        let why = "stateless requests have no such member";
        return Err(unsupported("throughline", why));
    }
    if native {
        return Ok(ignored);
    }
    if request.has_prefill() {
        return Err(ApiError::invalid(
            "messages: the last message is the assistant's, and only upstreams that speak Anthropic's \
             Messages continue it. End with a message of the user.",
        )
        .code("unsupported_prefill")
        .param("messages")
        .retry(false));
    }
    for found in body.members() {
        let key = found.key.to_str();
        if found.value.is_null() {
            continue;
        }
        let rule = MEMBERS.iter().find(|(known, _)| *known == key);
        match rule.map(|(_, rule)| *rule) {
            Some(Here) => {}
            Some(Listed) => ignored.push(Ignored::new(&*key, ANTHROPIC_ONLY)),
            Some(Refused) => {
                let why = "it is only known to upstreams that speak Anthropic's Messages";
                return Err(unsupported(&key, why));
            }
            None => ignored.push(Ignored::new(&*key, "no such parameter is known")),
        }
    }
    if !betas.is_empty() {
        ignored.push(Ignored::new(BETA, ANTHROPIC_ONLY));
    }
    inside(&body, &mut ignored)?;
    Ok(ignored)
}

/// Members of members.
fn inside(body: &Value<'_>, ignored: &mut Vec<Ignored>) -> Result<(), ApiError> {
    let known: [(&str, &[&str]); 4] = [
        ("metadata", &["user_id"]),
        ("output_config", &["effort", "format"]),
        ("thinking", &["type", "budget_tokens", "display"]),
        (
            "tool_choice",
            &["type", "name", "disable_parallel_tool_use"],
        ),
    ];
    for (key, known) in known {
        for found in member(body, key).map(Value::members).unwrap_or_default() {
            let name = found.key.to_str();
            if !known.contains(&&*name) && !found.value.is_null() {
                ignored.push(Ignored::new(format!("{key}.{name}"), ANTHROPIC_ONLY));
            }
        }
    }
    let user = settings::user(body)?;
    if user.is_some_and(|user| settings::is_long_user(&user)) {
        let reason = "other vendors take no more than 64 characters";
        ignored.push(Ignored::new("metadata.user_id", reason));
    }
    if let Some(budget) = body.at(&["thinking", "budget_tokens"]) {
        let reason = "an effort was sent in its place";
        if !budget.is_null() {
            ignored.push(Ignored::new("thinking.budget_tokens", reason));
        }
    }
    let function = ["type", "name", "description", "input_schema", "strict"];
    for (list, known) in [
        ("tools", function.as_slice()),
        ("system", &["type", "text"]),
    ] {
        let values = body.get(list).and_then(Value::as_array);
        for (index, value) in values.unwrap_or_default().iter().enumerate() {
            for found in value.members() {
                let name = found.key.to_str();
                // A cache mark on each of many is named once.
                let is_named = |one: &Ignored| {
                    one.path.starts_with(list) && one.path.ends_with(&format!(".{name}"))
                };
                if !known.contains(&&*name)
                    && !found.value.is_null()
                    && !ignored.iter().any(is_named)
                {
                    let path = Path::Root.key(list);
                    let path = path.index(index);
                    let path = path.key(&name).to_string();
                    ignored.push(Ignored::new(path, ANTHROPIC_ONLY));
                }
            }
        }
    }
    Ok(())
}

fn unsupported(key: &str, why: &str) -> ApiError {
    ApiError::invalid(format!("{key}: it cannot be carried out: {why}."))
        .code("unsupported_parameter")
        .param(key)
        .retry(false)
}

/// The member that a path begins with.
pub(in crate::api::anthropic) fn member_of(path: &str) -> Option<&'static str> {
    let known = MEMBERS.iter().map(|(known, _)| *known);
    ignored::member_of(path, known.chain([BETA]))
}

/// The member of a request that is behind a setting.
pub(in crate::api::anthropic) fn setting_member(
    key: &str,
    request: &MessagesRequest,
) -> Option<String> {
    let body = request.body();
    let has = |path: &[&str]| body.at(path).is_some_and(|value| !value.is_null());
    let path: &[&str] = match key {
        "max_output_tokens" => &["max_tokens"],
        "stop" => &["stop_sequences"],
        "effort" if has(&["output_config", "effort"]) => &["output_config", "effort"],
        "effort" | "summary" => &["thinking"],
        "answer" if has(&["output_format"]) => &["output_format"],
        "answer" => &["output_config", "format"],
        "parallel_calls" => &["tool_choice", "disable_parallel_tool_use"],
        "user" => &["metadata", "user_id"],
        "betas" => return Some(BETA.to_owned()),
        key => return has(&[key]).then(|| key.to_owned()),
    };
    has(path).then(|| path.join("."))
}
