//! Takes the conditions that keep tenants apart out of SQLite's statements, one at a time, and wants
//! the store's suite to find each.
//!
//! Nothing is listed by hand. The suite runs once while the engine writes down every statement with
//! such a condition (`crates/store/src/trials/tenants.rs`); each is a mutant. Conditions that stand in
//! the engine's source and in no statement that was prepared count as not found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::tool::{self, Failure};

/// How the names of the cases with two tenants begin.
const CASES: &str = "sqlite::tenants_";

/// The test that lists the conditions in the engine's source.
const LISTED: &str = "sqlite::the_conditions_on_tenants_are_listed";

/// The module of the store's tests that runs the suite on SQLite.
const SUITE: &str = "sqlite::";

/// After this time a test with a mistake planted does not end any more.
const HANG: Duration = Duration::from_secs(120);

/// A condition in a statement that was prepared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mutant {
    /// For `THROUGHLINE_PLANTED`.
    name: String,
    /// The statement on one line, with the condition in brackets.
    statement: String,
}

impl Mutant {
    fn read(line: &str) -> Option<Self> {
        let (name, statement) = line.split_once(' ')?;
        name.starts_with("tenants/").then(|| Self {
            name: name.to_owned(),
            statement: statement.to_owned(),
        })
    }

    /// Where the statement is prepared.
    fn site(&self) -> &str {
        self.name.split('/').nth(1).unwrap_or_default()
    }
}

/// A condition in the engine's source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    /// File and line.
    place: String,
    /// The literal on one line, with the condition in brackets and `{}` for what a format inserts.
    text: String,
}

impl Written {
    /// Whether a statement is made of the literal.
    fn fits(&self, statement: &str) -> bool {
        let mut rest = statement;
        self.text
            .split("{}")
            .all(|piece| match rest.split_once(piece.trim()) {
                Some((_, after)) => {
                    rest = after;
                    true
                }
                None => false,
            })
    }
}

/// What the engine's source says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listed {
    conditions: Vec<Written>,
    /// A part of a statement, and why nothing has to find the mutant.
    reviewed: Vec<(String, String)>,
}

impl Listed {
    fn read(text: &str) -> Self {
        let mut listed = Self::default();
        for line in text.lines() {
            if let Some((place, text)) = line
                .strip_prefix("condition ")
                .and_then(|rest| rest.split_once(' '))
            {
                listed.conditions.push(Written {
                    place: place.to_owned(),
                    text: text.to_owned(),
                });
            } else if let Some((part, why)) = line
                .strip_prefix("reviewed ")
                .and_then(|rest| rest.split_once(" because "))
            {
                listed.reviewed.push((part.to_owned(), why.to_owned()));
            }
        }
        listed
    }

    /// Conditions that no prepared statement has. Each mutant stands for one: two statements of one
    /// text must both be prepared.
    fn unprepared<'l>(&'l self, mutants: &[Mutant]) -> Vec<&'l Written> {
        let mut free: Vec<&Mutant> = mutants.iter().collect();
        let mut written: Vec<&Written> = self.conditions.iter().collect();
        // The longest first: one that is a part of another fits more.
        written.sort_by_key(|one| std::cmp::Reverse(one.text.len()));
        // In its own file first; a part that several files share is prepared elsewhere.
        for at_home in [true, false] {
            written.retain(|one| {
                let file = one.place.split(':').next().unwrap_or_default();
                let fits = |mutant: &&Mutant| {
                    one.fits(&mutant.statement) && (!at_home || mutant.site().starts_with(file))
                };
                let found = free.iter().position(fits);
                found.map(|place| free.remove(place)).is_none()
            });
        }
        written
    }
}

/// Builds the suite on SQLite alone.
fn build() -> Result<PathBuf, Failure> {
    let mut cargo = tool::cargo();
    cargo.args(["test", "--no-run", "--locked", "--message-format=json"]);
    cargo.args(["-p", "throughline-store", "--test", "store"]);
    let output = tool::output(cargo.stderr(Stdio::inherit()))?;
    let program = output.lines().find_map(|message| {
        let (_, rest) = message.split_once("\"executable\":\"")?;
        let (path, _) = rest.split_once('"')?;
        Some(PathBuf::from(path))
    });
    program.ok_or_else(|| Failure::new("cargo names no program for the suite on SQLite"))
}

