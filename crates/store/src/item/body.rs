//! The bytes of an item.
//!
//! The plain text of one speaker, which most messages are, is stored as one tag byte and the
//! text: neither quoted nor escaped, so that a byte said is a byte stored. Everything else is the
//! stored JSON form, which starts with `{`. Other first bytes belong to later versions.

use throughline_model::stored::StoredError;
use throughline_model::{Body, Content, Message, Role, Source};

const TAGGED: [(u8, Role); 4] = [
    (1, Role::User),
    (2, Role::Assistant),
    (3, Role::System),
    (4, Role::Developer),
];

/// The stored bytes of a message. A source with a number of its own is left out.
pub(super) fn pack(message: &Message) -> Vec<u8> {
    if let Some((tag, text)) = plain(message) {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.push(tag);
        bytes.extend_from_slice(text.as_bytes());
        return bytes;
    }
    match &message.source {
        None | Some(Source::Other(_)) => message.to_json().into_bytes(),
        Some(_) => {
            let bare = Message {
                source: None,
                ..message.clone()
            };
            bare.to_json().into_bytes()
        }
    }
}

/// The tag and the text of a message that is nothing but plain text.
fn plain(message: &Message) -> Option<(u8, &str)> {
    let Message {
        id: None,
        role,
        contents,
        author: None,
        created: None,
        source: None | Some(_),
        status: None,
        usage: None,
        meta: None,
        extra,
    } = message
    else {
        return None;
    };
    let [
        Content {
            body: Body::Text(text),
            vendor: None,
            extra: unknown,
        },
    ] = contents.as_slice()
    else {
        return None;
    };
    let simple = extra.is_empty()
        && unknown.is_empty()
        && text.citations.is_empty()
        && !matches!(message.source, Some(Source::Other(_)));
    let (tag, _) = TAGGED.iter().find(|(_, tagged)| tagged == role)?;
    simple.then_some((*tag, text.text.as_str()))
}

/// Read them again.
pub(super) fn unpack(bytes: &[u8]) -> Result<Message, StoredError> {
    let corrupt = |found: String| StoredError::Corrupt {
        path: "body".into(),
        expected: "a stored message",
        found,
    };
    let tagged = bytes
        .split_first()
        .and_then(|(tag, text)| Some((TAGGED.iter().find(|(known, _)| known == tag)?, text)));
    if let Some(((_, role), text)) = tagged {
        let text = str::from_utf8(text).map_err(|error| corrupt(error.to_string()))?;
        return Ok(Message::new(role.clone(), vec![Content::text(text)]));
    }
    match bytes.first() {
        Some(b'{') => {}
        Some(tag) => return Err(corrupt(format!("a body that starts with the byte {tag}"))),
        None => return Err(corrupt("nothing".into())),
    }
    let text = str::from_utf8(bytes).map_err(|error| corrupt(error.to_string()))?;
    Message::from_json(text)
}
