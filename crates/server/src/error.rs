//! Errors of the HTTP API.

use std::borrow::Cow;
use std::time::Duration;

use throughline_model::json::RawJson;

/// An error as OpenAI's API words it: a status and `{"error":{"message","type","param","code"}}`,
/// all four keys present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The class of the error.
    pub kind: &'static str,
    /// What programs look at.
    pub code: Option<Cow<'static, str>>,
    /// Which parameter it is about.
    pub param: Option<String>,
    /// What people read: what, where and what to do.
    pub message: String,
    /// When to try again.
    pub retry_after: Option<Duration>,
    /// Whether SDKs may send it again by themselves; no header if `None`.
    pub should_retry: Option<bool>,
    /// More headers, names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// More members of the `error` object, such as the holder of a lock.
    pub more: Vec<(&'static str, RawJson)>,
}

/// The code for an item that is not there.
pub(crate) const MISSING_ITEM: &str = "item_not_found";

impl ApiError {
    /// An error with a status and a class.
    pub fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            code: None,
            param: None,
            message: message.into(),
            retry_after: None,
            should_retry: None,
            headers: Vec::new(),
            more: Vec::new(),
        }
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_request_error", message)
    }

    /// What was named in the path is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "invalid_request_error", message)
    }

    /// Something of ours failed.
    pub fn server(message: impl Into<String>) -> Self {
        Self::new(500, "server_error", message)
    }

    /// Too much at once: 503, and when to try again.
    pub(crate) fn overloaded(message: &str, code: &'static str) -> Self {
        let mut error = Self::new(503, "server_error", format!("{message} Try again soon."))
            .code(code)
            .retry(true);
        error.retry_after = Some(Duration::from_secs(1));
        error
    }

    /// A feature that is not built.
    pub fn not_implemented(feature: &str) -> Self {
        Self::new(
            501,
            "invalid_request_error",
            format!("{feature} is not implemented"),
        )
        .code("not_implemented")
        .param(feature)
        .retry(false)
    }

    /// With a code.
    #[must_use]
    pub fn code(mut self, code: impl Into<Cow<'static, str>>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// About a parameter.
    #[must_use]
    pub fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Whether SDKs may send it again.
    #[must_use]
    pub fn retry(mut self, should: bool) -> Self {
        self.should_retry = Some(should);
        self
    }

    /// The body.
    pub fn body(&self) -> RawJson {
        RawJson::object(|object| {
            let error = RawJson::object(|error| {
                error.str("message", &self.message);
                error.str("type", self.kind);
                match &self.param {
                    Some(param) => drop(error.str("param", param)),
                    None => drop(error.raw("param", "null")),
                }
                match &self.code {
                    Some(code) => drop(error.str("code", code)),
                    None => drop(error.raw("code", "null")),
                }
                for (key, value) in &self.more {
                    error.raw(key, value.get());
                }
            });
            object.raw("error", error.get());
        })
    }
}
