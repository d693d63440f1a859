//! Known exceptions from rules with a number, which may only shrink.
//!
//! `xtask/known.txt` has a line for each: the rule, what it is about, and how much of it there may be. More is a
//! violation. Less is one too, until `cargo xtask tidy --shrink` has lowered the number; nothing raises it but an
//! edit by hand, which a review sees.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Violation;

/// The file with the exceptions.
pub(super) const FILE: &str = "xtask/known.txt";

const HEAD: &str = "\
# Exceptions from rules of `cargo xtask tidy`: rule, subject, number. They may only shrink;
# `cargo xtask tidy --shrink` lowers the numbers.
";

/// Something that a rule counted and that is over what the rule allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excess {
    pub(super) rule: &'static str,
    /// The subject, the same for as long as the exception stands: no line numbers.
    pub(super) subject: String,
    pub(super) count: usize,
    pub(super) violation: Violation,
}

/// The exceptions, by rule and subject, with their numbers and their lines in the file.
#[derive(Debug, Default)]
pub(super) struct Known {
    entries: BTreeMap<(String, String), (usize, usize)>,
}

impl Known {
    /// Reads the file; a line that cannot be read is a violation.
    pub(super) fn read(text: &str) -> (Self, Vec<Violation>) {
        let mut known = Self::default();
        let mut violations = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut fields = line.split('\t');
            let entry = (|| {
                let (rule, subject) = (fields.next()?, fields.next()?);
                let count: usize = fields.next()?.parse().ok()?;
                Some(((rule.to_owned(), subject.to_owned()), (count, index + 1)))
            })();
            match entry {
                Some((key, value)) => {
                    known.entries.insert(key, value);
                }
                None => violations.push(Violation::new(
                    FILE,
                    index + 1,
                    "the line is not a rule, a subject and a number with tabs between them",
                    "write it so",
                )),
            }
        }
        (known, violations)
    }

    /// What is over the known numbers, and the known numbers that are too high by now.
    pub(super) fn judge(&self, found: &[Excess]) -> Vec<Violation> {
        let mut violations = Vec::new();
        for excess in found {
            match self.number(excess) {
                Some(known) if excess.count <= known => {}
                Some(known) => {
                    let mut violation = excess.violation.clone();
                    let _ = write!(violation.what, " (the known exception is {known})");
                    violations.push(violation);
                }
                None => violations.push(excess.violation.clone()),
            }
        }
        for ((rule, subject), (known, line)) in &self.entries {
            let now = found
                .iter()
                .filter(|excess| excess.rule == rule && excess.subject == *subject)
                .map(|excess| excess.count)
                .sum::<usize>();
            if now < *known {
                violations.push(Violation::new(
                    FILE,
                    *line,
                    format!("{rule} {subject}: {known} are known, and {now} are left"),
                    "run `cargo xtask tidy --shrink`",
                ));
            }
        }
        violations
    }

    /// The file with the numbers of today where those are lower, without what is gone.
    pub(super) fn shrunk(&self, found: &[Excess]) -> String {
        let mut text = HEAD.to_owned();
        for ((rule, subject), (known, _)) in &self.entries {
            let now = found
                .iter()
                .filter(|excess| excess.rule == rule && excess.subject == *subject)
                .map(|excess| excess.count)
                .sum::<usize>();
            let left = now.min(*known);
            if left > 0 {
                let _ = writeln!(text, "{rule}\t{subject}\t{left}");
            }
        }
        text
    }

    fn number(&self, excess: &Excess) -> Option<usize> {
        let key = (excess.rule.to_owned(), excess.subject.clone());
        self.entries.get(&key).map(|(known, _)| *known)
    }
}

#[cfg(test)]
mod tests {
    use super::{Excess, Known, Violation};

    fn excess(subject: &str, count: usize) -> Excess {
        Excess {
            rule: "names",
            subject: subject.to_owned(),
            count,
            violation: Violation::new("a.rs", 1, format!("{count} of {subject}"), "rename them"),
        }
    }

    fn complaints(known: &str, found: &[Excess]) -> Vec<String> {
        let (known, wrong) = Known::read(known);
        assert_eq!(wrong, []);
        known.judge(found).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_known_passes_and_may_not_grow() {
        let known = "# words\n\nnames\tState\t4\n";
        assert_eq!(complaints(known, &[excess("State", 4)]), [""; 0]);
        assert_eq!(
            complaints(known, &[excess("State", 5)]),
            ["a.rs:1: 5 of State (the known exception is 4); rename them"]
        );
        assert_eq!(
            complaints(known, &[excess("State", 4), excess("Step", 3)]),
            ["a.rs:1: 3 of Step; rename them"]
        );
    }

    #[test]
    fn a_number_is_lowered_when_less_is_left() {
        let text = "names\tState\t4\nnames\tStep\t3\n";
        let found = [excess("State", 3)];
        assert_eq!(
            complaints(text, &found),
            [
                "xtask/known.txt:1: names State: 4 are known, and 3 are left; run `cargo xtask tidy --shrink`",
                "xtask/known.txt:2: names Step: 3 are known, and 0 are left; run `cargo xtask tidy --shrink`",
            ]
        );
        let (known, _) = Known::read(text);
        let shrunk = known.shrunk(&found);
        assert!(shrunk.ends_with("\nnames\tState\t3\n"), "{shrunk}");
        assert_eq!(complaints(&shrunk, &found), [""; 0]);
        // Growth is never taken over.
        assert_eq!(
            known
                .shrunk(&[excess("State", 9), excess("Step", 3)])
                .lines()
                .last(),
            Some("names\tStep\t3")
        );
        assert!(known.shrunk(&[excess("State", 9)]).contains("State\t4"));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        for line in ["names State 4", "names\tState\tmany", "names"] {
            let (_, wrong) = Known::read(line);
            assert_eq!(wrong.len(), 1, "{line}");
        }
    }
}
