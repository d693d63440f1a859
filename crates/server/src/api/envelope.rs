//! Envelopes: the string in which a client stores reasoning, `encrypted_content` of OpenAI's items and
//! `signature` of Anthropic's blocks.
//!
//! Vendors demand their reasoning back exactly, signatures included, and a client has one string to
//! carry it in. Ours is base 64 of an object with a version, the vendor's format, the
//! model, and the content in the record's own form; so a loop that stores nothing works with every
//! vendor. It is encoded, not encrypted: its holder may read it, as with the vendor's own.
//!
//! Some vendors sign texts or calls instead of reasoning; items of these APIs have no member for that.
//! Such a content travels in a reasoning item beside its own item, and replaces it when both come back.
//!
//! A string that does not begin like ours is another's and is left as it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throughline_model::json::{Limits, ObjectWriter, RawJson, Value, parse_with};
use throughline_model::{Body, Content, Form, Path, Wire};

/// How every envelope begins, before it is written in base 64.
const HEAD: &str = r#"{"throughline":"#;

/// The same in base 64, as far as it does not depend on what follows.
const PREFIX: &str = "eyJ0aHJvdWdobGluZSI6";

/// The version that is written.
const VERSION: u64 = 1;

/// Why an envelope cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadEnvelope {
    /// It was cut or changed on the way.
    #[error("it is damaged")]
    Damaged,
    /// A later version wrote it.
    #[error("a newer version wrote it")]
    Newer,
}

/// Put a content into an envelope.
pub(crate) fn seal(content: &Content, model: &str) -> String {
    let mut text = String::from(HEAD);
    let mut inner = String::new();
    let mut object = ObjectWriter::new(&mut inner);
    object.number("v", VERSION);
    if let Some(vendor) = &content.vendor {
        object.str("vendor", vendor.wire.as_str());
    }
    object.str("model", model);
    content.write_json(object.key("content"));
    object.end();
    text.push_str(&inner);
    text.push('}');
    STANDARD.encode(text)
}

/// Open an envelope; `None` if the string is not one of ours.
pub(crate) fn open(sealed: &str) -> Option<Result<Content, BadEnvelope>> {
    sealed.starts_with(PREFIX).then(|| read(sealed))
}

fn read(sealed: &str) -> Result<Content, BadEnvelope> {
    let bytes = STANDARD.decode(sealed).map_err(|_| BadEnvelope::Damaged)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| BadEnvelope::Damaged)?;
    let value = parse_with(text, Limits::default()).map_err(|_| BadEnvelope::Damaged)?;
    let inner = value.get("throughline").ok_or(BadEnvelope::Damaged)?;
    match inner.get("v").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(version) if version > VERSION => return Err(BadEnvelope::Newer),
        Some(_) | None => return Err(BadEnvelope::Damaged),
    }
    let content = inner.get("content").ok_or(BadEnvelope::Damaged)?;
    let content = Content::from_value(content, &Path::Root).map_err(|_| BadEnvelope::Damaged)?;
    match content.body {
        Body::Reasoning(_) | Body::ToolCall(_) | Body::Text(_) => Ok(content),
        _ => Err(BadEnvelope::Damaged),
    }
}

/// Whether a content is signed by its vendor and its item has no place for that.
pub(crate) fn is_signed(content: &Content) -> bool {
    let (Body::ToolCall(_) | Body::Text(_), Some(vendor)) = (&content.body, &content.vendor) else {
        return false;
    };
    let (Wire::Gemini, Form::Part(part)) = (&vendor.wire, &vendor.form) else {
        return false;
    };
    let signed = |key: &str| part.locate(&[key]).is_some();
    signed("thoughtSignature") || signed("thought_signature")
}

/// The member under which a content keeps the id that a client knows it by.
const ITEM_ID: &str = "item_id";

/// The content with the id that a client knows it by. It is kept as a member that the record does
/// not know, and no vendor sees it.
pub(crate) fn with_item_id(content: Content, id: &str) -> Content {
    let mut text = String::new();
    content.write_json(&mut text);
    let Ok(stored) = RawJson::new(&text) else {
        return content;
    };
    let with = RawJson::object(|object| {
        object
            .members_of(stored.without(|key| key == ITEM_ID).get())
            .str(ITEM_ID, id);
    });
    Content::from_value(&with.value(), &Path::Root).unwrap_or(content)
}

/// The id that a client knows a content by, if it was opened from an envelope.
pub(crate) fn item_id_of(content: &Content) -> Option<String> {
    let extra = content.extra.as_json()?.value();
    let id = extra.get(ITEM_ID)?.as_str()?;
    Some(id.into_owned())
}

#[cfg(test)]
mod tests {
    use throughline_model::json::RawJson;
    use throughline_model::{Reasoning, Vendor, Wire};

    use base64::Engine as _;

    use super::{BadEnvelope, Body, Content, STANDARD, item_id_of, open, seal, with_item_id};

    fn thinking() -> Content {
        let reasoning = Reasoning {
            summary: Vec::new(),
            text: vec!["tides depend on the moon".to_owned()],
            sealed: true,
        };
        let block = r#"{"type":"thinking","thinking":"","signature":"c2ln\/bmF0dXJl"}"#;
        let vendor = Vendor::part(Wire::Anthropic, RawJson::new(block).unwrap());
        Content::new(Body::Reasoning(reasoning)).with_vendor(vendor)
    }

    #[test]
    fn what_is_sealed_comes_back_exactly() {
        let sealed = seal(&thinking(), "claude");
        assert_eq!(open(&sealed), Some(Ok(thinking())));
    }

    #[test]
    fn the_strings_of_others_are_left_alone() {
        for foreign in ["", "gAAAAABpQ3Jh", "eyJhbGciOiJIUzI1NiJ9", "{}"] {
            assert_eq!(open(foreign), None);
        }
    }

    #[test]
    fn a_damaged_envelope_is_refused() {
        let sealed = seal(&thinking(), "claude");
        let cut = &sealed[..sealed.len() - 4];
        assert_eq!(open(cut), Some(Err(BadEnvelope::Damaged)));
        let refusal = Body::Refusal(throughline_model::Text::default());
        let other = seal(&Content::new(refusal), "claude");
        assert_eq!(open(&other), Some(Err(BadEnvelope::Damaged)));
        let newer = STANDARD.encode(br#"{"throughline":{"v":2}}"#);
        assert_eq!(open(&newer), Some(Err(BadEnvelope::Newer)));
    }

    #[test]
    fn a_name_is_kept_beside_the_content() {
        let content = with_item_id(with_item_id(thinking(), "rs_0"), "rs_1");
        assert_eq!(item_id_of(&content).as_deref(), Some("rs_1"));
        assert_eq!(
            (&content.body, &content.vendor),
            (&thinking().body, &thinking().vendor)
        );
        assert_eq!(item_id_of(&thinking()), None);
    }
}