/// `cargo xtask planted tenants`; whether all mutants were found.
pub(crate) fn planted(program: Option<PathBuf>) -> Result<bool, Failure> {
    let program = match program {
        Some(program) => program,
        None => build()?,
    };
    let mut list = tool::command(&program);
    let text = tool::output(list.args(["--exact", "--nocapture", LISTED]))?;
    let listed = Listed::read(&text);
    let mutants = prepared(&program)?;
    println!(
        "{} conditions in the source keep tenants apart, {} in the statements that the suite prepares",
        listed.conditions.len(),
        mutants.len()
    );
    let mut found_by: BTreeMap<String, usize> = BTreeMap::new();
    let (mut missed, mut reviewed) = (0, 0);
    for mutant in &mutants {
        let began = Instant::now();
        let finder = match finder(&program, mutant, &[CASES])? {
            // Any other case of the suite.
            None => finder(&program, mutant, &[SUITE, "--skip", CASES])?,
            found => found,
        };
        let seconds = began.elapsed().as_secs_f64();
        let why = listed
            .reviewed
            .iter()
            .find(|(part, _)| mutant.statement.contains(part));
        let word = match (&finder, why) {
            (Some(finder), _) => {
                let (first, _) = finder.split_once(' ').unwrap_or((finder, ""));
                *found_by.entry(first.to_owned()).or_default() += 1;
                format!("found by {finder} in {seconds:.1} s")
            }
            (None, Some((_, why))) => {
                reviewed += 1;
                format!("not found, reviewed: {why}")
            }
            (None, None) => {
                missed += 1;
                format!("NOT FOUND in {seconds:.1} s")
            }
        };
        println!("table planted {:<42} {word}", mutant.name);
        println!("      {}", around(&mutant.statement));
    }
    let unprepared = listed.unprepared(&mutants);
    for written in &unprepared {
        println!(
            "table planted {} NOT FOUND: no case of the suite prepares it: {}",
            written.place,
            around(&written.text)
        );
    }
    for (finder, count) in &found_by {
        println!("table planted: {count} found by {finder}");
    }
    let found: usize = found_by.values().sum();
    println!(
        "planted tenants: {found} of {} mutants found, {reviewed} reviewed, {missed} not found, {} never prepared",
        mutants.len(),
        unprepared.len()
    );
    Ok(missed == 0 && unprepared.is_empty())
}

/// The mutants of every statement that the suite prepares.
fn prepared(program: &Path) -> Result<Vec<Mutant>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("the statements: {error}"));
    let record = scratch("statements");
    let _ = std::fs::remove_file(&record);
    let mut suite = tool::command(program);
    suite.env("THROUGHLINE_STATEMENTS", &record);
    tool::output(suite.args([SUITE, "--test-threads=2"]))
        .map_err(|failure| Failure::new(format!("the suite fails by itself: {failure}")))?;
    let text = std::fs::read_to_string(&record).map_err(failed)?;
    std::fs::remove_file(&record).map_err(failed)?;
    let mut mutants: Vec<Mutant> = text.lines().filter_map(Mutant::read).collect();
    mutants.sort();
    mutants.dedup();
    if mutants.is_empty() {
        return Err(Failure::new("no statement has a condition on a tenant"));
    }
    Ok(mutants)
}

/// A file of this process.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("throughline-planted-{}-{name}", std::process::id()))
}

/// The cases that fail with a mutant planted, the first by name.
fn finder(program: &Path, mutant: &Mutant, which: &[&str]) -> Result<Option<String>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("the suite: {error}"));
    let heard = scratch("output");
    let mut suite = tool::command(program);
    suite
        .args(which)
        .arg("--test-threads=2")
        .env("THROUGHLINE_PLANTED", &mutant.name)
        .env("RUST_BACKTRACE", "0")
        .stdout(std::fs::File::create(&heard).map_err(failed)?)
        .stderr(Stdio::null());
    let mut child = suite.spawn().map_err(failed)?;
    let began = Instant::now();
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break Some(status),
            None if began.elapsed() > HANG => {
                // It is the one that was started here, and it has not been waited for.
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let text = std::fs::read_to_string(&heard).map_err(failed)?;
    let _ = std::fs::remove_file(&heard);
    Ok(match status {
        Some(status) if status.success() => None,
        Some(_) => Some(red(&text)),
        None => Some("the suite (it hangs)".to_owned()),
    })
}

