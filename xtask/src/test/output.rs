//! Runs the tests and shows of their output what a reader needs: failures, counts, and the lines in which
//! passing tests say what they covered.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use super::installed::Installed;
use super::{Counts, Extent, Outcome};
use crate::tool;

/// How lines start that a passing test wants to be seen.
const SHOWN: &[&str] = &["property ", "table ", "campaign ", "skipped "];

/// What is built for tests: campaigns need fault points in the store, which nothing else is built with, and what
/// users turn on is tested too.
pub(crate) const FEATURES: &str =
    "throughline-testkit/trials,throughline-testkit/server,throughline/mcp";

/// Tests that a quick run leaves out, by executable: the campaigns start processes and kill them.
const SLOW_EXECUTABLES: &[&str] = &["campaigns"];

/// Tests that a quick run leaves out, by the module that has them: those of published clients and servers, which must
/// be installed, and the long ones of views. `cargo test` can only compare parts of names, and leaves out a few more.
const SLOW_TESTS: &[&str] = &["clients::", "mcp::", "invariants::"];

/// The test executables that a quick run has.
const QUICK_EXECUTABLES: &[&str] = &["cli", "compact", "library", "server", "store", "wire"];

/// The programs with unit tests.
const QUICK_PROGRAMS: &[&str] = &["throughline", "xtask"];

/// The factor on the cases of properties in a quick run.
const QUICK_SCALE: &str = "0.25";

/// What runs the tests.
#[derive(Debug, Clone, Copy)]
pub(super) enum Runner {
    Nextest,
    CargoTest,
}

/// Compiles the tests, so that the next step is their running time.
pub(super) fn build_tests(runner: Runner, extent: Extent) -> Outcome {
    match tool::run(tests(runner, extent).arg("--no-run")) {
        Ok(()) => Outcome::Done(Counts::default()),
        Err(failure) => Outcome::Failed(Counts::ONE_FAILED, failure.to_string()),
    }
}

/// Runs all tests but those in documentation. Some of them start programs with published SDKs.
pub(super) fn run_tests(runner: Runner, extent: Extent, seed: &str, sdks: &Installed) -> Outcome {
    let mut command = tests(runner, extent);
    match runner {
        Runner::Nextest => command.args([
            "--no-fail-fast",
            "--success-output=immediate",
            "--failure-output=immediate",
            "--color=never",
            "--cargo-quiet",
        ]),
        Runner::CargoTest => command.args([
            "--quiet",
            "--no-fail-fast",
            "--",
            "--show-output",
            "--color=never",
        ]),
    };
    if extent == Extent::Quick {
        match runner {
            Runner::Nextest => command.args(["-E", &quick_filter()]),
            Runner::CargoTest => command.args(SLOW_TESTS.iter().flat_map(|part| ["--skip", part])),
        };
        if std::env::var_os("THROUGHLINE_SCALE").is_none() {
            command.env("THROUGHLINE_SCALE", QUICK_SCALE);
        }
    }
    command.envs(sdks.variables());
    // One vendor and one other model for each family of clients; `cargo xtask clients` takes all.
    if std::env::var_os("THROUGHLINE_CLIENTS").is_none() {
        command.env("THROUGHLINE_CLIENTS", "seeded");
    }
    filtered(command.env("THROUGHLINE_SEED", seed), extent)
}

/// Runs the examples in documentation comments.
pub(super) fn run_doc_tests(seed: &str) -> Outcome {
    let arguments = [
        "test",
        "--workspace",
        "--features",
        FEATURES,
        "--locked",
        "--doc",
        "--no-fail-fast",
        "--",
        "--color=never",
    ];
    let mut command = tool::cargo();
    command.args(arguments).env("THROUGHLINE_SEED", seed);
    filtered(&mut command, Extent::Full)
}

fn tests(runner: Runner, extent: Extent) -> Command {
    let mut command = tool::cargo();
    match runner {
        Runner::Nextest => command.args(["nextest", "run"]),
        Runner::CargoTest => command.arg("test"),
    };
    command.args(["--workspace", "--locked", "--features", FEATURES]);
    match (extent, runner) {
        (Extent::Full, Runner::Nextest) => {}
        (Extent::Full, Runner::CargoTest) => {
            command.args(["--tests", "--examples"]);
        }
        // What is left out is not built either.
        (Extent::Quick, _) => {
            command.args(["--lib", "--examples"]);
            command.args(QUICK_PROGRAMS.iter().flat_map(|name| ["--bin", name]));
            command.args(QUICK_EXECUTABLES.iter().flat_map(|name| ["--test", name]));
        }
    }
    command
}

/// The tests of a quick run, in nextest's words.
fn quick_filter() -> String {
    let tests = SLOW_TESTS.iter().map(|part| format!("test(/^{part}/)"));
    let executables = SLOW_EXECUTABLES
        .iter()
        .map(|name| format!("binary({name})"));
    let slow: Vec<String> = tests.chain(executables).collect();
    format!("not ({})", slow.join(" or "))
}

