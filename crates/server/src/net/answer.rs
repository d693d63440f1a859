//! Answers: JSON, and errors in OpenAI's shape.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use throughline_model::json::RawJson;

use crate::error::ApiError;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// An answer that is JSON.
pub fn json(status: StatusCode, body: &RawJson) -> Response<Body> {
    let mut response = Response::new(Body::from(body.get().to_owned()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// An answer that is a stream of events.
pub(crate) fn event_stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    // Proxies that gather what they pass on would hold up the words.
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, &self.body());
        let headers = response.headers_mut();
        // Next to "do not send it again" a time would contradict it, except where it tells people how
        // long a quota or an overload lasts.
        let says_when = self.should_retry != Some(false) || matches!(self.status, 429 | 503 | 507);
        if let Some(wait) = self.retry_after.filter(|_| says_when) {
            // Whole seconds, never too early.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(should) = self.should_retry {
            let word = if should { "true" } else { "false" };
            headers.insert(SHOULD_RETRY, HeaderValue::from_static(word));
        }
        for (name, value) in &self.headers {
            // A value that cannot stand in a header is left out: the body says the rest.
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(*name), HeaderValue::try_from(value))
            {
                headers.insert(name, value);
            }
        }
        // For APIs whose errors have another shape.
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::response::IntoResponse;

    use crate::error::ApiError;

    #[test]
    fn what_to_do_about_an_error_is_in_its_headers() {
        let mut error = ApiError::new(503, "server_error", "busy").retry(true);
        error.retry_after = Some(Duration::from_millis(1500));
        error
            .headers
            .push(("x-throughline-response-id", "resp_1".to_owned()));
        error.headers.push(("x-bad", "a\nb".to_owned()));
        let response = error.into_response();
        let header = |name| {
            response
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap())
        };
        assert_eq!(response.status(), 503);
        assert_eq!(header("retry-after"), Some("2"));
        assert_eq!(header("x-should-retry"), Some("true"));
        assert_eq!(header("x-throughline-response-id"), Some("resp_1"));
        assert_eq!(header("content-type"), Some("application/json"));
        assert_eq!(header("x-bad"), None);
    }

    #[test]
    fn no_error_says_both_never_and_when() {
        // 429, 503 and 507 keep `Retry-After`: it tells people how long a quota or an overload lasts.
        for (status, says_when) in [(429, true), (503, true), (507, true), (502, false)] {
            let mut error = ApiError::new(status, "server_error", "no").retry(false);
            error.retry_after = Some(Duration::from_secs(1));
            let headers = error.into_response().headers().clone();
            assert_eq!(headers.get("x-should-retry").unwrap(), "false");
            assert_eq!(headers.contains_key("retry-after"), says_when, "{status}");
        }
    }
}
