//! Ids of tool calls with their origin.

use std::fmt;

use crate::heap_size::heap_size_of_fields;

/// Where the value of a [`CallId`] comes from. A fact of the instance, not of its type: the same
/// wire type may carry an id today and none tomorrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The wire's own correlation id.
    Natural,
    /// The wire has an item id only; nothing on the wire refers to it as a call id.
    Item,
    /// The wire had none; the value was derived from where the call stands.
    Minted,
}

impl Origin {
    /// The word used in the stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Natural => "natural",
            Self::Item => "item",
            Self::Minted => "minted",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        match word {
            "natural" => Some(Self::Natural),
            "item" => Some(Self::Item),
            "minted" => Some(Self::Minted),
            _ => None,
        }
    }
}

/// The id of a tool call: a value that is never empty, and its [`Origin`].
///
/// A result carries the `CallId` of its call. Ids repeat in real histories, so equality of ids
/// alone does not make a pair; see [`pairs`](crate::pairs).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CallId {
    value: Box<str>,
    origin: Origin,
}

heap_size_of_fields!(CallId { value; origin });

/// What a minted id is derived from: the narrowest name that is known to be stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// The vendor's id of the response that holds the call.
    Response(&'a str),
    /// Our run and step, where the vendor names no response.
    Step {
        /// The id of the run.
        run: &'a str,
        /// The step in the run.
        step: u32,
    },
    /// The place in an array of messages or items, where there is nothing else.
    Place(usize),
}

impl CallId {
    /// The wire's correlation id; `None` for the empty string, which is never a valid id.
    pub fn natural(value: &str) -> Option<Self> {
        Self::with(value, Origin::Natural)
    }

    /// An item id used as a handle; `None` for the empty string.
    pub fn item(value: &str) -> Option<Self> {
        Self::with(value, Origin::Item)
    }

    /// An id for a call that has none on the wire.
    ///
    /// `ordinal` counts the calls of one response (or one element of an array), never content
    /// parts, which differ between a streamed and a whole reading. The same response always gives
    /// the same ids. The value starts with a letter and has 29 characters of `[a-z0-9_]`, so it
    /// fits every vendor's id field.
    ///
    /// ```
    /// use throughline_model::{CallId, Origin, Scope};
    ///
    /// let first = CallId::minted(Scope::Response("resp_1"), 0);
    /// assert_eq!(first, CallId::minted(Scope::Response("resp_1"), 0));
    /// assert_ne!(first, CallId::minted(Scope::Response("resp_1"), 1));
    /// assert_eq!(first.origin(), Origin::Minted);
    /// ```
    pub fn minted(scope: Scope<'_>, ordinal: usize) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"throughline call id 1\0");
        match scope {
            Scope::Response(id) => {
                hasher.update(b"response\0").update(id.as_bytes());
            }
            Scope::Step { run, step } => {
                hasher.update(b"step\0").update(run.as_bytes());
                hasher.update(b"\0").update(&step.to_le_bytes());
            }
            Scope::Place(place) => {
                hasher
                    .update(b"place\0")
                    .update(&(place as u64).to_le_bytes());
            }
        }
        hasher.update(b"\0").update(&(ordinal as u64).to_le_bytes());
        let mut value = String::with_capacity(29);
        value.push_str("tc_");
        push_base32(&mut value, &hasher.finalize().as_bytes()[..16]);
        Self {
            value: value.into(),
            origin: Origin::Minted,
        }
    }

    /// An id read back from the stored form.
    pub(crate) fn with(value: &str, origin: Origin) -> Option<Self> {
        (!value.is_empty()).then(|| Self {
            value: value.into(),
            origin,
        })
    }

    /// The value, never empty.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Where the value comes from.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.origin.as_str(), self.value)
    }
}

/// Lower-case base 32 without the letters that read like digits.
fn push_base32(out: &mut String, bytes: &[u8]) {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut buffer = 0u32;
    let mut bits = 0;
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push(ALPHABET[(buffer >> bits) as usize & 31] as char);
        }
    }
    if bits > 0 {
        out.push(ALPHABET[(buffer << (5 - bits)) as usize & 31] as char);
    }
}

/// One id field of a wire item, exactly as it was.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum IdField {
    /// The wire type has no such field.
    #[default]
    NoField,
    /// The field exists but was left out.
    Missing,
    /// The field was `null`.
    Null,
    /// The field was set, possibly to the empty string.
    Set(Box<str>),
}

/// The two id fields of a wire item, verbatim.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IdFields {
    /// The field that names the item itself.
    pub id: IdField,
    /// The field by which a result names its call.
    pub call: IdField,
}
