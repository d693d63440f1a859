//! The test command: every step runs, and everything that failed is reported at the end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::tool::{self, Failure};
use crate::{fuzz, tidy};

mod clients;
mod families;
pub(crate) mod installed;
mod output;
mod readme;
mod session;
mod setup;

pub(crate) use families::main as families;
use installed::Installed;
pub(crate) use installed::models;
pub(crate) use output::FEATURES;
use setup::Tools;

/// How many inputs each fuzz target tries here; `cargo xtask fuzz` is for longer runs.
const FUZZ_INPUTS: u64 = 60_000;

/// What a quick run does not do.
const LEFT_OUT: &str = "\
left out by --quick: the build without test features, docs, doc tests, README, clients, fuzz;
of the tests: campaigns (crates/testkit/tests), published SDKs and MCP servers, views of long histories;
properties run a quarter of their cases. `cargo xtask test` runs all of it.";

/// How many things passed, failed and were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Counts {
    const ONE_PASSED: Self = Self {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    const ONE_FAILED: Self = Self {
        passed: 0,
        failed: 1,
        skipped: 0,
    };

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// How a step ended.
enum Outcome {
    Done(Counts),
    /// It ran and something is wrong, for this reason.
    Failed(Counts, String),
    /// It could not run here, for this reason.
    Skipped(String),
}

impl From<Result<(), Failure>> for Outcome {
    fn from(result: Result<(), Failure>) -> Self {
        match result {
            Ok(()) => Self::Done(Counts::ONE_PASSED),
            Err(failure) => Self::Failed(Counts::ONE_FAILED, failure.to_string()),
        }
    }
}

/// Which steps run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Full,
    Quick,
}

/// `cargo xtask test`
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode, Failure> {
    let mut extent = Extent::Full;
    for argument in arguments {
        match argument.as_str() {
            "--quick" => extent = Extent::Quick,
            other => return Err(Failure::new(format!("test knows no argument {other}"))),
        }
    }
    let seed = seed()?;
    println!("seed {seed}: replay with THROUGHLINE_SEED={seed}");

    let mut run = Run { steps: Vec::new() };
    let mut tools = Tools::default();
    run.step("set up", || {
        tools = Tools::provide();
        Outcome::Done(Counts::default())
    });
    // Downloads take minutes and no processor.
    let installing = match extent {
        Extent::Full => Some(thread::spawn(move || {
            let mut sdks = Installed::default();
            (install(tools, &mut sdks), sdks)
        })),
        Extent::Quick => None,
    };
    run.step("format", || tools.with_fmt(format));
    run.step("lints", || tools.with_clippy(lints));
    run.step("tidy", tidied);
    if extent == Extent::Full {
        run.step("product", product);
        run.step("docs", docs);
    }
    run.step("build tests", || {
        output::build_tests(tools.runner(), extent)
    });
    let mut sdks = Installed::default();
    if let Some(installing) = installing {
        run.step("SDKs", || match installing.join() {
            Ok((outcome, installed)) => {
                sdks = installed;
                outcome
            }
            Err(_) => Outcome::Failed(Counts::ONE_FAILED, "the installation panicked".to_owned()),
        });
    }
    run.step("tests", || {
        output::run_tests(tools.runner(), extent, &seed, &sdks)
    });
    if extent == Extent::Full {
        run.step("doc tests", || output::run_doc_tests(&seed));
        run.step("README", || readme::run_examples(sdks.python.as_deref()));
        run.step("clients", || tools.with_python(|| clients::run(&seed)));
        run.step("fuzz", || tools.with_cxx(|| fuzzed(&seed)));
    }
    let refuse_skips = std::env::var("CI").is_ok_and(|value| value == "true");
    Ok(run.summarise(extent, refuse_skips))
}

/// `cargo xtask readme`
pub(crate) fn readme(arguments: &[String]) -> Result<ExitCode, Failure> {
    if let Some(other) = arguments.first() {
        return Err(Failure::new(format!("readme knows no argument {other}")));
    }
    let python = installed::server_python()?;
    match readme::run_examples(Some(&python)) {
        Outcome::Done(_) => Ok(ExitCode::SUCCESS),
        Outcome::Failed(_, reason) | Outcome::Skipped(reason) => Err(Failure::new(reason)),
    }
}

/// One seed for the whole run, so that one variable replays it. Without the variable it follows from the sources:
/// every change meets new cases, and one that passed here passes on the next machine too.
fn seed() -> Result<String, Failure> {
    let given = std::env::var("THROUGHLINE_SEED").unwrap_or_default();
    let number = match given.as_str() {
        "" => tidy::fingerprint()?,
        "clock" => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.unwrap_or_default().as_nanos() as u64
        }
        _ => return Ok(given),
    };
    Ok(format!("{number:#018x}"))
}

struct Run {
    steps: Vec<(&'static str, Outcome, Duration)>,
}

impl Run {
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Outcome) {
        println!("\n== {name}");
        let started = Instant::now();
        let outcome = work();
        self.steps.push((name, outcome, started.elapsed()));
    }

