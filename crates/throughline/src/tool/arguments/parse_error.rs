//! Describes where a text stops being JSON, so that a model can correct it.

use throughline_model::json::{JsonError, JsonErrorKind};

use super::ArgumentError;

/// How much of the text before a mistake is shown, in characters.
const BEFORE: usize = 40;

/// The error for a text that is not JSON.
pub(super) fn not_json(text: &str, error: JsonError) -> ArgumentError {
    let good = text.get(..error.offset).unwrap_or(text);
    let expected = match error.kind {
        JsonErrorKind::UnexpectedEnd | JsonErrorKind::UnexpectedCharacter(_) => expected(good),
        JsonErrorKind::InvalidNumber => "a number such as 1, -2.5 or 1e3",
        JsonErrorKind::InvalidEscape => {
            r#"one of \" \\ \/ \b \f \n \r \t or \u and four hex digits"#
        }
        JsonErrorKind::TrailingText => "nothing after the end of the object",
        // These kinds need no hint, and later kinds may not either.
        _ => "",
    };
    let skipped = good.chars().count().saturating_sub(BEFORE);
    let shown: String = good.chars().skip(skipped).collect();
    let before = if skipped > 0 {
        format!("…{shown}")
    } else {
        shown
    };
    ArgumentError::NotJson {
        error,
        expected,
        before,
    }
}

/// What may follow at a place of a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
}

/// What could have followed a valid prefix of JSON.
fn expected(good: &str) -> &'static str {
    let mut inside: Vec<u8> = Vec::new();
    let mut next = Next::Value;
    let mut bytes = good.bytes();
    while let Some(byte) = bytes.next() {
        next = match byte {
            b' ' | b'\n' | b'\r' | b'\t' => next,
            b'{' => {
                inside.push(byte);
                Next::KeyOrEnd
            }
            b'[' => {
                inside.push(byte);
                Next::ValueOrEnd
            }
            b'}' | b']' => {
                inside.pop();
                Next::CommaOrEnd
            }
            b':' => Next::Value,
            b',' if inside.last() == Some(&b'{') => Next::Key,
            b',' => Next::Value,
            b'"' => {
                if !skip_string(&mut bytes) {
                    return "a double quote that ends the string";
                }
                match next {
                    Next::Key | Next::KeyOrEnd => Next::Colon,
                    _ => Next::CommaOrEnd,
                }
            }
            _ => Next::CommaOrEnd,
        };
    }
    match (next, inside.last()) {
        (Next::Value, _) => "a value",
        (Next::ValueOrEnd, _) => "a value or ]",
        (Next::Key, _) => "a key in double quotes",
        (Next::KeyOrEnd, _) => "a key in double quotes or }",
        (Next::Colon, _) => "a colon",
        (Next::CommaOrEnd, Some(b'{')) => "a comma or }",
        (Next::CommaOrEnd, Some(_)) => "a comma or ]",
        (Next::CommaOrEnd, None) => "the end",
    }
}

/// Skips to the end of a string; false if it has none.
fn skip_string(bytes: &mut std::str::Bytes<'_>) -> bool {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return true,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    false
}
