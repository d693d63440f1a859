use super::error::{JsonError, JsonErrorKind};
use super::text::{Escapes, Text, hex4};
use super::value::{Member, Node, Value};

/// How much JSON one text may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Levels of arrays and objects inside each other; never more than [`Limits::DEEPEST`].
    pub depth: usize,
    /// Values in the whole text. A value costs about 64 bytes while the tree lives.
    pub values: usize,
}

impl Limits {
    /// The deepest nesting that can be configured; reading is recursive, and so is dropping.
    pub const DEEPEST: usize = 1_024;

    /// For text that passed other limits before and was wrapped in a few more levels since.
    pub(super) const TRUSTED: Self = Self {
        depth: 2 * Self::DEEPEST,
        values: usize::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 128,
            values: 1_000_000,
        }
    }
}

/// Read one JSON document.
///
/// ```
/// use throughline_model::json;
///
/// let value = json::parse(r#"{"id": 12345678901234567890123, "text": "h\u00e9"}"#)?;
/// assert_eq!(value.get("id").map(|id| id.raw()), Some("12345678901234567890123"));
/// assert_eq!(value.get("text").and_then(|text| text.as_str()).as_deref(), Some("hé"));
///
/// let error = json::parse("{\n  \"a\": }").unwrap_err();
/// assert_eq!((error.line, error.column), (2, 8));
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn parse(text: &str) -> Result<Value<'_>, JsonError> {
    parse_with(text, Limits::default())
}

/// Read one JSON document from bytes; bytes that are not UTF-8 are an error with its place.
pub fn parse_bytes(bytes: &[u8], limits: Limits) -> Result<Value<'_>, JsonError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse_with(text, limits),
        Err(error) => Err(JsonError::new(
            JsonErrorKind::InvalidUtf8,
            bytes,
            error.valid_up_to(),
        )),
    }
}

/// Read one JSON document with other limits.
pub fn parse_with(text: &str, limits: Limits) -> Result<Value<'_>, JsonError> {
    // A byte order mark is not JSON, but editors write it; it carries nothing.
    let start = if text.starts_with('\u{FEFF}') { 3 } else { 0 };
    let depth = if limits == Limits::TRUSTED {
        limits.depth
    } else {
        limits.depth.min(Limits::DEEPEST)
    };
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: start,
        limits: Limits { depth, ..limits },
        values: 0,
    };
    let value = parser.value(0)?;
    parser.skip_space();
    if parser.at < parser.bytes.len() {
        return Err(parser.error(JsonErrorKind::TrailingText));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    limits: Limits,
    values: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError::new(kind, self.bytes, self.at)
    }

    /// The error for whatever stands at the current place.
    fn unexpected(&self) -> JsonError {
        match self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
        {
            Some(found) => self.error(JsonErrorKind::UnexpectedCharacter(found)),
            None => self.error(JsonErrorKind::UnexpectedEnd),
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// The next byte after white space, not consumed.
    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.bytes.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>, JsonError> {
        let first = self.peek();
        if self.values == self.limits.values {
            let limit = self.limits.values;
            return Err(self.error(JsonErrorKind::TooManyValues { limit }));
        }
        self.values += 1;
        let start = self.at;
        let node = match first {
            Some(b'"') => {
                let text = self.string()?;
                return Ok(Value::new(
                    &self.text[start..self.at],
                    Node::String(text.escapes()),
                ));
            }
            Some(b'{') => self.object(depth + 1)?,
            Some(b'[') => self.array(depth + 1)?,
            Some(b't') => self.word("true", Node::Bool(true))?,
            Some(b'f') => self.word("false", Node::Bool(false))?,
            Some(b'n') => self.word("null", Node::Null)?,
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                Node::Number
            }
            _ => return Err(self.unexpected()),
        };
        Ok(Value::new(&self.text[start..self.at], node))
    }

    fn word(&mut self, word: &str, node: Node<'a>) -> Result<Node<'a>, JsonError> {
        for byte in word.bytes() {
            if self.bytes.get(self.at) != Some(&byte) {
                return Err(self.unexpected());
            }
            self.at += 1;
        }
        Ok(node)
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.bytes.get(self.at) {
            self.at += 1;
        }
        if self.at > start {
            return Ok(());
        }
        match self.bytes.get(self.at) {
            None => Err(self.error(JsonErrorKind::UnexpectedEnd)),
            Some(_) => Err(self.error(JsonErrorKind::InvalidNumber)),
        }
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
            if let Some(b'0'..=b'9') = self.bytes.get(self.at) {
                return Err(self.error(JsonErrorKind::InvalidNumber));
            }
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Go on to the next byte that ends or interrupts a run of plain characters.
    fn skip_plain(&mut self) {
        self.at = plain_until(self.bytes, self.at);
    }

    fn string(&mut self) -> Result<Text<'a>, JsonError> {
        self.at += 1;
        let start = self.at;
        let mut escapes = Escapes::None;
        loop {
            self.skip_plain();
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let inner = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(Text::new(inner, escapes));
                }
                Some(b'\\') => {
                    let found = self.escape()?;
                    escapes = more_severe(escapes, found);
                }
                Some(_) => return Err(self.error(JsonErrorKind::ControlCharacter)),
                None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
            }
        }
    }

    fn escape(&mut self) -> Result<Escapes, JsonError> {
        let kind = match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f') => Escapes::Canonical,
            Some(b'/') => Escapes::Other,
            Some(b'u') => return self.unicode_escape(),
            Some(_) => return Err(self.error(JsonErrorKind::InvalidEscape)),
            None => {
                self.at += 1;
                return Err(self.error(JsonErrorKind::UnexpectedEnd));
            }
        };
        self.at += 2;
        Ok(kind)
    }

    fn unicode_escape(&mut self) -> Result<Escapes, JsonError> {
        let Some(first) = self.bytes.get(self.at + 2..).and_then(hex4) else {
            return Err(self.error(JsonErrorKind::InvalidEscape));
        };
        let digits = &self.bytes[self.at + 2..self.at + 6];
        let kind = match first {
            0xD800..=0xDBFF => {
                let second = match self.bytes.get(self.at + 6..self.at + 8) {
                    Some(b"\\u") => self.bytes.get(self.at + 8..).and_then(hex4),
                    _ => None,
                };
                match second {
                    Some(0xDC00..=0xDFFF) => {
                        self.at += 12;
                        return Ok(Escapes::Other);
                    }
                    _ => Escapes::LoneSurrogate,
                }
            }
            0xDC00..=0xDFFF => Escapes::LoneSurrogate,
            // The control characters without a short escape, in lower case, are how we write them.
            0x08 | 0x09 | 0x0A | 0x0C | 0x0D => Escapes::Other,
            0x00..=0x1F if !digits.iter().any(u8::is_ascii_uppercase) => Escapes::Canonical,
            _ => Escapes::Other,
        };
        self.at += 6;
        Ok(kind)
    }

    fn enter(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth > self.limits.depth {
            let limit = self.limits.depth;
            return Err(self.error(JsonErrorKind::TooDeep { limit }));
        }
        self.at += 1;
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<Node<'a>, JsonError> {
        self.enter(depth)?;
        let mut values = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Node::Array(values));
        }
        loop {
            values.push(self.value(depth)?);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Node::Array(values));
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node<'a>, JsonError> {
        self.enter(depth)?;
        let mut members = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Node::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let key = self.string()?;
            if self.peek() != Some(b':') {
                return Err(self.unexpected());
            }
            self.at += 1;
            let value = self.value(depth)?;
            members.push(Member { key, value });
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Node::Object(members));
                }
                _ => return Err(self.unexpected()),
            }
        }
    }
}

