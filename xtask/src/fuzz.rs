//! Builds the fuzz binary with coverage counters and runs its targets.
//!
//! The engine is libFuzzer, linked as a library; the counters come from LLVM's pass by way of compiler flags.
//! Both work on the stable toolchain.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::tool::{self, Failure};

const TARGET_FOLDER: &str = "target/fuzz";
const BINARY: &str = "throughline-fuzz";

/// Counters for every edge and the operands of every comparison, which is how the engine guesses magic words.
const RUSTFLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // Short comparisons of bytes stay calls to memcmp, which the engine watches.
    "-Cllvm-args=-max-loads-per-memcmp=0",
];

/// Bounds of a run: memory in MB, time for one input in seconds, length of an input in bytes.
const LIMITS: &[&str] = &["-rss_limit_mb=512", "-timeout=1", "-max_len=65536"];

/// How much of a failed target's log is shown.
const LOG_LINES: usize = 60;

/// `cargo xtask fuzz`
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode, Failure> {
    let mut names = Vec::new();
    let mut seconds = 60;
    let mut list = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--list" => list = true,
            "--seconds" => {
                let value = rest.next().and_then(|value| value.parse().ok());
                seconds = value.ok_or_else(|| Failure::new("--seconds wants a whole number"))?;
            }
            option if option.starts_with('-') => {
                return Err(Failure::new(format!("fuzz knows no option {option}")));
            }
            name => names.push(name.to_owned()),
        }
    }
    let fuzzer = Fuzzer::build()?;
    let targets = fuzzer.targets()?;
    if list {
        targets.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = names.iter().find(|name| !targets.contains(name)) {
        return Err(Failure::new(format!(
            "there is no fuzz target {unknown}; see `cargo xtask fuzz --list`"
        )));
    }
    let chosen = if names.is_empty() { targets } else { names };
    let seed = std::env::var("THROUGHLINE_SEED").unwrap_or_default();
    let (_, found) = fuzzer.run(&chosen, Bound::Seconds(seconds), &seed)?;
    Ok(if found == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Tries `inputs` inputs on every target; gives how many were clean and how many were not.
pub(crate) fn run_all(inputs: u64, seed: &str) -> Result<(usize, usize), Failure> {
    let fuzzer = Fuzzer::build()?;
    fuzzer.run(&fuzzer.targets()?, Bound::Inputs(inputs), seed)
}

/// When the run of a target is over.
#[derive(Clone, Copy)]
enum Bound {
    /// Goes on from what earlier runs found.
    Seconds(u64),
    /// Starts from the kept inputs alone, so that the same seed tries the same inputs.
    Inputs(u64),
}

struct Fuzzer {
    /// From the workspace folder, so that it can be printed for others to type.
    binary: PathBuf,
}

impl Fuzzer {
    fn build() -> Result<Self, Failure> {
        let host = tool::host()?;
        // Naming the host keeps the flags away from build scripts.
        let arguments = [
            "build",
            "--release",
            "--locked",
            "--manifest-path",
            "fuzz/Cargo.toml",
        ];
        let mut cargo = tool::cargo();
        cargo
            .args(arguments)
            .args(["--target-dir", TARGET_FOLDER, "--target", &host]);
        // The encoded form wins over every other source of flags, so nothing of the user's mixes in.
        tool::run(cargo.env("CARGO_ENCODED_RUSTFLAGS", RUSTFLAGS.join("\x1f")))?;
        Ok(Self {
            binary: [TARGET_FOLDER, &host, "release", BINARY].iter().collect(),
        })
    }

    fn targets(&self) -> Result<Vec<String>, Failure> {
        let text = tool::output(&mut self.command("list"))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn command(&self, target: &str) -> Command {
        let mut command = tool::command(tool::root().join(&self.binary));
        command.env("THROUGHLINE_FUZZ", target);
        command
    }

    /// Runs the targets one after the other; gives how many were clean and how many were not.
    fn run(&self, targets: &[String], bound: Bound, seed: &str) -> Result<(usize, usize), Failure> {
        let width = targets.iter().map(String::len).max().unwrap_or(0);
        let mut unclean = 0;
        for target in targets {
            let (log, clean) = self.run_one(target, bound, seed)?;
            let report = Report::read(&log);
            println!(
                "{target:<width$}  {report}  findings {}",
                usize::from(!clean)
            );
            if report.counters == 0 {
                return Err(Failure::new(
                    "the fuzz binary carries no coverage counters: the compiler ignored the flags",
                ));
            }
            if !clean {
                unclean += 1;
                self.explain(target, &log);
            }
        }
        Ok((targets.len() - unclean, unclean))
    }

    fn run_one(&self, target: &str, bound: Bound, seed: &str) -> Result<(String, bool), Failure> {
        let kept = format!("fuzz/corpus/{target}");
        let found = match bound {
            Bound::Seconds(_) => format!("{TARGET_FOLDER}/found/{target}"),
            Bound::Inputs(_) => format!("{TARGET_FOLDER}/found-again/{target}"),
        };
        let artifacts = format!("{TARGET_FOLDER}/artifacts/{target}/");
        let log = tool::root().join(format!("{TARGET_FOLDER}/{target}.log"));
        let broken = |error| Failure::new(format!("cannot prepare the run of {target}: {error}"));
        if matches!(bound, Bound::Inputs(_)) && tool::root().join(&found).exists() {
            fs::remove_dir_all(tool::root().join(&found)).map_err(broken)?;
        }
        for folder in [&kept, &found, &artifacts] {
            fs::create_dir_all(tool::root().join(folder)).map_err(broken)?;
        }
        let mut command = self.command(target);
        // New inputs go to the first folder; the kept ones are only read.
        command
            .args([&found, &kept])
            .args(LIMITS)
            .arg("-print_final_stats=1");
        command.args([
            format!("-artifact_prefix={artifacts}"),
            match bound {
                Bound::Seconds(seconds) => format!("-max_total_time={seconds}"),
                Bound::Inputs(inputs) => format!("-runs={inputs}"),
            },
        ]);
        if let Some(seed) = engine_seed(seed) {
            command.arg(format!("-seed={seed}"));
        }
        let status = command
            .stdout(Stdio::null())
            .stderr(File::create(&log).map_err(broken)?)
            .status();
        let clean = status.map_err(broken)?.success();
        let text = fs::read(&log).map_err(broken)?;
        Ok((String::from_utf8_lossy(&text).into_owned(), clean))
    }

    /// Prints what a target stumbled over and how to see it again.
    fn explain(&self, target: &str, log: &str) {
        let lines: Vec<&str> = log.lines().collect();
        for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
            println!("    {line}");
        }
        match log
            .lines()
            .find_map(|line| line.split_once("Test unit written to "))
        {
            Some((_, artifact)) => {
                let binary = self.binary.display();
                println!("input:     {artifact}");
                let limits = LIMITS.join(" ");
                println!("reproduce: THROUGHLINE_FUZZ={target} {binary} {limits} {artifact}");
                println!("keep it:   once fixed, copy the input to fuzz/corpus/{target}/");
            }
            None => println!(
                "{target} ended without writing an input; the log is {TARGET_FOLDER}/{target}.log"
            ),
        }
    }
}

/// The engine takes 32 bits, and zero means that it picks.
fn engine_seed(seed: &str) -> Option<u32> {
    let seed = seed.trim();
    let seed = match seed.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => seed.parse().ok()?,
    };
    Some((seed as u32 ^ (seed >> 32) as u32).max(1))
}

/// The figures of one run, from the engine's log.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    counters: u64,
    executions: u64,
    per_second: u64,
    coverage: u64,
    inputs: u64,
    seed: u64,
}

