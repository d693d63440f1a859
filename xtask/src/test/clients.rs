//! Has the models of the vendors' own SDKs read what the codecs write, and every hand-written
//! transcript as it is rendered for each vendor.
//!
//! `installed.rs` has the SDKs. Those that talk to a running server are tests of the server's own,
//! see `crates/server/tests/clients`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::installed::{self, FOLDER};
use super::{Counts, Outcome, output};
use crate::tool::{self, Failure};

/// The executable of the testkit whose programs write what the SDKs read, and those programs.
const WORKER: &str = "worker";
const SAMPLES: &str = "sdk-samples";
const RENDERED: &str = "sdk-rendered";

const CHECK: &str = "tests/clients/python/check.py";

/// How many histories each format writes; `THROUGHLINE_SCALE` is a factor on it.
const HISTORIES: f64 = 10_000.0;

/// Fewer would not have a sample of every kind.
const FEWEST: u64 = 100;

/// How many formats are checked at a time. A check takes one core.
const AT_ONCE: usize = 2;

/// What the program that writes samples ends with when a format has no codec.
const NO_CODEC: i32 = 3;

pub(super) fn run(seed: &str) -> Outcome {
    let python = match installed::models() {
        Ok(python) => python,
        Err(failure) => {
            println!("skipped: the SDKs cannot be installed: {failure}");
            return Outcome::Skipped(format!("the SDKs cannot be installed: {failure}"));
        }
    };
    match Clients::build(python, seed).and_then(|clients| clients.check_all()) {
        Ok(counts) if counts.failed == 0 => Outcome::Done(counts),
        Ok(counts) => Outcome::Failed(counts, format!("{} checks refused", counts.failed)),
        Err(failure) => Outcome::Failed(Counts::ONE_FAILED, failure.to_string()),
    }
}

/// How a format came off.
enum Verdict {
    Passed,
    Failed,
    NoCodec,
}

struct Clients<'s> {
    python: PathBuf,
    worker: PathBuf,
    seed: &'s str,
    histories: u64,
}

impl<'s> Clients<'s> {
    fn build(python: PathBuf, seed: &'s str) -> Result<Self, Failure> {
        // What the tests were built with, word for word: so these programs are there already, and
        // no second set of features is built.
        let arguments = [
            "test",
            "--no-run",
            "--workspace",
            "--features",
            output::FEATURES,
            "--locked",
            "--message-format=json-render-diagnostics",
        ];
        let messages = tool::output(tool::cargo().args(arguments))?;
        let program = |name: &str| {
            let mut built = messages.lines().filter_map(executable);
            built
                .find(|path| path.file_stem().is_some_and(|stem| stem == name))
                .ok_or_else(|| Failure::new(format!("cargo names no {name}")))
        };
        let scale = std::env::var("THROUGHLINE_SCALE").ok();
        Ok(Self {
            python,
            worker: program(WORKER)?,
            seed,
            histories: histories(scale.as_deref())?,
        })
    }

    fn program(&self, name: &str) -> Command {
        let mut command = tool::command(&self.worker);
        command.arg(name);
        command
    }

