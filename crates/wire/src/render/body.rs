//! The members of a request body that follow from a history and its target.

use throughline_model::Wire;
use throughline_model::json::{ArrayWriter, ObjectWriter};

use super::items::Items;
use super::switches::Switches;
use super::target::{Chain, ChainAt, Target};
use crate::members::Members;
use crate::openai_chat;

/// What was rendered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<'s> {
    /// System text that stands outside the messages.
    pub(crate) system: Option<&'s str>,
    /// The messages or items, a JSON array.
    pub(crate) items: Items<'s>,
}

/// Add them: system text, messages, and what is continued.
pub(crate) fn add<'m>(
    body: &mut Members<'m>,
    said: Said<'m>,
    target: &'m Target,
    switches: Switches,
) {
    let Said { system, items } = said;
    match target.wire {
        Wire::OpenAiResponses | Wire::Foundry => {
            if let Some(text) = system {
                body.str("instructions", text);
            }
            body.items("input", None, items);
            if let Some(chain) = &target.chain {
                continued(body, chain, switches);
            }
        }
        Wire::OpenAiChat | Wire::Other(_) => {
            body.items("messages", system.map(openai_chat::encode::system), items);
        }
        Wire::Anthropic => {
            if let Some(text) = system {
                body.str("system", text);
            }
            body.items("messages", None, items);
            if let Some(container) = &target.container {
                body.str("container", container);
            }
        }
        Wire::Gemini => {
            if let Some(text) = system {
                body.raw("systemInstruction", instruction(text));
            }
            body.items("contents", None, items);
        }
        Wire::GeminiInteractions => {
            if let Some(text) = system {
                body.str("system_instruction", text);
            }
            body.items("input", None, items);
            if let Some(ChainAt::Response(id)) = target.chain.as_ref().map(|chain| &chain.at) {
                body.str("previous_interaction_id", id);
            }
        }
    }
}

/// Gemini's content for system text.
fn instruction(text: &str) -> String {
    let mut out = String::new();
    let mut content = ObjectWriter::new(&mut out);
    let mut parts = ArrayWriter::new(content.key("parts"));
    let mut part = ObjectWriter::new(parts.slot());
    part.str("text", text);
    part.end();
    parts.end();
    content.end();
    out
}

/// A response or a conversation, never both.
fn continued(body: &mut Members<'_>, chain: &Chain, switches: Switches) {
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
