//! Finds lines about errors, and exit codes.

use crate::text;

/// Bytes at the start and at the end of an output that are scanned.
const HEAD: usize = 256 * 1024;
const TAIL: usize = 128 * 1024;
/// Bytes of a line that are scanned.
const OF_LINE: usize = 400;
/// Bytes at either end of an output that are searched for an exit code.
const ENDS: usize = 400;
/// Characters that a code has at most, its sign included.
const OF_CODE: usize = 11;

/// Words that make a line one about an error, in lower case.
const STRONG: &[&str] = &[
    "error",
    "errors",
    "fail",
    "fails",
    "failed",
    "failure",
    "failures",
    "fatal",
    "panic",
    "panicked",
    "exception",
    "traceback",
    "undefined",
    "cannot",
];
/// Words that do so if there is no line with a stronger word.
const WEAK: &[&str] = &[
    "unresolved",
    "denied",
    "unable",
    "invalid",
    "refused",
    "abort",
    "aborted",
    "segfault",
    "timeout",
    "mismatch",
    "missing",
    "unexpected",
    "conflict",
    "rejected",
    "killed",
    "err",
];

/// The first distinct lines about errors, each as one line.
pub(crate) fn lines(output: &str, most: usize, length: usize) -> Vec<String> {
    let mut strong: Vec<String> = Vec::new();
    let mut weak: Vec<String> = Vec::new();
    let mut look = |part: &str| {
        for line in part.lines() {
            if strong.len() >= most {
                return;
            }
            let list = match tells(text::start(line, OF_LINE)) {
                Some(Strength::Strong) => &mut strong,
                Some(Strength::Weak) if weak.len() < most => &mut weak,
                Some(Strength::Weak) | None => continue,
            };
            let line = text::one_line(line, length);
            if !line.is_empty() && !list.contains(&line) {
                list.push(line);
            }
        }
    };
    if output.len() <= HEAD + TAIL {
        look(output);
    } else {
        look(text::start(output, HEAD));
        look(text::end(output, TAIL));
    }
    let more = most.saturating_sub(strong.len());
    strong.extend(weak.into_iter().take(more));
    strong
}

enum Strength {
    Strong,
    Weak,
}

/// Whether a line is about an error.
fn tells(line: &str) -> Option<Strength> {
    if line.contains("not found") || line.contains("No such file") || line.contains("***") {
        return Some(Strength::Strong);
    }
    let mut weak = false;
    let mut next = 0;
    for word in line.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        // What splits is one character, of any length.
        let start = next;
        let end = start + word.len();
        next = end + line[end..].chars().next().map_or(0, char::len_utf8);
        if word.len() < 3 || word.len() > 40 || in_path(line, start, end) {
            continue;
        }
        let is = |one: &&str| word.eq_ignore_ascii_case(one);
        if word.ends_with("Error") || word.ends_with("Exception") || STRONG.iter().any(is) {
            return Some(Strength::Strong);
        }
        weak |= WEAK.iter().any(is);
    }
    weak.then_some(Strength::Weak)
}

/// Whether a word is part of a path: a package called `errors` is no error.
fn in_path(line: &str, start: usize, end: usize) -> bool {
    let bytes = line.as_bytes();
    let before = start.checked_sub(1).and_then(|place| bytes.get(place));
    before == Some(&b'/') || bytes.get(end) == Some(&b'/')
}

/// The exit code of a command, if it stands at the start or end of the output.
pub(crate) fn exit_code(output: &str) -> Option<i64> {
    let head = text::start(output, ENDS).len();
    // A code that is cut in two would be another code.
    let digits = output[head..].bytes().take_while(u8::is_ascii_digit);
    let head = &output[..head + digits.take(OF_CODE).count()];
    let ends = [head, text::end(output, ENDS)];
    ends.into_iter().find_map(code_in)
}

const MARKS: &[&str] = &[
    "exit code",
    "exit_code",
    "exit status",
    "exited with code",
    "exitcode",
    "returncode",
    "return code",
    "exited with",
    "status code",
];

fn code_in(text: &str) -> Option<i64> {
    let lower = text.to_ascii_lowercase();
    for mark in MARKS {
        for (place, _) in lower.match_indices(mark) {
            let rest = lower[place + mark.len()..]
                .trim_start_matches([':', '"', '=', ' ', '\'', '(', '*', '`']);
            let digits: String = rest
                .chars()
                .take(OF_CODE)
                .take_while(|letter| letter.is_ascii_digit() || *letter == '-')
                .collect();
            if let Ok(code) = digits.parse() {
                return Some(code);
            }
        }
    }
    None
}

/// Whether an output without a code looks like that of a command that failed.
pub(crate) fn looks_failed(output: &str) -> bool {
    const STARTS: &[&str] = &[
        "FAIL",
        "fatal:",
        "panic:",
        "Traceback (most",
        "error:",
        "error[",
        "Error:",
        "make: ***",
        "npm ERR!",
        "--- FAIL",
        "bash: ",
        "sh: ",
        "zsh: ",
    ];
    let failed = |part: &str| {
        part.lines()
            .take(4_000)
            .any(|line| STARTS.iter().any(|start| line.starts_with(start)))
    };
    if output.len() <= 64 * 1024 {
        return failed(output);
    }
    failed(text::start(output, 32 * 1024)) || failed(text::end(output, 32 * 1024))
}

#[cfg(test)]
mod tests {
    use super::{exit_code, lines};

    #[test]
    fn codes_are_found_however_they_are_said() {
        for (output, code) in [
            ("Exit code 2\nboom", Some(2)),
            (r#"{"output":"x","metadata":{"exit_code":127}}"#, Some(127)),
            ("…\nProcess exited with code 0", Some(0)),
            ("exit status 1", Some(1)),
            ("nothing of the kind", None),
        ] {
            assert_eq!(exit_code(output), code, "{output}");
        }
    }

    #[test]
    fn a_code_at_the_edge_of_what_is_looked_at_is_read_whole() {
        for before in 380..410 {
            let output = format!("{} Process exited with code 232\nbye", "x".repeat(before));
            assert_eq!(exit_code(&output), Some(232), "{before}");
        }
        assert_eq!(exit_code("exit code -1073741819"), Some(-1_073_741_819));
    }

    #[test]
    fn lines_about_errors_are_distinct_and_verbatim() {
        let output = "ok\nsrc/a.rs:3: error: no such field\nfine\nsrc/a.rs:3: error: no such field\nTypeError: x\n";
        assert_eq!(
            lines(output, 3, 160),
            ["src/a.rs:3: error: no such field", "TypeError: x"]
        );
        assert_eq!(lines("mirrors and terrors", 3, 160), [""; 0]);
    }
}
