//! Answers to questions that a vendor's own tool host asks.

use throughline_model::{ApprovalResponse, Body, Content, Wire};

use crate::vendors;

/// An answer to a question of a vendor's tool host, in the form of the format in which it was
/// asked. In a format that has no words for it, it is kept and never sent.
///
/// ```
/// use throughline_model::{ApprovalResponse, CallId, Message, Role};
/// use throughline_wire::{Losses, Wire, approval_answer, codec};
///
/// let answer = ApprovalResponse {
///     request: CallId::natural("mcpr_1").unwrap(),
///     approved: true,
///     reason: None,
/// };
/// let content = approval_answer(&Wire::OpenAiResponses, answer);
/// let said = [Message::new(Role::Tool, vec![content])];
/// let responses = codec(&Wire::OpenAiResponses).unwrap();
/// assert_eq!(
///     responses.encode_messages(&said, &mut Losses::default()),
///     r#"[{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}]"#
/// );
/// ```
pub fn approval_answer(wire: &Wire, answer: ApprovalResponse) -> Content {
    let vendor = vendors::find(wire).and_then(|vendor| (vendor.approval_item)(&answer));
    let content = Content::new(Body::ApprovalResponse(answer));
    match vendor {
        Some(vendor) => content.with_vendor(vendor),
        None => content,
    }
}

#[cfg(test)]
mod tests {
    use throughline_model::{ApprovalResponse, CallId, Wire, json};

    use super::approval_answer;
    use crate::codec;

    #[test]
    fn an_answer_is_what_the_vendor_would_say_of_it() {
        let text = r#"[{"type":"mcp_approval_request","id":"mcpr_1","server_label":"harbour","name":"release","arguments":"{}"},{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false,"reason":"not \"today\""}]"#;
        for wire in [Wire::OpenAiResponses, Wire::Foundry] {
            let items = json::parse(text).unwrap();
            let items = items.as_array().unwrap();
            let said = codec(&wire).unwrap().decode_messages(items).unwrap();
            let contents: Vec<_> = said.iter().flat_map(|one| &one.contents).collect();
            let made = approval_answer(
                &wire,
                ApprovalResponse {
                    request: CallId::natural("mcpr_1").unwrap(),
                    approved: false,
                    reason: Some("not \"today\"".into()),
                },
            );
            assert_eq!(contents[1], &made);
        }
    }
}
