//! Errors that are independent of the request.

use serde_json::{Value, json};
use throughline_model::Wire;

use super::super::fault::Fault;
use super::super::http::Act;
use super::super::vendor::{self, Refusal, Vendor, family};
use super::{To, sized};

/// A refusal that is independent of the request.
pub(super) fn status(to: &To<'_>, fault: Fault) -> Vec<Act> {
    let wire = to.wire;
    let openai = family(wire) == Vendor::OpenAi;
    let refusal = match fault {
        Fault::InvalidRequest => Refusal::new(
            wire,
            400,
            "Invalid value for 'temperature': must be at most 2.",
        )
        .param("temperature"),
        Fault::Unauthorised => {
            Refusal::new(wire, 401, "Incorrect API key provided.").code("invalid_api_key")
        }
        Fault::NoSuchModel => Refusal::new(
            wire,
            404,
            "The model does not exist or you do not have access to it.",
        )
        .code("model_not_found"),
        Fault::RateLimited => {
            Refusal::new(wire, 429, "Rate limit reached for requests").code("rate_limit_exceeded")
        }
        Fault::OutOfQuota => match family(wire) {
            Vendor::OpenAi => Refusal::new(
                wire,
                429,
                "You exceeded your current quota, please check your plan and billing details.",
            )
            .kind("insufficient_quota")
            .code("insufficient_quota"),
            Vendor::Anthropic => Refusal::new(
                wire,
                400,
                "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
            ),
            Vendor::Google => Refusal::new(
                wire,
                429,
                "You exceeded your current quota, please check your plan and billing details.",
            ),
        },
        Fault::Overloaded => {
            let status = if *wire == Wire::Anthropic { 529 } else { 503 };
            Refusal::new(wire, status, "Overloaded")
        }
        _ => Refusal::new(
            wire,
            500,
            "The server had an error processing your request.",
        ),
    };
    let mut body = refusal.body(wire, to.number);
    let mut head = vendor::head(wire, refusal.status, to.number);
    match (fault, family(wire)) {
        (Fault::RateLimited, Vendor::Google) => {
            body["error"]["details"] = json!([{
                "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.050s"}]);
        }
        (Fault::OutOfQuota, Vendor::Google) => {
            body["error"]["details"] = json!([{
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaMetric": "generativelanguage.googleapis.com/generate_requests",
                    "quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}]);
        }
        (Fault::RateLimited | Fault::Overloaded, _) => {
            head = head.with("retry-after", "1");
            if openai {
                head = head.with("retry-after-ms", "50");
            }
        }
        _ => {}
    }
    sized(&head, body.to_string().as_bytes())
}

/// The vendor's error in a response with status 200.
pub(super) fn late_error(to: &To<'_>) -> Value {
    let status = if *to.wire == Wire::Anthropic {
        529
    } else {
        503
    };
    Refusal::new(to.wire, status, "Overloaded")
        .code("server_error")
        .body(to.wire, to.number)
}
