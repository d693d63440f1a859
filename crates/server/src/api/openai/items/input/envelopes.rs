//! Opens the envelopes that a client sends back: a vendor's reasoning, and its signatures of texts and
//! calls.

use throughline_model::json::Value;
use throughline_model::{Body, Content, Form, Message, Wire};

use super::super::envelope;
use crate::ApiError;

/// Replace envelopes by their contents, and signed contents by the originals.
pub(crate) fn open_envelopes(message: &mut Message) -> Result<(), ApiError> {
    let mut signed = Vec::new();
    let mut contents = Vec::with_capacity(message.contents.len());
    for content in std::mem::take(&mut message.contents) {
        match content_in(&content)? {
            None => contents.push(content),
            Some(found) if is_standalone(&found) => contents.push(found),
            Some(found) => signed.push(found),
        }
    }
    for found in signed {
        // What it belongs to may have been left out, or changed; then the signature means nothing.
        if let Some(place) = contents
            .iter_mut()
            .find(|content| is_signed_by(content, &found))
        {
            *place = match item_id(place) {
                Some(id) => envelope::with_item_id(found, &id),
                None => found,
            };
        }
    }
    message.contents = contents;
    Ok(())
}

/// Whether a content belongs to no other item: reasoning, and signatures without a text.
fn is_standalone(content: &Content) -> bool {
    match &content.body {
        Body::Reasoning(_) => true,
        Body::Text(text) => text.text.is_empty(),
        _ => false,
    }
}

/// Whether a content is the one that a vendor signed.
fn is_signed_by(content: &Content, signed: &Content) -> bool {
    match (&content.body, &signed.body) {
        (Body::Text(one), Body::Text(two)) => one.text == two.text,
        (Body::ToolCall(one), Body::ToolCall(two)) => {
            one.call.value() == two.call.value() && one.name == two.name
        }
        _ => false,
    }
}

/// The id of the item that a content came in.
fn item_id(content: &Content) -> Option<String> {
    let vendor = content.vendor.as_ref()?;
    let item = match (&vendor.envelope, &vendor.form) {
        (Some(envelope), _) => envelope,
        (None, Form::Item(item)) => item,
        (None, _) => return None,
    };
    let value = item.value();
    value.get("id").and_then(Value::as_str).map(Into::into)
}

/// The content in the envelope of an item, if it has one of ours.
fn content_in(content: &Content) -> Result<Option<Content>, ApiError> {
    let (Body::Reasoning(_), Some(vendor)) = (&content.body, &content.vendor) else {
        return Ok(None);
    };
    let (Wire::OpenAiResponses, Form::Item(item)) = (&vendor.wire, &vendor.form) else {
        return Ok(None);
    };
    let item = item.value();
    let sealed = item.get("encrypted_content").and_then(Value::as_str);
    let Some(found) = sealed.and_then(|sealed| envelope::open(&sealed)) else {
        return Ok(None);
    };
    let found = found.map_err(|error| {
        ApiError::invalid(format!(
            "The encrypted content of a reasoning item could not be read: {error}. Send it as you \
             received it, or leave the item out."
        ))
        .code("invalid_encrypted_content")
        .param("input")
    })?;
    Ok(Some(match item_id(content) {
        Some(id) => envelope::with_item_id(found, &id),
        None => found,
    }))
}