/// The tests that failed, by what their program said.
fn red(text: &str) -> String {
    let name = |line: &str| {
        let rest = line.strip_prefix("test ")?;
        rest.strip_suffix(" ... FAILED").map(str::to_owned)
    };
    let mut names: Vec<String> = text.lines().filter_map(name).collect();
    names.sort();
    match names.split_first() {
        None => "the suite (it broke off)".to_owned(),
        Some((first, [])) => first.clone(),
        Some((first, rest)) => format!("{first} and {} more", rest.len()),
    }
}

/// What stands around the condition of a long statement.
fn around(statement: &str) -> String {
    const SIDE: usize = 60;
    let Some((before, after)) = statement.split_once('[') else {
        return statement.to_owned();
    };
    let skipped = before.chars().count().saturating_sub(SIDE);
    let before: String = before.chars().skip(skipped).collect();
    let dots = if skipped > 0 { "…" } else { "" };
    let short: String = after.chars().take(SIDE + 30).collect();
    let end = if short.len() < after.len() { "…" } else { "" };
    format!("{dots}{before}[{short}{end}")
}

#[cfg(test)]
mod tests {
    use super::{Listed, Mutant, Written, around, red};

    fn mutant(line: &str) -> Mutant {
        Mutant::read(line).expect("it is one")
    }

    #[test]
    fn conditions_that_no_statement_has_are_found() {
        let listed = Listed::read(
            "running 1 test
condition find.rs:3 SELECT {} FROM {} WHERE [r.tenant=?] AND r.id=?
condition find.rs:9 SELECT 1 FROM alias WHERE [tenant=?]
condition threads.rs:4 SELECT 1 FROM alias WHERE [tenant=?]
condition list.rs:7 [a.tenant=?1] AND ?2
condition list.rs:8 [a.tenant=?1] AND ?2 AND a.state=0
reviewed FROM q WHERE [q.thread=t.thread] because it is only a hint
",
        );
        assert_eq!(listed.conditions.len(), 5);
        assert_eq!(
            listed.reviewed,
            [(
                "FROM q WHERE [q.thread=t.thread]".to_owned(),
                "it is only a hint".to_owned()
            )]
        );
        let mut mutants = vec![
            mutant("tenants/find.rs:5/0a/1 SELECT r.run FROM run r WHERE [r.tenant=?] AND r.id=?"),
            mutant("tenants/threads.rs:5/0b/1 SELECT 1 FROM alias WHERE [tenant=?]"),
            mutant(
                "tenants/list.rs:5/0c/1 SELECT 1 WHERE [a.tenant=?1] AND ?2 AND a.state=0 LIMIT 1",
            ),
        ];
        let places = |mutants: &[Mutant]| {
            let unprepared = listed.unprepared(mutants);
            let mut places: Vec<_> = unprepared.iter().map(|one| one.place.clone()).collect();
            places.sort();
            places
        };
        assert_eq!(places(&mutants), ["find.rs:9", "list.rs:7"]);
        mutants.push(mutant(
            "tenants/find.rs:9/0b/1 SELECT 1 FROM alias WHERE [tenant=?]",
        ));
        mutants.push(mutant(
            "tenants/list.rs:5/0d/1 SELECT 1 WHERE [a.tenant=?1] AND ?2 LIMIT 1",
        ));
        assert_eq!(places(&mutants), [""; 0]);
        let other = Written {
            place: String::new(),
            text: "WHERE [r.tenant=?] AND {} r.key=?".to_owned(),
        };
        assert!(!other.fits(&mutants[0].statement));
    }

    #[test]
    fn the_first_test_that_failed_is_named() {
        let text = "running 3 tests\ntest b ... FAILED\ntest c ... ok\ntest a ... FAILED\n";
        assert_eq!(red(text), "a and 1 more");
        assert_eq!(red("test a ... FAILED"), "a");
        assert_eq!(red("running 3 tests"), "the suite (it broke off)");
    }

    #[test]
    fn a_long_statement_is_shown_around_its_condition() {
        let long = format!("{}[tenant=?] {}", "x".repeat(100), "y".repeat(200));
        let short = around(&long);
        assert!(short.starts_with("…x") && short.ends_with("y…"), "{short}");
        assert!(short.contains("[tenant=?]") && short.chars().count() < 160);
        assert_eq!(around("WHERE [tenant=?]"), "WHERE [tenant=?]");
    }
}
