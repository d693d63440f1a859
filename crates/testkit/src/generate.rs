//! Random JSON, as text.
//!
//! Texts rather than values, because much of what can go wrong is in the spelling: odd whitespace, escapes,
//! numbers no float can hold, keys that occur twice.

use crate::Rng;

/// What a generated document may contain.
///
/// ```
/// use throughline_testkit::{Rng, generate::Json};
///
/// let text = Json { lone_surrogates: true, ..Json::default() }.document(&mut Rng::new(1), 20);
/// assert!(!text.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json {
    /// How many arrays and objects may lie within each other.
    pub depth: usize,
    /// Whether whitespace stands between tokens, in all four kinds and in odd places.
    pub whitespace: bool,
    /// Whether a key may occur more than once in an object.
    pub duplicate_keys: bool,
    /// Whether `\ud800` and the like may stand alone; they are valid JSON and no Unicode text.
    pub lone_surrogates: bool,
    /// Whether numbers may be larger or finer than any machine number.
    pub big_numbers: bool,
}

impl Default for Json {
    /// Everything that every reader must accept: whitespace and big numbers, no repeated keys, no lone
    /// surrogates, eight levels.
    fn default() -> Self {
        Self {
            depth: 8,
            whitespace: true,
            duplicate_keys: false,
            lone_surrogates: false,
            big_numbers: true,
        }
    }
}

impl Json {
    /// A document of about `size` values, of any kind at the top.
    pub fn document(&self, rng: &mut Rng, size: usize) -> String {
        self.write(rng, size, |writer| writer.value(0))
    }

    /// A document of about `size` values with an object at the top.
    pub fn object(&self, rng: &mut Rng, size: usize) -> String {
        self.write(rng, size, |writer| writer.object(0))
    }

    /// One string token, quotes included.
    pub fn string(&self, rng: &mut Rng) -> String {
        let mut out = String::new();
        string_token(rng, self.lone_surrogates, &mut out);
        out
    }

    /// One number token.
    pub fn number(&self, rng: &mut Rng) -> String {
        number_token(rng, self.big_numbers)
    }

    fn write(&self, rng: &mut Rng, size: usize, top: impl FnOnce(&mut Writer<'_>)) -> String {
        let mut writer = Writer {
            json: self,
            rng,
            left: size.max(1),
            out: String::new(),
        };
        writer.space();
        top(&mut writer);
        writer.space();
        writer.out
    }
}

/// Random Unicode text of `len` characters: mostly plain, with the characters that trip readers in between.
pub fn text(rng: &mut Rng, len: usize) -> String {
    (0..len).map(|_| character(rng)).collect()
}

struct Writer<'a> {
    json: &'a Json,
    rng: &'a mut Rng,
    left: usize,
    out: String,
}

