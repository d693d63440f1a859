//! How long a file and a function may be.

use super::Violation;
use super::code::{line_at, words};
use super::files::Source;
use super::known::Excess;

/// At this many lines a file is split before anything is added.
const FILE: usize = 800;

/// A function with more lines has parts that can be named.
const FUNCTION: usize = 100;

/// Folders whose files may be longer: tests do not count.
const MAY_BE_LONG: &[&str] = &["tests", "benches", "fixtures"];

/// `code` is the file with its comments and literals blanked out.
pub(super) fn check(source: &Source, code: &str) -> Vec<Excess> {
    let mut parts = source.path.split('/');
    if source.path.ends_with("/tests.rs") || parts.any(|part| MAY_BE_LONG.contains(&part)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let lines = source.text.lines().count();
    if lines > FILE {
        found.push(Excess {
            rule: "file-length",
            subject: source.path.clone(),
            count: lines,
            violation: Violation::new(
                &source.path,
                FILE + 1,
                format!("the file has {lines} lines"),
                format!("split it: {FILE} is the most, and one operation one file is the aim"),
            ),
        });
    }
    for (name, line, lines) in functions(code) {
        if lines > FUNCTION {
            found.push(Excess {
                rule: "function-length",
                subject: format!("{} {name}", source.path),
                count: lines,
                violation: Violation::new(
                    &source.path,
                    line,
                    format!("the function {name} has {lines} lines"),
                    format!("split it into parts with names: {FUNCTION} lines are the most"),
                ),
            });
        }
    }
    found
}

/// Every function with a body: its name, its first line, and how many lines it has. Two functions of one name
/// count as the longer one.
fn functions(code: &str) -> Vec<(&str, usize, usize)> {
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    let mut words = words(code).peekable();
    while let Some((at, word)) = words.next() {
        let Some((start, name)) = words.peek().copied().filter(|_| word == "fn") else {
            continue;
        };
        // A type such as `fn(u8)` has no name.
        if !code[at + 2..start]
            .bytes()
            .all(|byte| byte.is_ascii_whitespace())
        {
            continue;
        }
        let Some(end) = body_end(code, start) else {
            continue;
        };
        let line = line_at(code, at);
        let lines = line_at(code, end) - line + 1;
        match found.iter_mut().find(|(known, _, _)| *known == name) {
            Some(known) if known.2 < lines => (known.1, known.2) = (line, lines),
            Some(_) => {}
            None => found.push((name, line, lines)),
        }
    }
    found
}

/// Where the body of the function whose name is at `start` ends; none if it has no body.
fn body_end(code: &str, start: usize) -> Option<usize> {
    let mut brackets = 0_i32;
    let mut braces = 0_i32;
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if brackets == 0 && braces == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 && brackets == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Source, check, functions};
    use crate::tidy::code::without_text;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(path, text);
        check(&source, &without_text(text))
            .iter()
            .map(|excess| {
                format!(
                    "{} {}: {}",
                    excess.violation.line, excess.count, excess.subject
                )
            })
            .collect()
    }

    #[test]
    fn long_files_are_split_unless_they_are_tests() {
        let long = "//\n".repeat(801);
        assert_eq!(
            complaints("crates/a/src/lib.rs", &long),
            ["801 801: crates/a/src/lib.rs"]
        );
        assert_eq!(
            complaints("crates/a/src/lib.rs", &"//\n".repeat(800)),
            [""; 0]
        );
        for exempt in [
            "crates/a/tests/all.rs",
            "crates/a/src/json/tests.rs",
            "crates/a/benches/b.rs",
        ] {
            assert_eq!(complaints(exempt, &long), [""; 0]);
        }
    }

    #[test]
    fn long_functions_are_found() {
        let body = "    x();\n".repeat(98);
        let fine = format!("fn a() {{\n{body}}}\n");
        assert_eq!(complaints("crates/a/src/lib.rs", &fine), [""; 0]);
        let long = format!("impl A {{\n    fn b(&self) -> [u8; 2] {{\n{body}x();\n    }}\n}}\n");
        assert_eq!(
            complaints("crates/a/src/lib.rs", &long),
            ["2 101: crates/a/src/lib.rs b"]
        );
        assert_eq!(complaints("crates/a/tests/it.rs", &long), [""; 0]);
    }

    #[test]
    fn a_function_ends_with_its_body() {
        let code = "trait T {\n fn a(&self, x: [u8; 4]);\n fn b() where Self: Sized {\n }\n}\ntype F = fn(u8) -> u8;\nfn c(f: fn()) {\n if x { y } else { z }\n}\n";
        assert_eq!(functions(code), [("b", 3, 2), ("c", 7, 3)]);
    }
}
