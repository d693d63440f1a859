use std::fmt;

/// The stable id of a message, assigned when the message enters a thread.
///
/// Ours are `msg_` and a UUID version 7 in hex; ids of imported messages are kept as they are.
/// Invariant: 1 to 128 visible ASCII characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(Box<str>);

/// A text that cannot be an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id has 1 to 128 visible ASCII characters, not {length} characters like {start:?}")]
pub struct InvalidId {
    /// How many characters the text has.
    pub length: usize,
    /// The first characters of the text.
    pub start: String,
}

impl MessageId {
    const PREFIX: &'static str = "msg_";

    /// Take over an id.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        if (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text.into()));
        }
        Err(InvalidId {
            length: text.chars().count(),
            start: text.chars().take(16).collect(),
        })
    }

    /// A new id from a time in milliseconds and ten random bytes (UUID version 7).
    ///
    /// ```
    /// use throughline_model::MessageId;
    ///
    /// let id = MessageId::v7(0x0199_0000_0000, [0xff; 10]);
    /// assert_eq!(id.as_str(), "msg_0199000000007fffbfffffffffffffff");
    /// ```
    pub fn v7(unix_millis: u64, random: [u8; 10]) -> Self {
        let mut bytes = [0u8; 16];
        bytes[..6].copy_from_slice(&unix_millis.to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&random);
        bytes[6] = 0x70 | (bytes[6] & 0x0F);
        bytes[8] = 0x80 | (bytes[8] & 0x3F);
        let mut text = String::with_capacity(36);
        text.push_str(Self::PREFIX);
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