impl Writer<'_> {
    fn value(&mut self, depth: usize) {
        self.left = self.left.saturating_sub(1);
        let nest = depth < self.json.depth && (self.left > 0 || self.rng.chance(0.1));
        match self.rng.below(if nest { 12 } else { 5 }) {
            0 => self
                .out
                .push_str(self.rng.pick::<&str>(&["null", "true", "false"])),
            1 | 2 => string_token(self.rng, self.json.lone_surrogates, &mut self.out),
            3 | 4 => {
                let number = number_token(self.rng, self.json.big_numbers);
                self.out.push_str(&number);
            }
            5..=8 => self.object(depth),
            _ => self.array(depth),
        }
    }

    fn array(&mut self, depth: usize) {
        self.out.push('[');
        self.space();
        for index in 0..self.width() {
            if index > 0 {
                self.out.push(',');
                self.space();
            }
            self.value(depth + 1);
            self.space();
        }
        self.out.push(']');
    }

    fn object(&mut self, depth: usize) {
        let width = self.width();
        let mut keys: Vec<String> = Vec::with_capacity(width);
        for index in 0..width {
            let key = match self.rng.below(10) {
                0 if self.json.duplicate_keys && !keys.is_empty() => self.rng.pick(&keys).clone(),
                // The running number keeps keys apart whatever the text before it.
                1 => {
                    let mut key = String::new();
                    string_token(self.rng, self.json.lone_surrogates, &mut key);
                    key.pop();
                    format!("{key}_{index}\"")
                }
                2 if !keys.iter().any(|key| key == "\"\"") => "\"\"".to_owned(),
                _ => format!(
                    "\"{}_{index}\"",
                    self.rng.pick(&["type", "id", "text", "a", "näme", "data"])
                ),
            };
            keys.push(key);
        }
        self.out.push('{');
        self.space();
        for (index, key) in keys.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
                self.space();
            }
            self.out.push_str(key);
            self.space();
            self.out.push(':');
            self.space();
            self.value(depth + 1);
            self.space();
        }
        self.out.push('}');
    }

    fn width(&mut self) -> usize {
        let most = self.left.min(8);
        self.rng.range(0..=most)
    }

    fn space(&mut self) {
        if !self.json.whitespace || !self.rng.chance(0.2) {
            return;
        }
        for _ in 0..self.rng.range(1..=3) {
            self.out.push(*self.rng.pick(&[' ', ' ', '\n', '\t', '\r']));
        }
    }
}

