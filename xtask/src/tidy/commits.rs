//! Subjects of commits.

use super::Violation;
use crate::tool;

/// What fits in one line of `git log --oneline` and of a terminal.
const LONGEST: usize = 72;

/// The commit that added this file is the first whose successors are checked.
const SINCE: &str = "xtask/src/tidy/commits.rs";

/// What could be checked.
pub(super) struct Checked {
    pub(super) violations: Vec<Violation>,
    /// Why less than all was checked.
    pub(super) note: Option<&'static str>,
}

/// Checks the commits after the one that added the rule.
pub(super) fn check() -> Checked {
    let git = |arguments: &[&str]| tool::output(tool::command("git").args(arguments)).ok();
    let added = ["log", "--diff-filter=A", "--format=%H", "--", SINCE];
    let Some(added) = git(&added) else {
        return Checked {
            violations: Vec::new(),
            note: Some("subjects of commits were not checked: there is no git history"),
        };
    };
    // In a shallow clone the oldest commit seems to add every file.
    let shallow = git(&["rev-parse", "--is-shallow-repository"]);
    let note = shallow
        .is_some_and(|answer| answer.trim() == "true")
        .then_some("history is shallow: subjects of older commits were not checked");
    let Some(since) = added.lines().last() else {
        return Checked {
            violations: Vec::new(),
            note,
        };
    };
    let range = format!("{since}..HEAD");
    let log = git(&["log", "--no-merges", "--format=%h%x09%s", &range]).unwrap_or_default();
    Checked {
        violations: long(&log),
        note,
    }
}

/// The commits of a log whose subjects are too long.
fn long(log: &str) -> Vec<Violation> {
    let commits = log.lines().filter_map(|line| line.split_once('\t'));
    let too_long = commits.filter(|(_, subject)| subject.chars().count() > LONGEST);
    too_long
        .map(|(commit, subject)| {
            let length = subject.chars().count();
            Violation::new(
                &format!("commit {commit}"),
                1,
                format!("the subject has {length} characters: {subject}"),
                format!("write {LONGEST} at most; the body has room for the rest"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::long;

    #[test]
    fn subjects_fit_in_a_line() {
        let subject = |length: usize| format!("abc1234\t{}\n", "é".repeat(length));
        assert_eq!(long(&subject(72)), []);
        let found = long(&[subject(72), subject(73)].concat());
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .what
                .starts_with("the subject has 73 characters: é"),
            "{}",
            found[0].what
        );
    }
}