impl Report {
    fn read(log: &str) -> Self {
        let mut report = Self::default();
        for line in log.lines() {
            report.counters += number_before(line, " inline 8-bit counters").unwrap_or(0);
            let figures = [
                ("stat::number_of_executed_units: ", &mut report.executions),
                ("stat::average_exec_per_sec: ", &mut report.per_second),
                (" cov: ", &mut report.coverage),
                (" corp: ", &mut report.inputs),
                ("INFO: Seed: ", &mut report.seed),
            ];
            for (label, figure) in figures {
                if let Some(number) = number_after(line, label) {
                    *figure = number;
                }
            }
        }
        report
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            counters,
            executions,
            per_second,
            coverage,
            inputs,
            seed,
        } = self;
        write!(
            f,
            "executions {executions:>9}  per second {per_second:>7}  "
        )?;
        write!(
            f,
            "coverage {coverage:>5} of {counters}  inputs {inputs:>5}  seed {seed}"
        )
    }
}

fn number_after(line: &str, label: &str) -> Option<u64> {
    let rest = line.split_once(label)?.1.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn number_before(line: &str, label: &str) -> Option<u64> {
    let before = line.split_once(label)?.0;
    before
        .rsplit(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::{Report, engine_seed};

    #[test]
    fn figures_are_taken_from_the_log_of_the_engine() {
        let log = "\
INFO: Seed: 77
INFO: Loaded 1 modules   (2410 inline 8-bit counters): 2410 [0x1, 0x2),
#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 30Mb
#99\tDONE   cov: 321 ft: 500 corp: 42/9Kb lim: 100 exec/s: 33 rss: 40Mb
stat::number_of_executed_units: 99
stat::average_exec_per_sec:     33
";
        let expected = Report {
            counters: 2410,
            executions: 99,
            per_second: 33,
            coverage: 321,
            inputs: 42,
            seed: 77,
        };
        assert_eq!(Report::read(log), expected);
        assert_eq!(Report::read("nothing of the kind"), Report::default());
    }

    #[test]
    fn every_seed_fits_the_engine() {
        assert_eq!(engine_seed("0x0000000100000002"), Some(3));
        assert_eq!(engine_seed("0"), Some(1));
        assert_eq!(engine_seed(""), None);
    }
}
