use std::fmt;

/// Why a text is not JSON that we read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// A character that cannot stand here.
    UnexpectedCharacter(char),
    /// A number that JSON does not allow, such as `01` or `1.`.
    InvalidNumber,
    /// A backslash followed by something that is not an escape.
    InvalidEscape,
    /// A control character inside a string; JSON wants it escaped.
    ControlCharacter,
    /// The bytes are not UTF-8.
    InvalidUtf8,
    /// Arrays and objects are nested deeper than the limit.
    TooDeep {
        /// The limit that was passed.
        limit: usize,
    },
    /// There are more values than the limit.
    TooManyValues {
        /// The limit that was passed.
        limit: usize,
    },
    /// Something follows after the end of the document.
    TrailingText,
}

/// An error in a JSON text, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Byte offset from the start of the text.
    pub offset: usize,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

impl JsonError {
    pub(super) fn new(kind: JsonErrorKind, text: &[u8], offset: usize) -> Self {
        let before = &text[..offset.min(text.len())];
        let line_start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |place| place + 1);
        Self {
            kind,
            offset,
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            // Continuation bytes do not start a character.
            column: 1 + before[line_start..]
                .iter()
                .filter(|byte| (**byte & 0xC0) != 0x80)
                .count(),
        }
    }
}

impl fmt::Display for JsonErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnexpectedEnd => f.write_str("the text ends inside a value"),
            Self::UnexpectedCharacter(found) => write!(f, "unexpected character {found:?}"),
            Self::InvalidNumber => f.write_str("invalid number"),
            Self::InvalidEscape => f.write_str("invalid escape in a string"),
            Self::ControlCharacter => {
                f.write_str("control character in a string, it must be escaped")
            }
            Self::InvalidUtf8 => f.write_str("the bytes are not UTF-8"),
            Self::TooDeep { limit } => write!(f, "nested deeper than {limit} levels"),
            Self::TooManyValues { limit } => write!(f, "more than {limit} values"),
            Self::TrailingText => f.write_str("text after the end of the document"),
        }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at line {} column {}",
            self.kind, self.line, self.column
        )
    }
}

impl std::error::Error for JsonError {}
