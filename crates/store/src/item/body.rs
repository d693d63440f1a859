//! The bytes of an item.
//!
//! The plain text of one speaker, which most messages are, is stored as one tag byte and the
//! text: neither quoted nor escaped, so that a byte said is a byte stored. A text with more to it,
//! a name, a time, what its vendor said beside it, has a few bytes for that before it; see
//! `framed`. Everything else is the stored JSON form, which starts with `{`. Other first bytes
//! belong to later versions.

mod framed;

use throughline_model::stored::StoredError;
use throughline_model::{Body, Content, Message, Role, Source};

const TAGGED: [(u8, Role); 4] = [
    (1, Role::User),
    (2, Role::Assistant),
    (3, Role::System),
    (4, Role::Developer),
];

/// The tag of a text with a frame.
const FRAMED: u8 = 5;

/// The stored bytes of a message. A source with a number of its own is left out.
pub(super) fn pack(message: &Message) -> Vec<u8> {
    if let Some((speaker, content, text)) = plain(message) {
        if framed::is_needed(message, content) {
            return framed::pack(message, content, speaker, text);
        }
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.push(speaker);
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

/// The speaker, the content and the text of a message that has one text and nothing beside it.
fn plain(message: &Message) -> Option<(u8, &Content, &str)> {
    let [content] = message.contents.as_slice() else {
        return None;
    };
    let Body::Text(text) = &content.body else {
        return None;
    };
    let simple = content.extra.is_empty()
        && text.citations.is_empty()
        && !matches!(message.source, Some(Source::Other(_)));
    let (tag, _) = TAGGED.iter().find(|(_, tagged)| *tagged == message.role)?;
    simple.then_some((*tag, content, text.text.as_str()))
}

fn corrupt(found: String) -> StoredError {
    StoredError::Corrupt {
        path: "body".into(),
        expected: "a stored message",
        found,
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, StoredError> {
    str::from_utf8(bytes).map_err(|error| corrupt(error.to_string()))
}

fn speaker(tag: u8) -> Option<&'static Role> {
    static ROLES: &[(u8, Role); 4] = &TAGGED;
    let found = ROLES.iter().find(|(known, _)| *known == tag);
    found.map(|(_, role)| role)
}

/// Read them again.
pub(super) fn unpack(bytes: &[u8]) -> Result<Message, StoredError> {
    match bytes.split_first() {
        Some((b'{', _)) => Message::from_json(utf8(bytes)?),
        Some((&FRAMED, rest)) => framed::unpack(rest),
        Some((tag, text)) => match speaker(*tag) {
            Some(role) => {
                let text = Content::text(utf8(text)?);
                Ok(Message::new(role.clone(), vec![text]))
            }
            None => Err(corrupt(format!("a body that starts with the byte {tag}"))),
        },
        None => Err(corrupt("nothing".into())),
    }
}
