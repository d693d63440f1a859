//! What is left of a message whose body was removed on purpose, and of what was derived from it.

use throughline_model::json::RawJson;
use throughline_model::stored::StoredError;
use throughline_model::{
    ApprovalRequest, ApprovalResponse, Arguments, Body, Content, Message, Output, ToolCall,
    ToolResult,
};

use crate::Mask;

/// What readers and models see in place of a content.
const MARK: &str = "[redacted]";

/// What is left of a message: who spoke, a mark in place of each content, and the ids that pair calls with
/// results. Reasoning leaves nothing. What is left of what is left is the same.
pub(crate) fn left(message: &Message) -> Message {
    // A mask says nothing; without it what it takes out of a conversation would come back.
    if Mask::of(message).is_some() {
        return message.clone();
    }
    let mut contents: Vec<Content> = Vec::new();
    for content in &message.contents {
        let Some(body) = body(&content.body) else {
            continue;
        };
        let left = Content::new(body);
        let is_mark = left.as_text().is_some();
        if !is_mark || contents.last() != Some(&left) {
            contents.push(left);
        }
    }
    if contents.is_empty() {
        contents.push(Content::text(MARK));
    }
    Message {
        id: message.id.clone(),
        created: message.created,
        status: message.status.clone(),
        ..Message::new(message.role.clone(), contents)
    }
}

fn body(body: &Body) -> Option<Body> {
    Some(match body {
        Body::Reasoning(_) => return None,
        Body::Text(_)
        | Body::Media(_)
        | Body::Refusal(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => Content::text(MARK).body,
        Body::ToolCall(call) => Body::ToolCall(ToolCall {
            arguments: arguments(&call.arguments),
            ..call.clone()
        }),
        Body::ToolResult(result) => {
            let mut left: ToolResult = result.clone();
            left.output = Output::Text(MARK.to_owned());
            Body::ToolResult(left)
        }
        Body::ApprovalRequest(request) => Body::ApprovalRequest(ApprovalRequest {
            arguments: arguments(&request.arguments),
            ..request.clone()
        }),
        Body::ApprovalResponse(response) => Body::ApprovalResponse(ApprovalResponse {
            reason: None,
            ..response.clone()
        }),
    })
}

/// Arguments of the same kind that say nothing.
fn arguments(arguments: &Arguments) -> Arguments {
    match arguments {
        Arguments::None => Arguments::None,
        Arguments::Text(_) => Arguments::Text("{}".to_owned()),
        Arguments::Json(_) => Arguments::Json(RawJson::object(|_| {})),
        Arguments::Free(_) => Arguments::Free(MARK.to_owned()),
    }
}

/// Whether a text is what a redaction leaves of some message. What else stands there is damage, or was made
/// up by an export that is imported.
pub(crate) fn is_left(json: &RawJson) -> Result<bool, StoredError> {
    let message = Message::from_json(json.get())?;
    Ok(left(&message) == message)
}

/// What is left of the request of a run: `None` if it stays as it is. Its member `later` holds messages that
/// the run has yet to say.
pub(crate) fn request(request: &RawJson) -> Option<RawJson> {
    request.value().get("later")?;
    Some(request.without(|key| key == "later"))
}

#[cfg(test)]
mod tests {
    use throughline_model::{CallId, Family, Reasoning, Role};

    use super::*;

    fn call(arguments: Arguments) -> Content {
        let id = CallId::natural("call_1").unwrap();
        let call = ToolCall {
            arguments,
            ..ToolCall::function(id, "open_sluice", "")
        };
        Content::new(Body::ToolCall(call))
    }

    #[test]
    fn nothing_that_was_said_is_left_and_every_pair_is() {
        let canary = "canary-text";
        let json = RawJson::new(r#"{"kind":"later","a":"canary-text"}"#).unwrap();
        let result = ToolResult::answering(
            CallId::natural("call_1").unwrap(),
            Family::FUNCTION,
            Output::Json(json.clone()),
        );
        let reasoning = Reasoning {
            text: vec![canary.into()],
            ..Reasoning::default()
        };
        let mut message = Message::new(
            Role::Assistant,
            vec![
                Content::new(Body::Reasoning(reasoning.clone())),
                Content::text(canary),
                Content::text(canary),
                call(Arguments::Text(json.get().to_owned())),
                call(Arguments::Json(json.clone())),
                call(Arguments::Free(canary.into())),
                Content::new(Body::ToolResult(result)),
                Content::new(Body::opaque("odd")),
                Content::new(Body::Unknown(json.clone())),
            ],
        );
        message.author = Some(canary.into());
        message.meta = Some(json);
        let kept = left(&message);
        let text = kept.to_json();
        assert!(!text.contains("canary"), "{text}");
        assert_eq!(kept.contents.len(), 6, "{text}");
        assert_eq!(text.matches("call_1").count(), 4, "{text}");
        assert!(is_left(&RawJson::new(&text).unwrap()).unwrap());
        assert!(!is_left(&RawJson::new(&message.to_json()).unwrap()).unwrap());
        let silent = Message::new(
            Role::Assistant,
            vec![Content::new(Body::Reasoning(reasoning))],
        );
        assert_eq!(left(&silent).text(), MARK);
    }

    #[test]
    fn a_mask_stays() {
        let message = crate::ItemRef {
            run: crate::RunId::from_bytes([7; 16]),
            no: 1,
        };
        let mask = Mask::message(&[Mask {
            message,
            content: 0,
        }]);
        assert_eq!(left(&mask), mask);
    }

    #[test]
    fn messages_that_a_run_has_yet_to_say_are_left_out_of_its_request() {
        let kept = RawJson::new(r#"{"v":1,"host":{"n":1.50}}"#).unwrap();
        assert_eq!(request(&kept), None);
        let with = RawJson::new(r#"{"v":1,"host":{"n":1.50},"later":[{"x":1}]}"#).unwrap();
        assert_eq!(request(&with), Some(kept));
    }
}
