//! On which line of a file a name stands.

use super::scan::{Found, Kind};

/// Tells the lines of names of one text, asked for in the order of the text.
pub(super) struct LineCounter<'a> {
    text: &'a str,
    /// Up to where line breaks were counted, and how many there were.
    counted: (usize, u32),
}

impl<'a> LineCounter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            counted: (0, 0),
        }
    }

    /// The line of a definition, and of a path that is followed by a number; 0 for other names. The
    /// second part tells whether the text itself has the number.
    pub(super) fn line_of(&mut self, found: &Found<'a>) -> (u32, bool) {
        let start = found.shown.as_ptr() as usize;
        let Some(place) = start.checked_sub(self.text.as_ptr() as usize) else {
            return (0, false);
        };
        if place > self.text.len() {
            return (0, false);
        }
        if matches!(found.kind, Kind::Path | Kind::File) {
            let after = self
                .text
                .get(place + found.shown.len()..)
                .unwrap_or_default();
            let number = after.strip_prefix(':').and_then(leading_number);
            return (number.map_or(0, |(number, _)| number), true);
        }
        if !found.defined {
            return (0, false);
        }
        let begins = self.text[..place].rfind('\n').map_or(0, |at| at + 1);
        if let Some(number) = written_number(&self.text[begins..place]) {
            return (number, true);
        }
        let (from, lines) = self.counted;
        let new = self.text.as_bytes().get(from..begins).unwrap_or_default();
        let new = new.iter().filter(|byte| **byte == b'\n').count();
        let lines = lines.saturating_add(u32::try_from(new).unwrap_or(u32::MAX));
        self.counted = (begins.max(from), lines);
        (lines.saturating_add(1), false)
    }
}

/// The number with which tools begin a line: `12→code`, `12:code`, `path:12:code`.
fn written_number(line: &str) -> Option<u32> {
    if let Some((number, rest)) = leading_number(line.trim_start()) {
        let numbered = rest.starts_with(['→', '\t', ':', '|']) || rest.starts_with("- ");
        return numbered.then_some(number);
    }
    let (path, rest) = line.split_once(':')?;
    if path.is_empty() || path.contains(char::is_whitespace) {
        return None;
    }
    let (number, rest) = leading_number(rest)?;
    rest.starts_with(':').then_some(number)
}

/// The number that a text begins with, and what follows.
fn leading_number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=7).contains(&digits) {
        return None;
    }
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::{LineCounter, written_number};
    use crate::names::scan;

    #[test]
    fn numbers_that_tools_write_are_read() {
        for (line, number) in [
            ("    12→func ", Some(12)),
            ("12\tfunc ", Some(12)),
            ("7: func ", Some(7)),
            ("src/a.go:12:func ", Some(12)),
            ("func ", None),
            ("12 func ", None),
            ("a word: 12: func ", None),
            ("99999999: func ", None),
        ] {
            assert_eq!(written_number(line), number, "{line}");
        }
    }

    #[test]
    fn lines_of_definitions_are_counted_and_paths_have_theirs_behind_them() {
        let text =
            "use x;\n\nfn one_thing() {}\nstruct OtherThing;\nat src/a.rs:44:5 and src/b.rs\n";
        let mut counter = LineCounter::new(text);
        let mut seen = Vec::new();
        scan(text, |found| {
            let line = counter.line_of(&found);
            seen.push((found.shown.to_owned(), line));
        });
        let expected = [
            ("one_thing", (3, false)),
            ("OtherThing", (4, false)),
            ("src/a.rs", (44, true)),
            ("src/b.rs", (0, true)),
        ];
        let expected = expected.map(|(name, line)| (name.to_owned(), line));
        assert_eq!(seen, expected);
    }
}
