//! Reasoning of other vendors in the blocks of this API.
//!
//! Anthropic signs its thinking, and clients send the signature back. Where another vendor answered,
//! the signature is an envelope with that vendor's own form of the reasoning, so that it goes back as
//! it came. A call that its vendor wants back as it was travels in a `redacted_thinking` block after it:
//! one that Gemini signed, and one that sealed reasoning of OpenAI led to.

use throughline_model::json::RawJson;
use throughline_model::{Body, Content, Form, Message, Role, Wire};

use super::block::input;
use crate::api::envelope;
use crate::error::ApiError;

/// Put what is in envelopes back into its place. Returns whether there was something.
pub(super) fn open_all(messages: &mut [Message]) -> Result<bool, ApiError> {
    let mut found = false;
    for message in messages {
        if message.role == Role::Assistant {
            found |= open(message)?;
        }
    }
    Ok(found)
}

fn open(message: &mut Message) -> Result<bool, ApiError> {
    let mut contents: Vec<Content> = Vec::with_capacity(message.contents.len());
    // That of the message, if it stood at a block that is replaced.
    let mut envelope = None;
    let mut found = false;
    for mut content in std::mem::take(&mut message.contents) {
        let opened = match token_of(&content) {
            Some(token) => envelope::open(&token),
            None => None,
        };
        match opened {
            None => {
                if let Some(envelope) = envelope.take()
                    && let Some(vendor) = &mut content.vendor
                {
                    vendor.envelope.get_or_insert(envelope);
                }
                contents.push(content);
            }
            Some(Err(error)) => {
                return Err(ApiError::invalid(format!(
                    "A thinking block cannot be read: {error}. Send blocks back as they came, or \
                     leave thinking out."
                ))
                .code("invalid_encrypted_content")
                .param("messages"));
            }
            Some(Ok(inner)) => {
                found = true;
                envelope = take_envelope(&mut content).or(envelope);
                if let Body::Reasoning(_) = inner.body {
                    contents.push(inner);
                    continue;
                }
                // The form of its vendor replaces the block that was shown. One that the client took
                // out stays out.
                let mut shown = contents.iter_mut();
                if let Some(shown) = shown.rfind(|shown| is_same_call(&inner, shown)) {
                    envelope = take_envelope(shown).or(envelope);
                    *shown = inner;
                }
            }
        }
    }
    message.contents = contents;
    Ok(found)
}

fn take_envelope(content: &mut Content) -> Option<RawJson> {
    content.vendor.as_mut()?.envelope.take()
}

/// Whether a call in an envelope is the one that was shown. One that was shown by another id keeps that,
/// because its result names it, and one that the client has edited is what the client says.
fn is_same_call(sealed: &Content, shown: &Content) -> bool {
    match (sealed.as_tool_call(), shown.as_tool_call()) {
        (Some(sealed), Some(shown)) => {
            sealed.call.value() == shown.call.value()
                && sealed.name == shown.name
                && input(&sealed.arguments) == input(&shown.arguments)
        }
        _ => false,
    }
}

/// What a block of thinking carries for its vendor.
fn token_of(content: &Content) -> Option<String> {
    let vendor = content.vendor.as_ref()?;
    let Form::Part(block) = &vendor.form else {
        return None;
    };
    if vendor.wire != Wire::Anthropic || !matches!(content.body, Body::Reasoning(_)) {
        return None;
    }
    let block = block.value();
    let token = block.get("signature").or_else(|| block.get("data"))?;
    Some(token.as_str()?.into_owned())
}
