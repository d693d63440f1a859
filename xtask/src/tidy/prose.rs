//! Words that hide who does what, in comments and documents.
//!
//! "What is found is written" leaves a reader to guess; "the writer thread writes it" does not. A sentence names
//! the client, the request task, the writer thread, the sweeper.

use super::Violation;
use super::code::comments;
use super::files::Source;
use super::known::Excess;

/// Spelled in two pieces, for this file is checked too.
const WORDS: &[(&str, &str)] = &[
    ("who", "ever"),
    ("whom", "ever"),
    ("some", "body"),
    ("no", "body"),
    ("any", "body"),
    ("every", "body"),
];

/// Documents that are checked whole, beside those in `docs/`.
const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Only what is not released yet is checked: released text stays as it was.
const CHANGES: &str = "CHANGELOG.md";

pub(super) fn check(source: &Source) -> Option<Excess> {
    let lines = prose(source);
    let mut found = lines.iter().filter_map(|(number, line)| {
        let word = unclear(line)?;
        Some((*number, word))
    });
    let (line, word) = found.next()?;
    let count = 1 + found.count();
    let more = match count {
        1 => String::new(),
        _ => format!(", the first of {count} lines with such a word"),
    };
    Some(Excess {
        rule: "words",
        subject: source.path.clone(),
        count,
        violation: Violation::new(
            &source.path,
            line,
            format!("\"{word}\" says nothing of who does it{more}"),
            "name the actor: the client, the request task, the writer thread",
        ),
    })
}

/// The lines that people read: comments of code, text of documents.
fn prose(source: &Source) -> Vec<(usize, &str)> {
    if source.path.ends_with(".rs") {
        return comments(&source.text);
    }
    let is_document = DOCUMENTS.contains(&source.path.as_str()) || source.path.starts_with("docs/");
    let lines = source.lines().filter({
        let mut in_code = false;
        move |(_, line)| {
            let fence = line.trim_start().starts_with("```");
            in_code ^= fence;
            !in_code && !fence
        }
    });
    match source.path.as_str() {
        CHANGES => {
            // The first section after the title is what comes next.
            let mut sections = 0;
            lines
                .take_while(|(_, line)| {
                    sections += usize::from(line.starts_with("## "));
                    sections < 2
                })
                .collect()
        }
        path if is_document && path.ends_with(".md") => lines.collect(),
        _ => Vec::new(),
    }
}

/// The first word of a line that is on the list.
fn unclear(line: &str) -> Option<String> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words
        .map(str::to_ascii_lowercase)
        .find(|word| WORDS.iter().any(|(a, b)| word.strip_prefix(a) == Some(b)))
}

#[cfg(test)]
mod tests {
    use super::{Source, check};

    fn found(path: &str, text: &str) -> Option<(usize, usize)> {
        let text = text.replace("NB", concat!("no", "body"));
        check(&Source::new(path, text)).map(|excess| (excess.violation.line, excess.count))
    }

    #[test]
    fn comments_are_checked_and_code_is_not() {
        let path = "crates/a/src/lib.rs";
        assert_eq!(
            found(path, "fn a() {}\n/// NB waits.\n// and NB's turn\n"),
            Some((2, 2))
        );
        assert_eq!(found(path, "/* NB\n knows */\n"), Some((1, 1)));
        assert_eq!(found(path, "fn NB() { \"NB\" }\n// NB_waits\n"), None);
    }

    #[test]
    fn documents_are_checked_outside_of_code() {
        let text = "NB\n```\nNB\n```\nNB\n";
        assert_eq!(found("docs/server.md", text), Some((1, 2)));
        assert_eq!(found("README.md", text), Some((1, 2)));
        assert_eq!(found("crates/a/notes.md", text), None);
    }

    #[test]
    fn released_changes_stay_as_they_are() {
        let text = "# Changes\n\n## Unreleased\nNB\n\n## 0.1\nNB\n";
        assert_eq!(found("CHANGELOG.md", text), Some((4, 1)));
    }
}
