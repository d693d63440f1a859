use std::borrow::Cow;

/// Whether a string token is written the same again, by its escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escapes {
    /// No escape: the token is the text in quotes.
    None,
    /// Only escapes that [`push_string`](super::push_string) writes the same way.
    Canonical,
    /// Escapes that would be written differently (`\/`, `\u00e9`).
    Other,
    /// An unpaired surrogate: the text has U+FFFD in its place and only the token is exact.
    LoneSurrogate,
}

/// A string as it stands in a JSON text.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The token between its quotes, escapes untouched.
    inner: &'a str,
    escapes: Escapes,
}

impl<'a> Text<'a> {
    pub(super) fn new(inner: &'a str, escapes: Escapes) -> Self {
        Self { inner, escapes }
    }

    /// The token between its quotes, escapes untouched.
    pub fn token(&self) -> &'a str {
        self.inner
    }

    /// Which escapes the token has.
    pub fn escapes(&self) -> Escapes {
        self.escapes
    }

    /// Whether writing [`Text::to_str`] again gives the same token.
    pub fn is_canonical(&self) -> bool {
        match self.escapes {
            Escapes::None | Escapes::Canonical => true,
            Escapes::Other | Escapes::LoneSurrogate => false,
        }
    }

    /// The text that the token stands for; an unpaired surrogate reads as U+FFFD.
    pub fn to_str(&self) -> Cow<'a, str> {
        match self.escapes {
            Escapes::None => Cow::Borrowed(self.inner),
            Escapes::Canonical | Escapes::Other | Escapes::LoneSurrogate => {
                Cow::Owned(unescape(self.inner))
            }
        }
    }

    /// Whether the text is `other`.
    pub fn is(&self, other: &str) -> bool {
        match self.escapes {
            Escapes::None => self.inner == other,
            Escapes::Canonical | Escapes::Other | Escapes::LoneSurrogate => {
                self.inner.len() >= other.len() && unescape(self.inner) == other
            }
        }
    }

    /// Whether the text has no character.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }
}

/// Four hex digits as a number; `None` if they are not hex.
pub(super) fn hex4(digits: &[u8]) -> Option<u32> {
    let mut number = 0;
    for digit in digits.get(..4)? {
        number = number * 16 + (*digit as char).to_digit(16)?;
    }
    Some(number)
}

/// Undo the escapes of a token that the parser has accepted.
fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(place) = rest.find('\\') {
        out.push_str(&rest[..place]);
        let bytes = &rest.as_bytes()[place..];
        let used = match bytes.get(1) {
            Some(b'u') => {
                let (found, used) = surrogates(bytes);
                out.push(found);
                used
            }
            Some(b'n') => push(&mut out, '\n'),
            Some(b'r') => push(&mut out, '\r'),
            Some(b't') => push(&mut out, '\t'),
            Some(b'b') => push(&mut out, '\u{8}'),
            Some(b'f') => push(&mut out, '\u{c}'),
            // `"`, `\` and `/` stand for themselves; the parser let nothing else pass.
            Some(other) => push(&mut out, *other as char),
            None => 1,
        };
        rest = &rest[place + used..];
    }
    out.push_str(rest);
    out
}

fn push(out: &mut String, found: char) -> usize {
    out.push(found);
    2
}

/// The character of a `\uXXXX` escape or of a pair of them, and how many bytes it took.
fn surrogates(bytes: &[u8]) -> (char, usize) {
    let first = bytes.get(2..).and_then(hex4).unwrap_or(0xFFFD);
    if (0xD800..0xDC00).contains(&first)
        && bytes.get(6..8) == Some(b"\\u")
        && let Some(second) = bytes.get(8..).and_then(hex4)
        && (0xDC00..0xE000).contains(&second)
    {
        let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return (char::from_u32(code).unwrap_or('\u{FFFD}'), 12);
    }
    (char::from_u32(first).unwrap_or('\u{FFFD}'), 6)
}