    fn check_all(&self) -> Result<Counts, Failure> {
        let listed = tool::output(self.program(SAMPLES).arg("--list"))?;
        let wires: Vec<&str> = listed.lines().collect();
        let folder = tool::root().join(FOLDER).join("samples");
        fs::create_dir_all(&folder)
            .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
        let next = AtomicUsize::new(0);
        let counts = Mutex::new(Counts::default());
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    while let Some(wire) = wires.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let counted = [
                            self.check_samples(wire, &folder),
                            self.check_rendered(wire, &folder),
                        ];
                        // Held while printing too, so that reports stay in one piece.
                        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                        counted
                            .into_iter()
                            .for_each(|each| counts.add(report(each)));
                    }
                });
            }
        });
        Ok(counts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks what the codec of a format makes of random histories.
    fn check_samples(&self, wire: &str, folder: &Path) -> Result<(Verdict, String), Failure> {
        let mut write = self.program(SAMPLES);
        write.args(["--wire", wire, "--seed", self.seed]);
        write.args(["--count", &self.histories.to_string()]);
        let path = folder.join(format!("{wire}.ndjson"));
        let seed = format!("seed={} ", self.seed);
        let arguments = ["--wire", wire, "--self-test"];
        self.check((wire, &seed), write, &path, &arguments)
    }

    /// Checks the hand-written transcripts, rendered for a format.
    fn check_rendered(&self, wire: &str, folder: &Path) -> Result<(Verdict, String), Failure> {
        let mut write = self.program(RENDERED);
        write.args(["--wire", wire]);
        let path = folder.join(format!("{wire}.rendered.ndjson"));
        let name = format!("{wire} rendered");
        let arguments = ["--wire", wire, "--rendered", "--self-test"];
        self.check((&name, ""), write, &path, &arguments)
    }

    /// Writes lines with one program and reads them with the SDK; gives what to print: the name,
    /// the seed if there is one, and the figures.
    fn check(
        &self,
        (name, seed): (&str, &str),
        mut write: Command,
        path: &Path,
        arguments: &[&str],
    ) -> Result<(Verdict, String), Failure> {
        let file = File::create(path)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
        let written = output_of(write.stdout(file).stderr(Stdio::piped()))?;
        if written.status.code() == Some(NO_CODEC) {
            return Ok((
                Verdict::NoCodec,
                format!("skipped sdk {name}: there is no codec"),
            ));
        }
        if !written.status.success() {
            let complaint = String::from_utf8_lossy(&written.stderr);
            let text = format!("sdk {name}: cannot write samples: {}", complaint.trim());
            return Ok((Verdict::Failed, text));
        }
        let mut check = tool::command(&self.python);
        check.arg(CHECK).args(arguments).arg(path);
        check.env("PYTHONUTF8", "1");
        let checked = output_of(check.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
        let text = String::from_utf8_lossy(&checked.stdout);
        let (details, figures) = match text.trim_end().rsplit_once('\n') {
            Some((details, figures)) => (format!("{details}\n"), figures),
            None => (String::new(), text.trim_end()),
        };
        let complaint = String::from_utf8_lossy(&checked.stderr);
        let text = format!("{details}{complaint}campaign sdk {name}: {seed}{figures}");
        let verdict = if checked.status.success() {
            Verdict::Passed
        } else {
            Verdict::Failed
        };
        Ok((verdict, text))
    }
}

/// The program that a line of cargo's messages names.
fn executable(line: &str) -> Option<PathBuf> {
    let message = crate::json::parse(line).ok()?;
    let path = message.get("executable")?.as_str()?;
    Some(PathBuf::from(path.as_ref()))
}

fn output_of(command: &mut Command) -> Result<std::process::Output, Failure> {
    let spelled = tool::spell(command);
    command
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .map_err(|error| Failure::new(format!("cannot start {spelled}: {error}")))
}

fn report(checked: Result<(Verdict, String), Failure>) -> Counts {
    match checked {
        Ok((verdict, text)) => {
            println!("{text}");
            match verdict {
                Verdict::Passed => Counts::ONE_PASSED,
                Verdict::Failed => Counts::ONE_FAILED,
                Verdict::NoCodec => Counts {
                    skipped: 1,
                    ..Counts::default()
                },
            }
        }
        Err(failure) => {
            println!("{failure}");
            Counts::ONE_FAILED
        }
    }
}

fn histories(scale: Option<&str>) -> Result<u64, Failure> {
    let scale = match scale.map(str::trim).filter(|text| !text.is_empty()) {
        None => 1.0,
        Some(text) => match text.parse::<f64>() {
            Ok(scale) if scale.is_finite() && scale > 0.0 => scale,
            _ => {
                let complaint = format!("THROUGHLINE_SCALE={text} is not a positive number");
                return Err(Failure::new(complaint));
            }
        },
    };
    Ok(((HISTORIES * scale) as u64).max(FEWEST))
}

#[cfg(test)]
mod tests {
    use super::histories;

    #[test]
    fn the_scale_is_a_factor_that_leaves_enough() {
        assert_eq!(histories(None).ok(), Some(10_000));
        assert_eq!(histories(Some("2")).ok(), Some(20_000));
        assert_eq!(histories(Some("0.001")).ok(), Some(100));
        assert!(histories(Some("-1")).is_err());
    }
}
