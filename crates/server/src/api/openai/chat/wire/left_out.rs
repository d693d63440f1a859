//! Members of a request that an upstream which speaks another API cannot be sent: refused where the
//! answer would be another without them, named in the answer otherwise.

use throughline_model::json::Value;

use super::CompletionRequest;
use crate::api::ignored::{self, Ignored};
use crate::api::read::member;
use crate::error::ApiError;

/// What becomes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberHandling {
    /// It is carried out here, or translated for vendors that have such a setting.
    Here,
    /// It changes little, and the answer names it.
    Listed,
    /// Without it the model would be asked something else.
    Refused,
}

use MemberHandling::{Here, Listed, Refused};

/// Every member of the API, and our own.
const MEMBERS: [(&str, MemberHandling); 37] = [
    ("audio", Refused),
    ("frequency_penalty", Here),
    ("function_call", Refused),
    ("functions", Refused),
    ("logit_bias", Listed),
    ("logprobs", Listed),
    ("max_completion_tokens", Here),
    ("max_tokens", Here),
    ("metadata", Listed),
    ("modalities", Refused),
    ("model", Here),
    ("moderation", Listed),
    ("n", Here),
    ("parallel_tool_calls", Here),
    ("prediction", Listed),
    ("presence_penalty", Here),
    ("prompt_cache_key", Here),
    ("prompt_cache_options", Listed),
    ("prompt_cache_retention", Here),
    ("reasoning_effort", Here),
    ("response_format", Here),
    ("safety_identifier", Here),
    ("seed", Listed),
    ("service_tier", Here),
    ("stop", Here),
    ("store", Listed),
    ("stream", Here),
    ("stream_options", Here),
    ("temperature", Here),
    ("throughline", Refused),
    ("tool_choice", Here),
    ("tools", Here),
    ("top_logprobs", Listed),
    ("top_p", Here),
    ("user", Here),
    ("verbosity", Here),
    ("web_search_options", Refused),
];

/// What of a request is not carried out, as far as no upstream is asked. `native` says whether the
/// upstream speaks this API and is sent every member.
pub(in crate::api::openai::chat) fn left_out(
    request: &CompletionRequest,
    native: bool,
) -> Result<Vec<Ignored>, ApiError> {
    let body = request.members();
    let mut ignored = Vec::new();
    for found in body.members() {
        let key = found.key.to_str();
        if key == "throughline" {
            return Err(unsupported(&key, "stateless requests have no such member"));
        }
        if native || asks_for_nothing(&key, &found.value) {
            continue;
        }
        let handling = MEMBERS.iter().find(|(known, _)| *known == key);
        match handling.map(|(_, handling)| *handling) {
            Some(Here) => {}
            Some(Listed) => {
                let reason = "only upstreams that speak Chat Completions have it";
                ignored.push(Ignored::new(&*key, reason));
            }
            Some(Refused) => {
                let why = "it is only known to upstreams that speak Chat Completions";
                return Err(unsupported(&key, why));
            }
            None => ignored.push(Ignored::new(&*key, "no such parameter is known")),
        }
    }
    if let (Some(_), Some(_)) = (
        member(&body, "max_tokens"),
        member(&body, "max_completion_tokens"),
    ) {
        let reason = "max_completion_tokens was sent in its place";
        ignored.push(Ignored::new("max_tokens", reason));
    }
    let options = member(&body, "stream_options").map(Value::members);
    for option in options.unwrap_or_default() {
        let key = option.key.to_str();
        if key != "include_usage" && option.value.as_bool() != Some(false) {
            let path = format!("stream_options.{key}");
            ignored.push(Ignored::new(path, "events are not padded"));
        }
    }
    if native {
        return Ok(ignored);
    }
    if let (Some(user), Some(identifier)) =
        (member(&body, "user"), member(&body, "safety_identifier"))
        && user.as_str() != identifier.as_str()
    {
        let reason = "safety_identifier was sent in its place";
        ignored.push(Ignored::new("user", reason));
    }
    Ok(ignored)
}

fn unsupported(key: &str, why: &str) -> ApiError {
    ApiError::invalid(format!("'{key}' cannot be carried out: {why}."))
        .code("unsupported_parameter")
        .param(key)
        .retry(false)
}

/// Whether a value is what the API does without it.
fn asks_for_nothing(key: &str, value: &Value<'_>) -> bool {
    match key {
        _ if value.is_null() => true,
        "logprobs" | "store" => value.as_bool() == Some(false),
        "metadata" | "logit_bias" => value.as_object().is_some_and(<[_]>::is_empty),
        "modalities" => value
            .as_array()
            .is_some_and(|list| list.iter().all(|word| word.is_str("text"))),
        _ => false,
    }
}

/// The member that a path begins with.
pub(in crate::api::openai::chat) fn member_of(path: &str) -> Option<&'static str> {
    let known = MEMBERS.iter().map(|(known, _)| *known);
    ignored::member_of(path, known.chain(["messages"]))
}

/// The member of a request that is behind a setting.
pub(in crate::api::openai::chat) fn setting_member(
    key: &str,
    request: &CompletionRequest,
) -> Option<String> {
    let body = request.members();
    let has = |key: &str| member(&body, key).is_some();
    let newer = |newer: &'static str, older: &'static str| match has(newer) {
        true => newer,
        false => older,
    };
    let key = match key {
        "max_output_tokens" => newer("max_completion_tokens", "max_tokens"),
        "effort" => "reasoning_effort",
        "answer" => "response_format",
        "parallel_calls" => "parallel_tool_calls",
        "cache_key" => "prompt_cache_key",
        "cache_retention" => "prompt_cache_retention",
        "user" => newer("safety_identifier", "user"),
        key => key,
    };
    has(key).then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{CompletionRequest, left_out};

    fn listed(members: &str, native: bool) -> Result<Vec<String>, String> {
        let body =
            format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],{members}}}"#);
        let request = CompletionRequest::parse(body.as_bytes()).map_err(|error| error.message)?;
        let ignored = left_out(&request, native).map_err(|error| error.message)?;
        Ok(ignored.into_iter().map(|one| one.path).collect())
    }

    #[test]
    fn members_that_ask_for_nothing_are_not_named() {
        let nothing = r#""seed":null,"logprobs":false,"store":false,"metadata":{},"modalities":["text"],"n":1"#;
        assert_eq!(listed(nothing, false), Ok(Vec::new()));
        let some = r#""seed":1,"logprobs":true,"who_knows":1,"user":"a","safety_identifier":"b""#;
        assert_eq!(
            listed(some, false),
            Ok(["seed", "logprobs", "who_knows", "user"]
                .map(str::to_owned)
                .to_vec())
        );
        assert_eq!(listed(some, true), Ok(Vec::new()));
    }

    #[test]
    fn what_changes_the_answer_is_refused() {
        for member in [
            r#""audio":{"voice":"alloy"}"#,
            r#""modalities":["text","audio"]"#,
            r#""functions":[]"#,
            r#""web_search_options":{}"#,
            r#""throughline":{}"#,
            r#""n":2"#,
        ] {
            assert!(listed(member, false).is_err(), "{member}");
        }
        assert!(listed(r#""n":2"#, true).is_err());
    }
}
