//! A text with what else a message says of itself: its id, when it was said, what its vendor said
//! beside it, and the rest as JSON. In JSON all of it would be some two hundred bytes and the text
//! would be escaped, which costs a fifth of a message of a kilobyte.
//!
//! ```text
//! 5  parts  [run 16, no]  [length, id]  [created]  [length, vendor]  [length, rest]  text
//! ```
//!
//! `parts` says who speaks and which of the others are there, in this order. Numbers take seven
//! bits to a byte, the lowest first.

use throughline_model::json::{self, Value};
use throughline_model::stored::StoredError;
use throughline_model::{Content, Message, MessageId, Path, Role, Vendor};

use super::{FRAMED, corrupt, speaker, utf8};
use crate::{ItemRef, RunId, varint};

/// The bits of `parts` that say who speaks.
const SPEAKER: u8 = 0x07;
/// The id is the one that a place of ours gives.
const PLACE: u8 = 0x08;
/// The id is another one.
const ID: u8 = 0x10;
const CREATED: u8 = 0x20;
const VENDOR: u8 = 0x40;
/// Author, status, usage, metadata and what is not known: a message without contents.
const REST: u8 = 0x80;

/// Whether a message says more than its text.
pub(super) fn is_needed(message: &Message, content: &Content) -> bool {
    message.id.is_some()
        || message.created.is_some()
        || content.vendor.is_some()
        || has_rest(message)
}

fn has_rest(message: &Message) -> bool {
    message.author.is_some()
        || message.status.is_some()
        || message.usage.is_some()
        || message.meta.is_some()
        || !message.extra.is_empty()
}

/// The bytes of a message that has one plain text, said by the speaker with a number.
pub(super) fn pack(message: &Message, content: &Content, speaker: u8, text: &str) -> Vec<u8> {
    let mut parts = speaker;
    let mut out = Vec::with_capacity(text.len() + 128);
    out.extend_from_slice(&[FRAMED, 0]);
    if let Some(id) = &message.id {
        match ItemRef::of_message(id) {
            Some(place) => {
                parts |= PLACE;
                out.extend_from_slice(place.run.as_bytes());
                varint::push(&mut out, u64::from(place.no));
            }
            None => {
                parts |= ID;
                long(&mut out, id.as_str());
            }
        }
    }
    if let Some(created) = message.created {
        parts |= CREATED;
        varint::push(&mut out, created);
    }
    let mut said = String::new();
    if let Some(vendor) = &content.vendor {
        parts |= VENDOR;
        vendor.write_json(&mut said);
        long(&mut out, &said);
    }
    if has_rest(message) {
        parts |= REST;
        let rest = Message {
            id: None,
            role: message.role.clone(),
            contents: Vec::new(),
            author: message.author.clone(),
            created: None,
            source: None,
            status: message.status.clone(),
            usage: message.usage.clone(),
            meta: message.meta.clone(),
            extra: message.extra.clone(),
        };
        said.clear();
        rest.write_json(&mut said);
        long(&mut out, &said);
    }
    out[1] = parts;
    out.extend_from_slice(text.as_bytes());
    out
}

/// Read them again, without their tag.
pub(super) fn unpack(bytes: &[u8]) -> Result<Message, StoredError> {
    let mut reader = Reader(bytes);
    let parts = reader.byte()?;
    let role = speaker(parts & SPEAKER)
        .ok_or_else(|| corrupt(format!("the speaker {}", parts & SPEAKER)))?;
    let mut id = None;
    if parts & PLACE != 0 {
        id = Some(reader.place()?.message_id());
    }
    if parts & ID != 0 {
        let text = reader.long()?;
        id = Some(MessageId::new(text).map_err(|error| corrupt(error.to_string()))?);
    }
    let created = match parts & CREATED {
        0 => None,
        _ => Some(reader.number()?),
    };
    let vendor = match parts & VENDOR {
        0 => None,
        _ => Some(Box::new(vendor(&json::parse(reader.long()?)?)?)),
    };
    let rest = match parts & REST {
        0 => Message::new(role.clone(), Vec::new()),
        _ => rest(reader.long()?, role)?,
    };
    let content = Content {
        vendor,
        ..Content::text(utf8(reader.0)?)
    };
    Ok(Message {
        id,
        created,
        contents: vec![content],
        ..rest
    })
}

fn vendor(value: &Value<'_>) -> Result<Vendor, StoredError> {
    Vendor::from_value(value, &Path::Root.key("vendor"))
}

fn rest(text: &str, role: &Role) -> Result<Message, StoredError> {
    let rest = Message::from_json(text)?;
    if rest.role == *role && rest.contents.is_empty() {
        return Ok(rest);
    }
    Err(corrupt("a frame that is a message of its own".into()))
}

fn long(out: &mut Vec<u8>, text: &str) {
    varint::push(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// What is left to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], StoredError> {
        let taken = self.0.split_at_checked(length);
        let (taken, left) = taken.ok_or_else(|| corrupt("a frame that is cut off".into()))?;
        self.0 = left;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, StoredError> {
        let taken = self.take(1)?;
        Ok(taken[0])
    }

    fn number(&mut self) -> Result<u64, StoredError> {
        let number = varint::take(&mut self.0);
        number.ok_or_else(|| corrupt("a number that is cut off or too long".into()))
    }

    fn long(&mut self) -> Result<&'a str, StoredError> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        utf8(self.take(length)?)
    }

    fn place(&mut self) -> Result<ItemRef, StoredError> {
        let mut run = [0; 16];
        run.copy_from_slice(self.take(16)?);
        let no = u32::try_from(self.number()?);
        Ok(ItemRef {
            run: RunId::from_bytes(run),
            no: no.map_err(|_| corrupt("an item with too high a number".into()))?,
        })
    }
}