/// Where the next byte after `from` stands that is special inside a string: `"`, `\\` or a control
/// character. The end if there is none.
pub(super) fn plain_until(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    // Names and numbers end soon; only what does not is worth a wide look.
    for _ in 0..2 {
        match special_of(bytes, at) {
            Some(None) => at += 8,
            Some(Some(place)) => return at + place,
            None => break,
        }
    }
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<64>) {
        if !is_plain(chunk) {
            break;
        }
        at += chunk.len();
    }
    while let Some(found) = special_of(bytes, at) {
        match found {
            None => at += 8,
            Some(place) => return at + place,
        }
    }
    while let Some(byte) = bytes.get(at) {
        if is_special(*byte) {
            break;
        }
        at += 1;
    }
    at
}

const fn is_special(byte: u8) -> bool {
    // Not `||`: bytes are looked at side by side where nothing is left out.
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Whether none of some bytes is special. Written so that the compiler looks at 16 at once.
fn is_plain(bytes: &[u8; 64]) -> bool {
    let special = |found: u8, byte: &u8| found | u8::from(is_special(*byte));
    bytes.iter().fold(0, special) == 0
}

/// The first special one of the eight bytes from a place on, if there are so many.
#[inline]
fn special_of(bytes: &[u8], at: usize) -> Option<Option<usize>> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    // The usual "has a byte less than n" trick.
    let quote = word ^ (ONES * u64::from(b'"'));
    let slash = word ^ (ONES * u64::from(b'\\'));
    let special = ((quote.wrapping_sub(ONES) & !quote)
        | (slash.wrapping_sub(ONES) & !slash)
        | (word.wrapping_sub(ONES * 0x20) & !word))
        & HIGHS;
    // The lowest alarm is never false: borrows only travel upwards.
    Some((special != 0).then(|| (special.trailing_zeros() / 8) as usize))
}

/// The one of two findings that is further from writing the same token again.
fn more_severe(a: Escapes, b: Escapes) -> Escapes {
    let rank = |escapes| match escapes {
        Escapes::None => 0,
        Escapes::Canonical => 1,
        Escapes::Other => 2,
        Escapes::LoneSurrogate => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}
