use super::error::JsonError;
use super::parse::{Limits, parse_with, plain_until};
use super::text::Text;
use super::value::{Node, Value};

/// What stands after the backslash in the short escape of each byte; 0 for those that have none.
static SHORT: [u8; 256] = {
    let mut table = [0; 256];
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'\n' as usize] = b'n';
    table[b'\r' as usize] = b'r';
    table[b'\t' as usize] = b't';
    table[0x08] = b'b';
    table[0x0C] = b'f';
    table
};

/// Append a string token: quotes, and the escapes that JSON demands, in their shortest form.
pub fn push_string(out: &mut String, text: &str) {
    // With room for escapes: a buffer that grows at the end is copied whole.
    out.reserve(text.len() + text.len() / 8 + 2);
    out.push('"');
    let bytes = text.as_bytes();
    let mut start = 0;
    loop {
        let place = plain_until(bytes, start);
        out.push_str(&text[start..place]);
        let Some(byte) = bytes.get(place) else { break };
        match SHORT[usize::from(*byte)] {
            0 => {
                out.push_str("\\u00");
                out.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
                out.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
            }
            // One by one: appending a string of two would be a call to copy memory. The mask
            // tells the compiler that each is one byte.
            short => {
                out.push('\\');
                out.push(char::from(short & 0x7F));
            }
        }
        start = place + 1;
    }
    out.push('"');
}

/// Append a whole number. Formatting by the standard library takes several times as long, and there
/// are a dozen in every answer.
fn push_number(out: &mut String, value: u64) {
    let mut digits = [0; 20];
    let mut place = digits.len();
    let mut left = value;
    loop {
        place -= 1;
        digits[place] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.push_str(str::from_utf8(&digits[place..]).unwrap_or_default());
}

/// Append a value without insignificant white space; every token as it was.
pub fn push_compact(out: &mut String, value: &Value<'_>) {
    push_compact_with(out, value, &[]);
}

/// Like [`push_compact`], with some values (by identity, not by equality) replaced by other text.
pub fn push_compact_with(out: &mut String, value: &Value<'_>, edits: &[(&Value<'_>, &str)]) {
    if edits.len() <= FEW_EDITS {
        let find = |value: &Value<'_>| {
            let edit = edits.iter().find(|(at, _)| std::ptr::eq(*at, value));
            edit.map(|(_, text)| *text)
        };
        return push_edited(out, value, &find);
    }
    let mut sorted: Vec<(*const Value<'_>, &str)> = edits
        .iter()
        .map(|(at, text)| (std::ptr::from_ref(*at), *text))
        .collect();
    // The first edit of a value counts, as it does in a short list.
    sorted.sort_by_key(|(at, _)| *at);
    sorted.dedup_by_key(|(at, _)| *at);
    push_edited(out, value, &|value| {
        let at = std::ptr::from_ref(value);
        let place = sorted.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        sorted.get(place).map(|(_, text)| *text)
    });
}

/// Up to this many edits are looked through one by one for every value.
const FEW_EDITS: usize = 8;

fn push_edited<'e>(
    out: &mut String,
    value: &Value<'_>,
    find: &impl Fn(&Value<'_>) -> Option<&'e str>,
) {
    if let Some(text) = find(value) {
        out.push_str(text);
        return;
    }
    match value.node() {
        Node::Array(values) => {
            out.push('[');
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                push_edited(out, value, find);
            }
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            for (place, member) in members.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                out.push('"');
                out.push_str(member.key.token());
                out.push_str("\":");
                push_edited(out, &member.value, find);
            }
            out.push('}');
        }
        Node::Null | Node::Bool(_) | Node::Number | Node::String(_) => out.push_str(value.raw()),
    }
}

/// Lay out a document with line breaks and two-space indents; every token as it was.
///
/// ```
/// use throughline_model::json;
///
/// assert_eq!(json::pretty(r#"{"a":[1.0,{}]}"#)?, "{\n  \"a\": [\n    1.0,\n    {}\n  ]\n}");
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn pretty(text: &str) -> Result<String, JsonError> {
    let value = parse_with(text, Limits::TRUSTED)?;
    let mut out = String::with_capacity(text.len() * 5 / 4);
    push_pretty(&mut out, &value, 1);
    Ok(out)
}

fn push_pretty(out: &mut String, value: &Value<'_>, level: usize) {
    let line = |out: &mut String, level: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", level));
    };
    match value.node() {
        Node::Array(values) if !values.is_empty() => {
            out.push('[');
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                line(out, level);
                push_pretty(out, value, level + 1);
            }
            line(out, level - 1);
            out.push(']');
        }
        Node::Object(members) if !members.is_empty() => {
            out.push('{');
            for (place, member) in members.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                line(out, level);
                out.push('"');
                out.push_str(member.key.token());
                out.push_str("\": ");
                push_pretty(out, &member.value, level + 1);
            }
            line(out, level - 1);
            out.push('}');
        }
        Node::Array(_) => out.push_str("[]"),
        Node::Object(_) => out.push_str("{}"),
        Node::Null | Node::Bool(_) | Node::Number | Node::String(_) => out.push_str(value.raw()),
    }
}

/// Writes the members of one object.
pub struct ObjectWriter<'o> {
    out: &'o mut String,
    first: bool,
}

impl<'o> ObjectWriter<'o> {
    /// Open an object.
    pub fn new(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, first: true }
    }

    /// Write a key and hand out the place for its value, which the caller must write.
    pub fn key(&mut self, key: &str) -> &mut String {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        push_string(self.out, key);
        self.out.push(':');
        self.out
    }

    /// The same with a key as it stood in another text.
    pub fn key_token(&mut self, key: &Text<'_>) -> &mut String {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        self.out.push('"');
        self.out.push_str(key.token());
        self.out.push_str("\":");
        self.out
    }

    /// A string member.
    pub fn str(&mut self, key: &str, text: &str) -> &mut Self {
        push_string(self.key(key), text);
        self
    }

    /// A member whose value is JSON text already.
    pub fn raw(&mut self, key: &str, json: &str) -> &mut Self {
        self.key(key).push_str(json);
        self
    }

    /// A boolean member.
    pub fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        self.raw(key, if value { "true" } else { "false" })
    }

    /// A whole number.
    pub fn number(&mut self, key: &str, value: u64) -> &mut Self {
        push_number(self.key(key), value);
        self
    }

    /// All members of another object's text, as they are.
    pub fn members_of(&mut self, object: &str) -> &mut Self {
        let inner = object.trim();
        let inner = inner.strip_prefix('{').unwrap_or(inner);
        let inner = inner.strip_suffix('}').unwrap_or(inner).trim();
        if !inner.is_empty() {
            if !self.first {
                self.out.push(',');
            }
            self.first = false;
            self.out.push_str(inner);
        }
        self
    }

    /// Close the object.
    pub fn end(self) {
        self.out.push('}');
    }
}

/// Writes the values of one array.
pub struct ArrayWriter<'o> {
    out: &'o mut String,
    first: bool,
}

impl<'o> ArrayWriter<'o> {
    /// Open an array.
    pub fn new(out: &'o mut String) -> Self {
        out.push('[');
        Self { out, first: true }
    }

    /// Hand out the place for one more value, which the caller must write.
    pub fn slot(&mut self) -> &mut String {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        self.out
    }

    /// One more value that is JSON text already.
    pub fn raw(&mut self, json: &str) -> &mut Self {
        self.slot().push_str(json);
        self
    }

    /// Close the array.
    pub fn end(self) {
        self.out.push(']');
    }
}
