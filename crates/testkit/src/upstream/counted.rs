//! Requests for the number of tokens of a request.

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_wire::validate::Profile;

use super::http::Incoming;
use super::memory::Memory;
use super::strict;
use super::vendor::Refusal;

/// How many bytes a token stands for here.
const BYTES_OF_A_TOKEN: usize = 4;

/// Where a vendor counts, where it answers, and the members of an answer's request that it does not
/// count.
const COUNTERS: [(Wire, &str, &str, &[&str]); 2] = [
    (
        Wire::Anthropic,
        "/v1/messages/count_tokens",
        "/v1/messages",
        &[
            "max_tokens",
            "stream",
            "metadata",
            "stop_sequences",
            "temperature",
            "top_k",
            "top_p",
            "service_tier",
        ],
    ),
    (
        Wire::OpenAiResponses,
        "/v1/responses/input_tokens",
        "/v1/responses",
        &[
            "include",
            "max_output_tokens",
            "metadata",
            "store",
            "stream",
            "temperature",
            "top_p",
            "service_tier",
        ],
    ),
];

/// The answer to a request that counts; none if it is another request.
pub(super) fn counted(
    profile: &Profile,
    memory: &Memory,
    request: &Incoming,
) -> Option<Result<Value, Refusal>> {
    let is_here = |(wire, path, ..): &&(Wire, &str, &str, &[&str])| {
        *wire == profile.wire && *path == request.target && request.method == "POST"
    };
    let (wire, _, answers, others) = COUNTERS.iter().find(is_here)?;
    Some(count(profile, memory, request, (wire, answers, others)))
}

fn count(
    profile: &Profile,
    memory: &Memory,
    request: &Incoming,
    (wire, answers, others): (&Wire, &str, &[&str]),
) -> Result<Value, Refusal> {
    let mut body: Value = serde_json::from_slice(&request.body)
        .map_err(|error| Refusal::new(wire, 400, format!("not JSON: {error}")))?;
    for key in others {
        if body.get(key).is_some() {
            let message = format!("{key}: Extra inputs are not permitted");
            return Err(Refusal::new(wire, 400, message));
        }
    }
    if *wire == Wire::Anthropic {
        body["max_tokens"] = json!(1_000_000);
    }
    // Everything else is checked as for an answer.
    let asked = Incoming {
        target: answers.to_owned(),
        body: body.to_string().into_bytes(),
        ..request.clone()
    };
    strict::judge(profile, memory, &asked)?;
    let tokens = request.body.len().div_ceil(BYTES_OF_A_TOKEN);
    Ok(json!({"object": "response.input_tokens", "input_tokens": tokens}))
}