fn string_token(rng: &mut Rng, lone_surrogates: bool, out: &mut String) {
    out.push('"');
    let len = if rng.chance(0.05) {
        rng.range(50..=300)
    } else {
        rng.range(0..=12)
    };
    for _ in 0..len {
        match rng.below(12) {
            0 => out.push_str(
                rng.pick::<&str>(&[r"\n", r"\t", r"\r", r"\b", r"\f", r#"\""#, r"\\", r"\/"]),
            ),
            1 => escape(character(rng), rng, out),
            2 if lone_surrogates => {
                let surrogate = 0xd800 + rng.below(0x800) as u16;
                // A high one directly followed by a low one would be a pair after all.
                push_unit(surrogate, rng, out);
                out.push('.');
            }
            _ => match character(rng) {
                c @ ('"' | '\\' | '\0'..='\x1f') => escape(c, rng, out),
                c => out.push(c),
            },
        }
    }
    out.push('"');
}

/// Spells any character as one `\u` escape, or as two when it needs a surrogate pair.
fn escape(c: char, rng: &mut Rng, out: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        push_unit(*unit, rng, out);
    }
}

fn push_unit(unit: u16, rng: &mut Rng, out: &mut String) {
    let digits = if rng.bool() {
        format!(r"\u{unit:04x}")
    } else {
        format!(r"\u{unit:04X}")
    };
    out.push_str(&digits);
}

fn character(rng: &mut Rng) -> char {
    match rng.below(20) {
        0 => *rng.pick(&[
            '"', '\\', '/', '\u{7f}', '\u{85}', '\u{a0}', '\u{2028}', '\u{2029}', '\u{feff}',
            '\u{fffd}',
        ]),
        1 => *rng.pick(&[
            'é',
            'ß',
            '中',
            '文',
            '😀',
            '👩',
            '\u{200d}',
            '\u{301}',
            '\u{10ffff}',
            '\u{e000}',
        ]),
        2 => char::from(rng.below(0x20) as u8),
        3 => char::from_u32(rng.below(0x11_0000) as u32).unwrap_or('\u{d7ff}'),
        _ => char::from(b' ' + rng.below(95) as u8),
    }
}

fn number_token(rng: &mut Rng, big: bool) -> String {
    let mut token = String::new();
    if rng.chance(0.3) {
        token.push('-');
    }
    let digits = match rng.below(10) {
        0 => 0,
        1 if big => rng.range(16..=40),
        _ => rng.range(1..=9),
    };
    if digits == 0 {
        token.push('0');
    } else {
        token.push(char::from(b'1' + rng.below(9) as u8));
        push_digits(rng, digits - 1, &mut token);
    }
    if rng.chance(0.3) {
        token.push('.');
        let fine = if big && rng.chance(0.2) { 30 } else { 5 };
        let count = rng.range(1..=fine);
        push_digits(rng, count, &mut token);
    }
    if rng.chance(0.2) {
        token.push_str(rng.pick::<&str>(&["e", "E"]));
        token.push_str(rng.pick::<&str>(&["", "+", "-"]));
        let exponent = if big { rng.below(400) } else { rng.below(10) };
        token.push_str(&exponent.to_string());
    }
    if big && rng.chance(0.05) {
        // The edges where readers that go through a machine number begin to differ.
        token = (*rng.pick(&[
            "9007199254740993",
            "18446744073709551616",
            "-9223372036854775809",
            "9223372036854775807",
            "1e400",
            "-0",
            "-0.0",
            "1E-400",
            "0.1e1",
            "1.0",
            "100000000000000000000000000000000",
        ]))
        .to_owned();
    }
    token
}

fn push_digits(rng: &mut Rng, count: usize, out: &mut String) {
    for _ in 0..count {
        out.push(char::from(b'0' + rng.below(10) as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, text};
    use crate::reader::{Kind, Node, read, string_units};
    use crate::{Rng, property};

    fn walk<'n, 'a>(node: &'n Node<'a>, visit: &mut impl FnMut(&'n Node<'a>, usize), depth: usize) {
        visit(node, depth);
        match &node.kind {
            Kind::Array(elements) => elements
                .iter()
                .for_each(|element| walk(element, visit, depth + 1)),
            Kind::Object(members) => members
                .iter()
                .for_each(|member| walk(&member.value, visit, depth + 1)),
            _ => {}
        }
    }

    #[test]
    fn every_document_is_valid_and_within_its_limits() {
        let everything = Json {
            duplicate_keys: true,
            lone_surrogates: true,
            depth: 5,
            ..Json::default()
        };
        for json in [Json::default(), everything] {
            property("generated documents are valid", 500, |rng, size| {
                let text = json.document(rng, size);
                let node = read(&text).map_err(|error| format!("{error} in {text}"))?;
                let mut deepest = 0;
                walk(&node, &mut |_, depth| deepest = deepest.max(depth), 0);
                if deepest > json.depth {
                    Err(format!("depth {deepest} in {text}"))
                } else {
                    Ok(())
                }
            });
        }
    }

    #[test]
    fn switches_decide_what_occurs() {
        let mut found = [[false; 3]; 2];
        for (switched, found) in found.iter_mut().enumerate() {
            let on = switched == 1;
            let json = Json {
                duplicate_keys: on,
                lone_surrogates: on,
                whitespace: on,
                ..Json::default()
            };
            let mut rng = Rng::new(9);
            for _ in 0..300 {
                let text = json.object(&mut rng, 60);
                walk(
                    &read(&text).unwrap(),
                    &mut |node, _| match &node.kind {
                        Kind::Object(members) => {
                            let mut keys: Vec<_> =
                                members.iter().map(|m| string_units(m.key)).collect();
                            keys.sort();
                            found[0] |= keys.windows(2).any(|pair| pair[0] == pair[1]);
                        }
                        Kind::String(token) => {
                            found[1] |= String::from_utf16(&string_units(token)).is_err();
                        }
                        _ => {}
                    },
                    0,
                );
                found[2] |= text.starts_with(['\n', '\t', '\r', ' ']);
            }
        }
        assert_eq!(found, [[false; 3], [true; 3]]);
    }

    #[test]
    fn sizes_and_kinds_vary() {
        let mut rng = Rng::new(4);
        let lengths: Vec<usize> = (0..200)
            .map(|_| Json::default().document(&mut rng, 100).len())
            .collect();
        assert!(
            lengths.iter().any(|&len| len > 1000) && lengths.iter().any(|&len| len < 20),
            "{lengths:?}"
        );
        assert_eq!(text(&mut rng, 33).chars().count(), 33);
    }
}