/// Runs a command, shows what is worth showing, and counts.
fn filtered(command: &mut Command, extent: Extent) -> Outcome {
    let spawned = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let reason = format!("cannot start {}: {error}", tool::spell(command));
            return Outcome::Failed(Counts::ONE_FAILED, reason);
        }
    };
    let (sender, lines) = mpsc::channel();
    forward(child.stdout.take(), sender.clone());
    forward(child.stderr.take(), sender);
    let mut filter = Filter {
        extent,
        ..Filter::default()
    };
    for line in lines {
        if let Some(shown) = filter.line(&line) {
            println!("{shown}");
        }
    }
    let succeeded = child.wait().is_ok_and(|status| status.success());
    let mut counts = filter.counts;
    if succeeded && counts.failed == 0 {
        return Outcome::Done(counts);
    }
    // A runner that dies before it counts has failed all the same.
    counts.failed = counts.failed.max(1);
    let runner = command
        .get_args()
        .next()
        .unwrap_or_default()
        .to_string_lossy();
    Outcome::Failed(counts, format!("cargo {runner} failed"))
}

fn forward(stream: Option<impl Read + Send + 'static>, sender: mpsc::Sender<String>) {
    let Some(stream) = stream else { return };
    // Both streams must be read at once, or a full pipe would stop the child. The thread ends with the stream.
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader
            .read_until(b'\n', &mut line)
            .is_ok_and(|read| read > 0)
        {
            let text = String::from_utf8_lossy(&line)
                .trim_end_matches(['\n', '\r'])
                .to_owned();
            if sender.send(text).is_err() {
                return;
            }
            line.clear();
        }
    });
}

/// Decides line by line what is shown, for both runners.
struct Filter {
    /// Whether lines without a meaning of their own are shown.
    loud: bool,
    counts: Counts,
    /// In a quick run nextest counts what was left out as skipped; that is no skip.
    extent: Extent,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            loud: true,
            counts: Counts::default(),
            extent: Extent::Full,
        }
    }
}

impl Filter {
    fn line<'l>(&mut self, line: &'l str) -> Option<&'l str> {
        let trimmed = line.trim();
        if SHOWN.iter().any(|start| trimmed.starts_with(start)) {
            self.counts.skipped += usize::from(trimmed.starts_with("skipped "));
            return Some(trimmed);
        }
        if let Some(status) = nextest_status(trimmed) {
            self.loud = status != "PASS";
            if status == "Summary" {
                let mut counts = nextest_counts(trimmed);
                if self.extent == Extent::Quick {
                    counts.skipped = 0;
                }
                self.counts.add(counts);
            }
            return self.loud.then_some(line);
        }
        // Libtest speaks at the margin; what nextest passes on from it is indented.
        if line.starts_with("test result: ") {
            self.counts.add(libtest_counts(line));
            self.loud = true;
            return Some(line);
        }
        if line.starts_with("running ") || line == "successes:" {
            self.loud = false;
        }
        if line == "failures:" {
            self.loud = true;
        }
        let failed = line.starts_with("test ") && line.ends_with("FAILED");
        (self.loud || failed).then_some(line)
    }
}

/// The word before the time in a line such as `PASS [   0.005s] (1/9) …`.
fn nextest_status(line: &str) -> Option<&str> {
    let (status, rest) = line.split_once(" [")?;
    let time = rest.split_once("s]")?.0.trim_start_matches(['>', ' ']);
    let word = status.split(' ').next_back()?;
    let known = word == "Summary"
        || (!word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'-'));
    (known && time.parse::<f64>().is_ok()).then_some(word)
}

/// Counts in `Summary [ 0.2s] 34 tests run: 33 passed (1 slow), 1 failed, 0 skipped`.
fn nextest_counts(line: &str) -> Counts {
    let mut counts = Counts::default();
    let figures = line.split_once("run: ").map_or("", |(_, figures)| figures);
    for figure in figures.split(", ") {
        let mut words = figure.split_whitespace();
        let number = words
            .next()
            .and_then(|word| word.trim_matches('(').parse().ok())
            .unwrap_or(0);
        match words.next() {
            Some("passed") => counts.passed += number,
            Some("skipped") => counts.skipped += number,
            Some("failed" | "timed" | "exec") => counts.failed += number,
            _ => {}
        }
    }
    counts
}

