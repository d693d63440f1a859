//! A small JSON reader that keeps tokens and positions as in the source.
//!
//! It is deliberately separate from the parser in the model crate, which is under test. It does not
//! interpret numbers and accepts unpaired surrogates in escapes, because the comparison handles
//! both.

/// Deeper documents are refused, because the stack of a test thread is limited.
const MAX_DEPTH: usize = 1024;

/// A value and its position: `text[start..end]` is its source.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: Kind<'a>,
}

#[derive(Debug)]
pub(crate) enum Kind<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    /// The token, quotes included.
    String(&'a str),
    Array(Vec<Node<'a>>),
    Object(Vec<Member<'a>>),
}

#[derive(Debug)]
pub(crate) struct Member<'a> {
    /// The token, quotes included.
    pub(crate) key: &'a str,
    pub(crate) value: Node<'a>,
}

/// Reads one document, with whitespace around it.
pub(crate) fn read(text: &str) -> Result<Node<'_>, String> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_whitespace();
    let node = reader.value(0)?;
    reader.skip_whitespace();
    if reader.at == text.len() {
        Ok(node)
    } else {
        Err(reader.expected("the end of the document"))
    }
}

/// The value of a string token as UTF-16, which can represent unpaired surrogates.
pub(crate) fn string_units(token: &str) -> Vec<u16> {
    let mut units = Vec::with_capacity(token.len());
    let mut chars = token[1..token.len() - 1].chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
            continue;
        }
        // The reader has checked the escapes of every token.
        match chars.next() {
            Some('n') => units.push(0x0a),
            Some('t') => units.push(0x09),
            Some('r') => units.push(0x0d),
            Some('b') => units.push(0x08),
            Some('f') => units.push(0x0c),
            Some('u') => {
                let digits = chars
                    .by_ref()
                    .take(4)
                    .filter_map(|digit| digit.to_digit(16));
                units.push(digits.fold(0, |unit, digit| unit << 4 | digit as u16));
            }
            Some(other) => units.extend_from_slice(other.encode_utf16(&mut [0; 2])),
            None => {}
        }
    }
    units
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Node<'a>, String> {
        if depth > MAX_DEPTH {
            return Err(format!(
                "nested deeper than {MAX_DEPTH} at byte {}",
                self.at
            ));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.members(depth)?),
            Some(b'[') => Kind::Array(self.elements(depth)?),
            Some(b'"') => Kind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Kind::Number(self.number()?),
            Some(b'n') => self.word("null", Kind::Null)?,
            Some(b't') => self.word("true", Kind::Bool(true))?,
            Some(b'f') => self.word("false", Kind::Bool(false))?,
            _ => return Err(self.expected("a value")),
        };
        Ok(Node {
            start,
            end: self.at,
            kind,
        })
    }

    fn members(&mut self, depth: usize) -> Result<Vec<Member<'a>>, String> {
        self.at += 1;
        self.skip_whitespace();
        let mut members = Vec::new();
        if self.take(b'}') {
            return Ok(members);
        }
        loop {
            let key = self.string()?;
            self.skip_whitespace();
            if !self.take(b':') {
                return Err(self.expected("a colon"));
            }
            self.skip_whitespace();
            members.push(Member {
                key,
                value: self.value(depth + 1)?,
            });
            self.skip_whitespace();
            if self.take(b'}') {
                return Ok(members);
            }
            if !self.take(b',') {
                return Err(self.expected("a comma or a closing brace"));
            }
            self.skip_whitespace();
        }
    }

    fn elements(&mut self, depth: usize) -> Result<Vec<Node<'a>>, String> {
        self.at += 1;
        self.skip_whitespace();
        let mut elements = Vec::new();
        if self.take(b']') {
            return Ok(elements);
        }
        loop {
            elements.push(self.value(depth + 1)?);
            self.skip_whitespace();
            if self.take(b']') {
                return Ok(elements);
            }
            if !self.take(b',') {
                return Err(self.expected("a comma or a closing bracket"));
            }
            self.skip_whitespace();
        }
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let start = self.at;
        if !self.take(b'"') {
            return Err(self.expected("a string"));
        }
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at]);
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.at += 1;
                        }
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    return Err(self.expected("four hexadecimal digits"));
                                }
                                self.at += 1;
                            }
                        }
                        _ => return Err(self.expected("an escape")),
                    }
                }
                None | Some(0..0x20) => return Err(self.expected("the rest of a string")),
                Some(_) => self.at += 1,
            }
        }
    }

    fn number(&mut self) -> Result<&'a str, String> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> Result<(), String> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.expected("a digit"))
        } else {
            Ok(())
        }
    }

    fn word(&mut self, word: &str, kind: Kind<'a>) -> Result<Kind<'a>, String> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(kind)
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expected(&self, what: &str) -> String {
        match self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
        {
            Some(found) => format!("expected {what} at byte {}, found {found:?}", self.at),
            None => format!("expected {what} at byte {}, found the end", self.at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, read, string_units};

    #[test]
    fn what_rfc_8259_allows_is_read_and_nothing_else() {
        for good in [
            "null",
            " true ",
            "\t[\r\n]",
            "{}",
            "-0",
            "0.5e+7",
            "1E400",
            r#""\ud800""#,
            "[1,[2,{\"a\":[]}]]",
            "\"\u{2028}é😀\u{7f}\"",
            r#"{"a":1,"a":2}"#,
        ] {
            assert!(read(good).is_ok(), "{good}: {:?}", read(good));
        }
        for bad in [
            "",
            " ",
            "nul",
            "truex",
            "[1,]",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "\"",
            "\"\n\"",
            r#""\x""#,
            r#""\u12g4""#,
            "[1 2]",
            "{} {}",
            "\u{feff}1",
            "\u{a0}1",
            "[",
            "{",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn positions_are_those_of_the_source() {
        let text = r#" {"a" : [1, "b"] } "#;
        let node = read(text).unwrap();
        assert_eq!(&text[node.start..node.end], r#"{"a" : [1, "b"] }"#);
        let Kind::Object(members) = node.kind else {
            panic!("not an object")
        };
        assert_eq!(members[0].key, "\"a\"");
        assert_eq!(
            &text[members[0].value.start..members[0].value.end],
            r#"[1, "b"]"#
        );
    }

    #[test]
    fn escapes_mean_what_they_stand_for() {
        let expected: Vec<u16> = "a\n\"/\u{e9}😀".encode_utf16().collect();
        assert_eq!(string_units(r#""a\n\"\/\u00E9\uD83D\ude00""#), expected);
        assert_eq!(string_units(r#""\uDC00x""#), [0xdc00, u16::from(b'x')]);
    }

    #[test]
    fn depth_is_bounded() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(read(&deep(1000)).is_ok());
        assert!(
            read(&deep(5000))
                .unwrap_err()
                .starts_with("nested deeper than 1024")
        );
    }
}
