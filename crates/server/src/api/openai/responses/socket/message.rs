//! Messages of a WebSocket: what clients send, and errors as they are answered.

use throughline_model::Path;
use throughline_model::json::RawJson;

use crate::api::openai::responses::wire::CreateRequest;
use crate::api::read;
use crate::config::Dialect;
use crate::error::ApiError;

/// The only type of message that clients send.
const CREATE: &str = "response.create";

/// Members of a message that are not those of a request. A WebSocket always streams.
const OF_MESSAGES: [&str; 5] = [
    "type",
    "stream",
    "stream_options",
    "background",
    "stream_id",
];

/// A message that asks for a response.
pub(super) struct SocketMessage {
    pub(super) request: CreateRequest,
    /// What events name, if the message does.
    pub(super) stream_id: Option<String>,
}

impl SocketMessage {
    pub(super) fn read(message: &[u8], dialect: Dialect) -> Result<Self, ApiError> {
        let body = read::body(message)?;
        let root = Path::Root;
        let kind = read::text(&body, "type", &root)?;
        if kind.as_deref() != Some(CREATE) {
            let kind: String = kind.unwrap_or_default().chars().take(64).collect();
            return Err(ApiError::invalid(format!(
                "A message of a WebSocket has the type '{CREATE}', not '{kind}'."
            ))
            .code("invalid_value")
            .param("type"));
        }
        if read::flag(&body, "background", &root)? == Some(true) {
            return Err(ApiError::invalid(
                "A background response is asked for with POST /v1/responses: a WebSocket streams.",
            )
            .code("unsupported_parameter")
            .param("background"));
        }
        let stream_id = read::text(&body, "stream_id", &root)?.map(|id| id.to_string());
        if stream_id.is_some() && dialect == Dialect::OpenResponses {
            return Err(ApiError::invalid(
                "Open Responses has one stream for each WebSocket: leave 'stream_id' out.",
            )
            .code("unsupported_parameter")
            .param("stream_id"));
        }
        let request = RawJson::object(|object| {
            for member in body.members() {
                if !OF_MESSAGES.iter().any(|key| member.key.is(key)) {
                    object.key_token(&member.key).push_str(member.value.raw());
                }
            }
            object.bool("stream", true);
        });
        Ok(Self {
            request: CreateRequest::parse(request.get().as_bytes())?,
            stream_id,
        })
    }
}

/// An error as a message. Open Responses wants a code in each: one without has that of its class.
pub(super) fn error_message(error: &ApiError, stream_id: Option<&str>) -> String {
    let body = match error.code {
        Some(_) => error.body(),
        None => error.clone().code(error.kind).body(),
    };
    let body = body.value();
    let error_object = body.get("error").map_or("null", |error| error.raw());
    let message = RawJson::object(|object| {
        object
            .str("type", "error")
            .number("status", error.status.into())
            .raw("error", error_object);
        if let Some(stream_id) = stream_id {
            object.str("stream_id", stream_id);
        }
    });
    message.get().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_request_with_a_type() {
        let text =
            br#"{"type":"response.create","model":"m","input":"hi","stream":false,"store":false,
            "stream_id":"a","generate":false,"background":null}"#;
        let message = SocketMessage::read(text, Dialect::OpenAi).unwrap();
        let request = &message.request;
        assert_eq!(message.stream_id.as_deref(), Some("a"));
        assert_eq!(request.model(), Some("m"));
        assert!(request.stream() && !request.store() && !request.generate());
        assert_eq!(request.input().items().len(), 1);
        let refused = SocketMessage::read(text, Dialect::OpenResponses)
            .err()
            .unwrap();
        assert_eq!(refused.param.as_deref(), Some("stream_id"));
    }

    #[test]
    fn what_is_no_request_is_refused_by_its_member() {
        for (text, param) in [
            (r#"{"model":"m"}"#, "type"),
            (r#"{"type":"session.update"}"#, "type"),
            (
                r#"{"type":"response.create","background":true}"#,
                "background",
            ),
            (r#"{"type":"response.create","generate":1}"#, "generate"),
        ] {
            let refused = SocketMessage::read(text.as_bytes(), Dialect::OpenAi);
            let refused = refused.err().unwrap();
            assert_eq!(
                (refused.status, refused.param.as_deref()),
                (400, Some(param))
            );
            let message = error_message(&refused, Some("s"));
            let value = throughline_model::json::parse(&message).unwrap();
            assert!(value.get("type").unwrap().is_str("error"));
            assert_eq!(value.get("status").unwrap().as_u64(), Some(400));
            assert!(value.at(&["error", "param"]).unwrap().is_str(param));
            assert!(value.at(&["error", "code"]).unwrap().as_str().is_some());
        }
        assert!(SocketMessage::read(b"[", Dialect::OpenAi).is_err());
        let message = error_message(&ApiError::invalid("no"), None);
        let value = throughline_model::json::parse(&message).unwrap();
        let code = value.at(&["error", "code"]).unwrap();
        assert!(code.is_str("invalid_request_error"));
    }
}