/// Counts in `test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; …`.
fn libtest_counts(line: &str) -> Counts {
    let mut counts = Counts::default();
    for figure in line.split(['.', ';']) {
        let mut words = figure.split_whitespace();
        let number = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        match words.next() {
            Some("passed") => counts.passed += number,
            Some("failed") => counts.failed += number,
            Some("ignored") => counts.skipped += number,
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::{
        Counts, Extent, Filter, QUICK_EXECUTABLES, SLOW_EXECUTABLES, nextest_counts,
        nextest_status, quick_filter,
    };

    fn shown(text: &str) -> (Vec<&str>, Counts) {
        let mut filter = Filter::default();
        let lines = text.lines().filter_map(|line| filter.line(line)).collect();
        (lines, filter.counts)
    }

    #[test]
    fn a_quick_run_names_every_executable_once() {
        let filter = quick_filter();
        assert!(
            filter.starts_with("not (test(/^clients::/) or "),
            "{filter}"
        );
        let mut declared = Vec::new();
        for entry in std::fs::read_dir(crate::tool::root().join("crates")).expect("crates") {
            let manifest = entry.expect("a crate").path().join("Cargo.toml");
            let text = std::fs::read_to_string(manifest).unwrap_or_default();
            let tests = text.split("[[test]]\nname = \"").skip(1);
            declared.extend(tests.filter_map(|rest| rest.split('"').next().map(str::to_owned)));
        }
        declared.sort();
        let mut known: Vec<&str> = [QUICK_EXECUTABLES, SLOW_EXECUTABLES].concat();
        known.sort_unstable();
        assert_eq!(declared, known);
    }

    #[test]
    fn nextest_is_reduced_to_failures_counts_and_what_tests_say() {
        let text = "\
    Starting 3 tests across 1 binary
        PASS [   0.007s] (1/3) kit a
  stdout ───
    running 1 test
    noise
    property a: seed=0x1 cases=5
    test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 33 filtered out; finished in 0.00s
        FAIL [   0.008s] (2/3) kit b
  stderr ───
    it broke
        PASS [   0.007s] (3/3) kit c
  stdout ───
    skipped c: no database
    more noise
────────────
     Summary [   0.217s] 3 tests run: 2 passed, 1 failed, 0 skipped
        FAIL [   0.008s] (2/3) kit b";
        let (lines, counts) = shown(text);
        assert_eq!(
            lines,
            [
                "Starting 3 tests across 1 binary",
                "property a: seed=0x1 cases=5",
                "        FAIL [   0.008s] (2/3) kit b",
                "  stderr ───",
                "    it broke",
                "skipped c: no database",
                "     Summary [   0.217s] 3 tests run: 2 passed, 1 failed, 0 skipped",
                "        FAIL [   0.008s] (2/3) kit b",
            ]
        );
        assert_eq!(
            counts,
            Counts {
                passed: 2,
                failed: 1,
                skipped: 1
            }
        );
    }

    #[test]
    fn what_a_quick_run_leaves_out_is_no_skip() {
        let mut filter = Filter {
            extent: Extent::Quick,
            ..Filter::default()
        };
        filter.line("Summary [ 0.2s] 2 tests run: 2 passed, 9 skipped");
        let passed = Counts {
            passed: 2,
            ..Counts::default()
        };
        assert_eq!(filter.counts, passed);
    }

    #[test]
    fn libtest_is_reduced_in_the_same_way() {
        let text = "\
running 2 tests
test a ... ok
test b ... FAILED

successes:

---- a stdout ----
noise
property a: seed=0x1 cases=5

failures:

---- b stdout ----
it broke

test result: FAILED. 1 passed; 1 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        let (lines, counts) = shown(text);
        assert_eq!(
            lines[..2],
            ["test b ... FAILED", "property a: seed=0x1 cases=5"]
        );
        assert!(
            lines.contains(&"it broke")
                && !lines.contains(&"noise")
                && !lines.contains(&"test a ... ok")
        );
        assert_eq!(
            counts,
            Counts {
                passed: 1,
                failed: 1,
                skipped: 3
            }
        );
    }

    #[test]
    fn every_way_to_fail_is_counted() {
        let line = "Summary [ 1.0s] 9 tests run: 4 passed (1 slow, 2 leaky), 2 failed, 1 timed out, 2 exec failed, 3 skipped";
        assert_eq!(
            nextest_counts(line),
            Counts {
                passed: 4,
                failed: 5,
                skipped: 3
            }
        );
        let line = "Summary [   0.012s] 1 test run: 1 passed, 0 skipped";
        assert_eq!(
            nextest_counts(line),
            Counts {
                passed: 1,
                failed: 0,
                skipped: 0
            }
        );
    }

    #[test]
    fn a_status_is_a_word_and_a_time() {
        assert_eq!(
            nextest_status("SIGABRT [   0.1s] (1/2) kit a"),
            Some("SIGABRT")
        );
        assert_eq!(nextest_status("TRY 1 FAIL [   0.1s] kit a"), Some("FAIL"));
        assert_eq!(nextest_status("SLOW [> 60.000s] kit a"), Some("SLOW"));
        assert_eq!(nextest_status("see [the docs]"), None);
        assert_eq!(nextest_status("ARRAY [1, 2s]"), None);
    }
}
