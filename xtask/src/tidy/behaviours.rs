//! One test for each line of the library's behaviours, and a table of them in `docs/`.
//!
//! A test says in its name which line it shows: `b14_at_seven_rounds_…`. The table is made from the names; it is
//! part of the checkout so that readers find it, and a check keeps it true.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

use super::Violation;
use super::files::Source;

/// Where the table stands.
pub(super) const TABLE: &str = "docs/behaviours.md";

/// The lines that must have a test by now.
const BUILT: &[RangeInclusive<u32>] = &[1..=178, 187..=249];

const HEAD: &str = "\
# Behaviours and their tests

Each rule of the library's behaviour has a number, and the tests of a rule have its number and its content in their
names. They run with whole and with streamed answers; rules about storage are tested on every engine.
`cargo xtask behaviours` generates this table from the names.

| rule | test | in |
|---|---|---|
";

/// A test by its line.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Test {
    line: u32,
    name: String,
    file: String,
}

/// The tests that name a line, in order.
fn tests(sources: &[Source]) -> Vec<Test> {
    let mut tests = Vec::new();
    for source in sources {
        if !source.path.starts_with("crates/") || !source.path.ends_with(".rs") {
            continue;
        }
        for (_, line) in source.lines() {
            let Some(name) = line.trim_start().strip_prefix("fn b") else {
                continue;
            };
            let (Some((number, _)), Some((name, _))) =
                (name.split_once('_'), name.split_once("()"))
            else {
                continue;
            };
            if let Ok(line) = number.parse() {
                tests.push(Test {
                    line,
                    name: format!("b{name}"),
                    file: source.path.clone(),
                });
            }
        }
    }
    tests.sort();
    tests
}

/// The table as it should be.
pub(super) fn table(sources: &[Source]) -> String {
    let mut out = HEAD.to_owned();
    for Test { line, name, file } in tests(sources) {
        let words = name.split_once('_').map_or("", |(_, words)| words);
        let words = words.replace('_', " ");
        writeln!(out, "| B{line} {words} | `{name}` | [{file}](../{file}) |")
            .expect("a string takes everything");
    }
    out
}

pub(super) fn check(sources: &[Source]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut by_line: BTreeMap<u32, Vec<Test>> = BTreeMap::new();
    for test in tests(sources) {
        by_line.entry(test.line).or_default().push(test);
    }
    for line in BUILT.iter().cloned().flatten() {
        if !by_line.contains_key(&line) {
            violations.push(Violation::new(
                TABLE,
                1,
                format!("no test shows B{line}"),
                format!("write a test whose name starts with b{line}_"),
            ));
        }
    }
    let written = sources.iter().find(|source| source.path == TABLE);
    if written.is_none_or(|source| source.text != table(sources)) {
        violations.push(Violation::new(
            TABLE,
            1,
            "the table of behaviours is not that of the tests",
            "run `cargo xtask behaviours`",
        ));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_line_and_an_old_table_are_found() {
        let source = |text: &str| Source::new("crates/throughline/tests/b.rs", text);
        let every = |without: u32| -> String {
            let lines = BUILT.iter().cloned().flatten();
            lines
                .filter(|line| *line != without)
                .map(|line| format!("fn b{line}_shown() {{}}\n"))
                .collect()
        };
        let mut sources = vec![source(&every(0))];
        let table = table(&sources);
        assert!(table.contains("| B14 shown | `b14_shown` |"));
        sources.push(Source::new(TABLE, table.as_str()));
        assert_eq!(check(&sources), []);
        sources[0] = source(&every(14));
        let found: Vec<String> = check(&sources).iter().map(Violation::to_string).collect();
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("no test shows B14"));
        assert!(found[1].contains("cargo xtask behaviours"));
    }
}
