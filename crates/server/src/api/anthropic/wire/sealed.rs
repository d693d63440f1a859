//! Reasoning of other vendors in the blocks of this API.
//!
//! Anthropic signs its thinking, and clients send the signature back. Where another vendor answered,
//! the signature is an envelope with that vendor's own form of the reasoning, so that it goes back as
//! it came. A call that its vendor signed (Gemini) travels in a `redacted_thinking` block before it.

use throughline_model::json::RawJson;
use throughline_model::{Body, Content, Form, Message, Role, Wire};

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
    let Some(first) = message
        .contents
        .iter()
        .position(|one| token_of(one).is_some())
    else {
        return Ok(false);
    };
    let mut contents: Vec<Content> = Vec::with_capacity(message.contents.len());
    let mut envelope = None;
    let mut signed: Option<Content> = None;
    let mut found = false;
    for (index, mut content) in std::mem::take(&mut message.contents)
        .into_iter()
        .enumerate()
    {
        let opened = match token_of(&content).filter(|_| index >= first) {
            Some(token) => envelope::open(&token),
            None => None,
        };
        match opened {
            None => {
                if let Some(call) = signed.take() {
                    // The signed form replaces the block that was shown beside it.
                    if is_same_call(&call, &content) {
                        envelope = take_envelope(&mut content).or(envelope);
                        contents.push(call);
                        continue;
                    }
                    contents.push(call);
                }
                if let (Some(envelope), Some(vendor)) = (envelope.take(), &mut content.vendor) {
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
                match inner.body {
                    Body::Reasoning(_) => contents.push(inner),
                    _ => contents.extend(signed.replace(inner)),
                }
            }
        }
    }
    contents.extend(signed);
    message.contents = contents;
    Ok(found)
}

fn take_envelope(content: &mut Content) -> Option<RawJson> {
    content.vendor.as_mut()?.envelope.take()
}

fn is_same_call(signed: &Content, shown: &Content) -> bool {
    match (signed.as_tool_call(), shown.as_tool_call()) {
        (Some(signed), Some(shown)) => signed.name == shown.name,
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