    fn summarise(self, extent: Extent, refuse_skips: bool) -> ExitCode {
        let mut total = Counts::default();
        println!("\n== summary");
        for (name, outcome, took) in &self.steps {
            let (verdict, counts, reason) = match outcome {
                Outcome::Done(counts) => ("ok", *counts, ""),
                Outcome::Failed(counts, reason) => ("FAILED", *counts, reason.as_str()),
                Outcome::Skipped(reason) => (
                    "SKIPPED",
                    Counts {
                        skipped: 1,
                        ..Counts::default()
                    },
                    reason.as_str(),
                ),
            };
            total.add(counts);
            let Counts {
                passed,
                failed,
                skipped,
            } = counts;
            let counted = format!("{passed} passed, {failed} failed, {skipped} skipped");
            let line = format!(
                "{name:<12} {verdict:<8} {:>7.1} s  {counted:<36}  {reason}",
                took.as_secs_f64()
            );
            println!("{}", line.trim_end());
        }
        if extent == Extent::Quick {
            println!("{LEFT_OUT}");
        }
        let skips_fail = refuse_skips && total.skipped > 0;
        if skips_fail {
            println!("a skip is a failure when CI=true");
        }
        let took: Duration = self.steps.iter().map(|(_, _, took)| *took).sum();
        println!("{:.0} s in all", took.as_secs_f64());
        let Counts {
            passed,
            failed,
            skipped,
        } = total;
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        if failed > 0 || skips_fail {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

/// Installs every SDK, and goes on after one that fails: the tests of the others can still run.
fn install(tools: Tools, sdks: &mut Installed) -> Outcome {
    let python = tools.with_python(|| {
        let models = record(models(), &mut sdks.models);
        let server = record(installed::server_python(), &mut sdks.python);
        first_skipped([models, server])
    });
    let node = tools.with_node(|| {
        let server = record(installed::server_node(), &mut sdks.node);
        let codex = record(installed::codex(), &mut sdks.codex);
        let claude = record(installed::claude_code(), &mut sdks.claude_code);
        first_skipped([server, codex, claude])
    });
    let rust = record(installed::async_openai(), &mut sdks.async_openai);
    first_skipped([python, node, rust])
}

fn record(result: Result<PathBuf, Failure>, place: &mut Option<PathBuf>) -> Outcome {
    match result {
        Ok(path) => {
            *place = Some(path);
            Outcome::Done(Counts::default())
        }
        Err(failure) => uninstalled(&failure),
    }
}

fn first_skipped<const N: usize>(outcomes: [Outcome; N]) -> Outcome {
    let skipped = |outcome: &Outcome| !matches!(outcome, Outcome::Done(_));
    let found = outcomes.into_iter().find(skipped);
    found.unwrap_or(Outcome::Done(Counts::default()))
}

fn uninstalled(failure: &Failure) -> Outcome {
    println!("skipped: the SDKs cannot be installed: {failure}");
    Outcome::Skipped(format!("the SDKs cannot be installed: {failure}"))
}

fn format() -> Outcome {
    // The names of the files are enough: the remedy is `cargo fmt`, whatever the difference.
    let list = ["--", "--files-with-diff"];
    let ours = tool::run(tool::cargo().args(["fmt", "--all", "--check"]).args(list));
    let fuzz = tool::run(
        tool::cargo()
            .args(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"])
            .args(list),
    );
    let packages = [
        "tests/clients/async-openai/Cargo.toml",
        "tests/tokens/table/Cargo.toml",
    ];
    let others = packages.into_iter().map(|manifest| {
        let check = ["fmt", "--check", "--manifest-path", manifest];
        tool::run(tool::cargo().args(check).args(list))
    });
    let others: Result<(), Failure> = others.collect();
    ours.and(fuzz).and(others).into()
}

fn lints() -> Outcome {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        FEATURES,
        "--locked",
        "--keep-going",
        "--",
        "-D",
        "warnings",
    ];
    tool::run(tool::cargo().args(arguments)).into()
}

fn tidied() -> Outcome {
    match tidy::check() {
        Ok(0) => Outcome::Done(Counts::ONE_PASSED),
        Ok(wrong) => Outcome::Failed(Counts::ONE_FAILED, format!("{wrong} violations")),
        Err(failure) => Outcome::Failed(Counts::ONE_FAILED, failure.to_string()),
    }
}

/// Compiles the binary as users do: without what tests turn on.
fn product() -> Outcome {
    tool::run(tool::cargo().args(["check", "--locked"])).into()
}

fn docs() -> Outcome {
    let arguments = [
        "doc",
        "--workspace",
        "--features",
        FEATURES,
        "--no-deps",
        "--locked",
        "--keep-going",
    ];
    tool::run(
        tool::cargo()
            .args(arguments)
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
    .into()
}

fn fuzzed(seed: &str) -> Outcome {
    match fuzz::run_all(FUZZ_INPUTS, seed) {
        Ok((clean, 0)) => Outcome::Done(Counts {
            passed: clean,
            ..Counts::default()
        }),
        Ok((clean, found)) => {
            let counts = Counts {
                passed: clean,
                failed: found,
                skipped: 0,
            };
            Outcome::Failed(counts, format!("{found} targets with findings"))
        }
        Err(failure) => Outcome::Failed(Counts::ONE_FAILED, failure.to_string()),
    }
}
