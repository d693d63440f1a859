//! Runs the commands the README shows.
//!
//! In a block that is marked `console`, a line that starts with `$ ` is a command and the lines up to the next
//! one are what it prints. Commands that use the `throughline` binary are run in the workspace folder and
//! compared; a line `...` stands for any lines, `…` in a line for any text, and a command shown without output
//! may print what it likes. A block marked `console no-run` is left alone, as are all other commands; one marked
//! `console session` is for `session.rs`.

use std::path::{Path, PathBuf};

use super::{Counts, FEATURES, Outcome, session};
use crate::tool::{self, Failure};

#[derive(Debug, PartialEq, Eq)]
struct Example {
    line: usize,
    command: String,
    output: Vec<String>,
}

pub(super) fn run_examples(python: Option<&Path>) -> Outcome {
    let Ok(text) = std::fs::read_to_string(tool::root().join("README.md")) else {
        println!("there is no README yet");
        return Outcome::Done(Counts::default());
    };
    let examples = examples(&text);
    let steps = session::steps(&text);
    if examples.is_empty() && steps.is_empty() {
        println!("the README shows no command to run");
        return Outcome::Done(Counts::default());
    }
    if let Err(failure) = build() {
        return Outcome::Failed(Counts::ONE_FAILED, failure.to_string());
    }
    let mut counts = Counts::default();
    for example in &examples {
        match run(example) {
            Ok(()) => counts.passed += 1,
            Err(failure) => {
                counts.failed += 1;
                println!(
                    "README.md:{}: $ {}\n{failure}",
                    example.line, example.command
                );
            }
        }
    }
    counts.add(session::run(&steps, python));
    println!(
        "{} of {} commands and programs print what the README says",
        counts.passed,
        examples.len() + steps.len()
    );
    match counts.failed {
        0 => Outcome::Done(counts),
        failed => Outcome::Failed(counts, format!("{failed} commands differ from the README")),
    }
}

/// Builds the binary as the tests of the command line do, so that a test run has it already.
fn build() -> Result<(), Failure> {
    let mut cargo = tool::cargo();
    cargo.args(["test", "--no-run", "--quiet", "--locked", "--workspace"]);
    tool::run(cargo.args(["--features", FEATURES, "--test", "cli"]))
}

/// Where the binaries of the test build are.
pub(super) fn binaries() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    tool::root().join(target).join("debug")
}

fn run(example: &Example) -> Result<(), Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(binaries()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders)
        .map_err(|error| Failure::new(format!("the search path cannot be extended: {error}")))?;
    let printed = tool::output(
        tool::command("sh")
            .args(["-c", &example.command])
            .env("PATH", path),
    )?;
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let expected: Vec<&str> = example.output.iter().map(String::as_str).collect();
    if expected.is_empty() || agree(&expected, &printed) {
        return Ok(());
    }
    Err(Failure::new(format!("printed:\n{}", printed.join("\n"))))
}

pub(super) fn agree(expected: &[&str], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (Some((&"...", rest)), _) => (0..=printed.len()).any(|skip| agree(rest, &printed[skip..])),
        (Some((wanted, expected)), Some((line, printed))) => {
            fits(wanted, line) && agree(expected, printed)
        }
        (None, None) => true,
        _ => false,
    }
}

/// Whether a line is as wanted, where `…` may be any text.
fn fits(wanted: &str, line: &str) -> bool {
    let Some((start, rest)) = wanted.split_once('…') else {
        return wanted == line;
    };
    let Some(line) = line.strip_prefix(start) else {
        return false;
    };
    let mut starts = line
        .char_indices()
        .map(|(place, _)| place)
        .chain([line.len()]);
    starts.any(|place| line.get(place..).is_some_and(|line| fits(rest, line)))
}

fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    // None outside of blocks, and whether a block inside is ours.
    let mut block: Option<bool> = None;
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            block = match block {
                None => Some(info.trim() == "console"),
                Some(_) => None,
            };
            open = false;
            continue;
        }
        if block != Some(true) {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            open = uses_binary(command);
            if open {
                examples.push(Example {
                    line: index + 1,
                    command: command.to_owned(),
                    output: Vec::new(),
                });
            }
        } else if let Some(example) = examples.last_mut().filter(|_| open) {
            example.output.push(line.trim_end().to_owned());
        }
    }
    for example in &mut examples {
        // An empty line before the next command is for the eye.
        while example.output.last().is_some_and(String::is_empty) {
            example.output.pop();
        }
    }
    examples
}

fn uses_binary(command: &str) -> bool {
    command
        .split(['|', ';', '&'])
        .any(|part| part.split_whitespace().next() == Some("throughline"))
}

#[cfg(test)]
mod tests {
    use super::{agree, examples};

    #[test]
    fn commands_of_the_binary_are_taken_with_their_output() {
        let text = "\
text
```console
$ cargo build
Compiling
$ throughline validate a.json
ok

$ cat a | throughline convert
```
```sh
$ throughline no
```
```console no-run
$ throughline no
```
";
        let found: Vec<(usize, String, Vec<String>)> = examples(text)
            .into_iter()
            .map(|e| (e.line, e.command, e.output))
            .collect();
        let expected = [
            (
                5,
                "throughline validate a.json".to_owned(),
                vec!["ok".to_owned()],
            ),
            (8, "cat a | throughline convert".to_owned(), Vec::new()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn dots_stand_for_any_lines() {
        assert!(agree(&["a", "...", "d"], &["a", "b", "c", "d"]));
        assert!(agree(&["..."], &[]));
        assert!(!agree(&["a", "...", "d"], &["a", "b"]));
        assert!(!agree(&["a"], &["a", "b"]));
        assert!(agree(&["{\"id\":\"…\",…}"], &["{\"id\":\"x\",\"y\":1}"]));
        assert!(!agree(&["a…c"], &["abd"]));
    }
}
