//! The members of a request body that follow from a history and its target.

use throughline_model::Wire;
use throughline_model::json::{ArrayWriter, ObjectWriter};

use super::Rendered;
use super::switches::Switches;
use super::target::{Chain, ChainAt, Target};

pub(super) fn write(rendered: &Rendered, target: &Target, switches: Switches) -> String {
    let mut out = String::new();
    let mut body = ObjectWriter::new(&mut out);
    let system = rendered.system.as_deref();
    match target.wire {
        Wire::OpenAiResponses | Wire::Foundry => {
            body.raw("input", &rendered.array());
            if let Some(chain) = &target.chain {
                continued(&mut body, chain, switches);
            }
        }
        Wire::OpenAiChat | Wire::Other(_) => {
            body.raw("messages", &rendered.array());
        }
        Wire::Anthropic => {
            if let Some(text) = system {
                body.str("system", text);
            }
            body.raw("messages", &rendered.array());
            if let Some(container) = &target.container {
                body.str("container", container);
            }
        }
        Wire::Gemini => {
            if let Some(text) = system {
                let mut content = ObjectWriter::new(body.key("systemInstruction"));
                let mut parts = ArrayWriter::new(content.key("parts"));
                let mut part = ObjectWriter::new(parts.slot());
                part.str("text", text);
                part.end();
                parts.end();
                content.end();
            }
            body.raw("contents", &rendered.array());
        }
        Wire::GeminiInteractions => {
            if let Some(text) = system {
                body.str("system_instruction", text);
            }
            body.raw("input", &rendered.array());
            if let Some(ChainAt::Response(id)) = target.chain.as_ref().map(|chain| &chain.at) {
                body.str("previous_interaction_id", id);
            }
        }
    }
    body.end();
    out
}

/// A response or a conversation, never both.
fn continued(body: &mut ObjectWriter<'_>, chain: &Chain, switches: Switches) {
    let (response, conversation) = match &chain.at {
        ChainAt::Response(id) => (Some(id), None),
        ChainAt::Conversation(id) => (None, Some(id)),
    };
    let both = !switches.upholds("S-O4");
    if let Some(id) = response.or(conversation.filter(|_| both)) {
        body.str("previous_response_id", id);
    }
    if let Some(id) = conversation.or(response.filter(|_| both)) {
        body.str("conversation", id);
    }
}
