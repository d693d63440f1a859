//! Just enough of Rust's grammar to tell code from comments and literals.

/// The code with every comment, string and character literal blanked out. Lines keep their numbers.
pub(super) fn without_text(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = at + text_length(bytes, at);
        if end > at {
            out.extend(
                source[at..end]
                    .chars()
                    .map(|c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
            continue;
        }
        // Words are taken whole, so that the r of `for"…"` does not pass for a raw string.
        let word = bytes[at..]
            .iter()
            .take_while(|byte| is_word(**byte))
            .count();
        let length = if word > 0 {
            word
        } else {
            source[at..].chars().next().map_or(1, char::len_utf8)
        };
        out.push_str(&source[at..at + length]);
        at += length;
    }
    out
}

/// The lines of the comments, with their numbers.
pub(super) fn comments(source: &str) -> Vec<(usize, &str)> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let text = text_length(bytes, at);
        let word = bytes[at..]
            .iter()
            .take_while(|byte| is_word(**byte))
            .count();
        let end = at
            + [text, word, 1]
                .into_iter()
                .find(|length| *length > 0)
                .unwrap_or(1);
        let is_comment = text > 0 && matches!(bytes[at..], [b'/', b'/' | b'*', ..]);
        if is_comment {
            let lines = source[at..end].lines().enumerate();
            found.extend(lines.map(|(index, text)| (line + index, text)));
        }
        line += bytes[at..end].iter().filter(|byte| **byte == b'\n').count();
        at = end;
    }
    found
}

/// The words of blanked code with the offsets they start at.
pub(super) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &code.as_bytes()[at..];
        let start = at + rest.iter().position(|byte| is_word(*byte))?;
        let length = code.as_bytes()[start..]
            .iter()
            .take_while(|byte| is_word(**byte))
            .count();
        at = start + length;
        Some((start, &code[start..at]))
    })
}

/// The attributes of blanked code, brackets excluded, with the offsets they start at.
pub(super) fn attributes(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices('#').filter_map(|(hash, _)| {
        let rest = code[hash + 1..]
            .strip_prefix('!')
            .unwrap_or(&code[hash + 1..]);
        let body = rest.strip_prefix('[')?;
        let mut depth = 1;
        let end = body.find(|c| {
            depth += match c {
                '[' => 1,
                ']' => -1,
                _ => 0,
            };
            depth == 0
        })?;
        Some((hash, &body[..end]))
    })
}

/// The line an offset lies on, counted from 1.
pub(super) fn line_at(code: &str, offset: usize) -> usize {
    1 + code.as_bytes()[..offset]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of the comment or literal that starts at `at`; zero when none does.
fn text_length(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest, b'"'),
        [b'\'', ..] => character(rest),
        [b'b', b'\'', ..] => 1 + character(&rest[1..]),
        [b'b' | b'c', b'"', ..] => 1 + quoted(&rest[1..], b'"'),
        [b'r', b'"' | b'#', ..] => raw(rest, 1),
        [b'b' | b'c', b'r', b'"' | b'#', ..] => raw(rest, 2),
        _ => 0,
    }
}

fn block_comment(bytes: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A character literal; zero for a lifetime.
fn character(bytes: &[u8]) -> usize {
    match bytes {
        [_, b'\\', ..] => quoted(bytes, b'\''),
        [_, first, ..] => {
            let width = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            if bytes.get(1 + width) == Some(&b'\'') {
                width + 2
            } else {
                0
            }
        }
        _ => 0,
    }
}

/// A raw string after a prefix of `prefix` bytes; zero for a raw identifier.
fn raw(bytes: &[u8], prefix: usize) -> usize {
    let hashes = bytes[prefix..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let start = prefix + hashes;
    if bytes.get(start) != Some(&b'"') {
        return 0;
    }
    let closing = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let body = &bytes[start + 1..];
    let end = body
        .windows(closing.len())
        .position(|window| window == closing);
    end.map_or(bytes.len(), |end| start + 1 + end + closing.len())
}

#[cfg(test)]
mod tests {
    use super::{attributes, comments, line_at, without_text, words};

    #[test]
    fn only_code_is_left() {
        for (source, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x\"y", 'z')"#, "f(      ,    )"),
            (r##"f(r#"a"b"#, c)"##, "f(        , c)"),
            ("f(br\"a\\\", b)", "f(      , b)"),
            ("fn f<'a>(x: &'a u8) {}", "fn f<'a>(x: &'a u8) {}"),
            (
                r"('\'', '\u{e9}', 'é', b'x')",
                "(    ,         ,    ,     )",
            ),
            ("r#type x", "r#type x"),
            ("for\"x\"", "for   "),
            ("\"two\nlines\" x", "    \n       x"),
            ("\"open", "     "),
        ] {
            assert_eq!(
                without_text(source).trim_end(),
                expected.trim_end(),
                "{source}"
            );
        }
    }

    #[test]
    fn comments_have_their_lines() {
        let source = "/// a\nfn b() { \"// é no\" } // c\n/* d\ne */ 'x'\n";
        assert_eq!(
            comments(source),
            [(1, "/// a"), (2, "// c"), (3, "/* d"), (4, "e */")]
        );
    }

    #[test]
    fn words_and_attributes_have_their_places() {
        let code = "#[a(b)]\n#![c]\nfn d_1() { x[#e] }";
        let found: Vec<&str> = words(code).map(|(_, word)| word).collect();
        assert_eq!(found, ["a", "b", "c", "fn", "d_1", "x", "e"]);
        assert_eq!(
            attributes(code).collect::<Vec<_>>(),
            [(0, "a(b)"), (8, "c")]
        );
        assert_eq!(
            (line_at(code, 0), line_at(code, 8), line_at(code, 20)),
            (1, 2, 3)
        );
    }
}
