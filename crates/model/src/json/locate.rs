//! Finding a member in a text that is known to be valid, without building its tree.

use std::ops::Range;

use super::parse::plain_until;

/// Where the value at a path of keys stands. Of duplicate keys the last counts.
///
/// The text must be compact JSON, as [`RawJson`](super::RawJson) keeps it. For any other text the
/// answer is useless, but asking is safe.
pub(super) fn locate(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let mut range = 0..text.len();
    for key in path {
        range = member(text, range, key)?;
    }
    Some(range)
}

fn member(text: &str, object: Range<usize>, key: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if bytes.get(object.start) != Some(&b'{') {
        return None;
    }
    let mut at = object.start + 1;
    let mut found = None;
    while bytes.get(at) == Some(&b'"') {
        let end = skip_string(bytes, at)?;
        let name = text.get(at + 1..end - 1)?;
        let value = end + 1;
        let after = skip_value(bytes, value)?;
        // Only a longer token can be another spelling of the key.
        let longer = name.len() > key.len() && name.contains('\\');
        if name == key || (longer && is_escaped(text.get(at..end)?, key)) {
            found = Some(value..after);
        }
        match bytes.get(after) {
            Some(b',') => at = after + 1,
            _ => break,
        }
    }
    found
}

/// The members of an object: the token of each key without its quotes, and where its value stands.
pub(super) fn members(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut at = 1;
    std::iter::from_fn(move || {
        if bytes.first() != Some(&b'{') || bytes.get(at) != Some(&b'"') {
            return None;
        }
        let end = skip_string(bytes, at)?;
        let name = text.get(at + 1..end - 1)?;
        let value = end + 1;
        let after = skip_value(bytes, value)?;
        at = match bytes.get(after) {
            Some(b',') => after + 1,
            _ => bytes.len(),
        };
        Some((name, value..after))
    })
}

fn is_escaped(token: &str, key: &str) -> bool {
    super::parse(token).is_ok_and(|value| value.is_str(key))
}

/// The place after a string that starts here.
fn skip_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at = plain_until(bytes, at);
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The place after a value that starts here.
fn skip_value(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = start;
    loop {
        match bytes.get(at) {
            Some(b'"') => at = skip_string(bytes, at)?,
            Some(b'{' | b'[') => {
                depth += 1;
                at += 1;
                continue;
            }
            Some(b'}' | b']') if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            Some(b',' | b':') if depth > 0 => {
                at += 1;
                continue;
            }
            Some(b',' | b'}' | b']') | None => return (at > start).then_some(at),
            Some(_) => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}
