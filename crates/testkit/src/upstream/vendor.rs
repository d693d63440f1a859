//! Addresses, keys and errors of each vendor.

use serde_json::{Value, json};
use throughline_model::Wire;

use super::http::{Head, Incoming};
use crate::scripted::Reading;

/// The key that the servers accept.
pub const KEY: &str = "sk-upstream-0123456789abcdef";

/// The error of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// OpenAI's `type`, Anthropic's `type`, Google's `status`.
    pub(super) kind: &'static str,
    pub(super) code: Option<&'static str>,
    pub(super) param: Option<String>,
    pub(super) message: String,
}

impl Refusal {
    /// The vendor's usual error for a status.
    pub(super) fn new(wire: &Wire, status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            kind: usual(family(wire), status),
            code: None,
            param: None,
            message: message.into(),
        }
    }

    #[must_use]
    pub(super) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    #[must_use]
    pub(super) fn kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }

    #[must_use]
    pub(super) fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// The vendor's body of the error.
    pub(super) fn body(&self, wire: &Wire, number: usize) -> Value {
        match family(wire) {
            Vendor::OpenAi => json!({"error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }}),
            Vendor::Anthropic => json!({
                "type": "error",
                "error": {"type": self.kind, "message": self.message},
                "request_id": request_id(wire, number),
            }),
            Vendor::Google => json!({"error": {
                "code": self.status,
                "message": self.message,
                "status": self.kind,
            }}),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vendor {
    OpenAi,
    Anthropic,
    Google,
}

pub(super) fn family(wire: &Wire) -> Vendor {
    match wire {
        Wire::Anthropic => Vendor::Anthropic,
        Wire::Gemini | Wire::GeminiInteractions => Vendor::Google,
        Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Foundry | Wire::Other(_) => Vendor::OpenAi,
    }
}

fn usual(vendor: Vendor, status: u16) -> &'static str {
    match (vendor, status) {
        (Vendor::OpenAi, 429) => "requests",
        (Vendor::OpenAi, 500..) => "server_error",
        (Vendor::OpenAi, _) => "invalid_request_error",
        (Vendor::Anthropic, 401) => "authentication_error",
        (Vendor::Anthropic, 403) => "permission_error",
        (Vendor::Anthropic, 404) => "not_found_error",
        (Vendor::Anthropic, 429) => "rate_limit_error",
        (Vendor::Anthropic, 529) => "overloaded_error",
        (Vendor::Anthropic, 500..) => "api_error",
        (Vendor::Anthropic, _) => "invalid_request_error",
        (Vendor::Google, 401) => "UNAUTHENTICATED",
        (Vendor::Google, 403) => "PERMISSION_DENIED",
        (Vendor::Google, 404) => "NOT_FOUND",
        (Vendor::Google, 429) => "RESOURCE_EXHAUSTED",
        (Vendor::Google, 500) => "INTERNAL",
        (Vendor::Google, 501..) => "UNAVAILABLE",
        (Vendor::Google, _) => "INVALID_ARGUMENT",
    }
}

/// The path between the origin and the operation.
pub(super) fn base_path(wire: &Wire) -> &'static str {
    match wire {
        Wire::OpenAiChat | Wire::OpenAiResponses => "/v1",
        Wire::Foundry => "/api/projects/harbour/openai/v1",
        Wire::Anthropic | Wire::Gemini | Wire::GeminiInteractions | Wire::Other(_) => "",
    }
}

/// The head of every response of the vendor.
pub(super) fn head(wire: &Wire, status: u16, number: usize) -> Head {
    let plain = match family(wire) {
        Vendor::Google => "application/json; charset=UTF-8",
        Vendor::OpenAi | Vendor::Anthropic => "application/json",
    };
    let id = request_id(wire, number);
    let head = Head::new(status, plain);
    match wire {
        Wire::Anthropic => head.with("request-id", id),
        Wire::Foundry => head.with("apim-request-id", id),
        Wire::Gemini | Wire::GeminiInteractions => head,
        Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Other(_) => head.with("x-request-id", id),
    }
}

fn request_id(wire: &Wire, number: usize) -> String {
    format!("req_{}_{number}", wire.as_str().replace('-', "_"))
}

/// The operation of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// The model, if the address names it.
    pub(super) model: Option<String>,
    /// Whole or streamed, if the address says it.
    pub(super) reading: Option<Reading>,
}

/// Finds the operation of an address.
pub(super) fn place(wire: &Wire, target: &str) -> Option<Endpoint> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let nowhere = Endpoint {
        model: None,
        reading: None,
    };
    let is = |expected: &str| (path == expected && query.is_empty()).then_some(nowhere);
    match wire {
        Wire::OpenAiResponses => is("/v1/responses"),
        Wire::OpenAiChat => is("/v1/chat/completions"),
        Wire::Anthropic => is("/v1/messages"),
        Wire::Foundry => is("/api/projects/harbour/openai/v1/responses"),
        Wire::GeminiInteractions => is("/v1beta/interactions"),
        Wire::Gemini => {
            let (model, operation) = path.strip_prefix("/v1beta/models/")?.split_once(':')?;
            let reading = match (operation, query) {
                ("generateContent", "") => Reading::Whole,
                // Without `alt=sse` the vendor would stream an array, which no client here reads.
                ("streamGenerateContent", "alt=sse") => Reading::Streamed,
                _ => return None,
            };
            (!model.is_empty() && !model.contains('/')).then(|| Endpoint {
                model: Some(model.to_owned()),
                reading: Some(reading),
            })
        }
        Wire::Other(_) => None,
    }
}

/// The headers in which a vendor expects a key, with their prefixes.
pub(super) fn key_headers(wire: &Wire) -> &'static [(&'static str, &'static str)] {
    match wire {
        Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Other(_) => {
            &[("authorization", "Bearer ")]
        }
        Wire::Anthropic => &[("x-api-key", "")],
        Wire::Gemini | Wire::GeminiInteractions => &[("x-goog-api-key", "")],
        Wire::Foundry => &[("authorization", "Bearer "), ("api-key", "")],
    }
}

/// Checks the key of a request; returns the vendor's error if it is wrong.
pub(super) fn check_key(wire: &Wire, request: &Incoming) -> Result<(), Refusal> {
    let given = key_headers(wire)
        .iter()
        .find_map(|(name, before)| request.header(name).map(|value| value.strip_prefix(before)));
    match (given, family(wire)) {
        (Some(Some(KEY)), _) => Ok(()),
        (None, Vendor::OpenAi) => Err(Refusal::new(
            wire,
            401,
            "Missing bearer authentication in header",
        )),
        (Some(_), Vendor::OpenAi) => Err(Refusal::new(
            wire,
            401,
            "Incorrect API key provided. You can find your API key in your account settings.",
        )
        .code("invalid_api_key")),
        (None, Vendor::Anthropic) => Err(Refusal::new(wire, 401, "x-api-key header is required")),
        (Some(_), Vendor::Anthropic) => Err(Refusal::new(wire, 401, "invalid x-api-key")),
        (None, Vendor::Google) => Err(Refusal::new(
            wire,
            403,
            "Method doesn't allow unregistered callers (callers without established identity). \
             Please use API Key or other form of API consumer identity to call this API.",
        )),
        (Some(_), Vendor::Google) => Err(Refusal::new(
            wire,
            400,
            "API key not valid. Please pass a valid API key.",
        )),
    }
}
