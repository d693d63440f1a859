//! Runs the commands the README shows.
//!
//! In a block that is marked `console`, a line that starts with `$ ` is a command and the lines up to the next
//! one are what it prints. Commands that use the `throughline` binary are run in the workspace folder and
//! compared; a line `...` stands for any lines, and a command shown without output may print what it likes.
//! A block marked `console no-run` is left alone, as are all other commands.

use super::{Counts, Outcome};
use crate::tool::{self, Failure};

#[derive(Debug, PartialEq, Eq)]
struct Example {
    line: usize,
    command: String,
    output: Vec<String>,
}

pub(super) fn run_examples() -> Outcome {
    let Ok(text) = std::fs::read_to_string(tool::root().join("README.md")) else {
        println!("there is no README yet");
        return Outcome::Done(Counts::default());
    };
    let examples = examples(&text);
    if examples.is_empty() {
        println!("the README shows no command to run");
        return Outcome::Done(Counts::default());
    }
    if let Err(failure) =
        tool::run(tool::cargo().args(["build", "--quiet", "--locked", "--bin", "throughline"]))
    {
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
    println!(
        "{} of {} commands print what the README says",
        counts.passed,
        examples.len()
    );
    match counts.failed {
        0 => Outcome::Done(counts),
        failed => Outcome::Failed(counts, format!("{failed} commands differ from the README")),
    }
}

fn run(example: &Example) -> Result<(), Failure> {
    let binaries =
        tool::root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(binaries.join("debug")).chain(std::env::split_paths(&path));
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

fn agree(expected: &[&str], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (Some((&"...", rest)), _) => (0..=printed.len()).any(|skip| agree(rest, &printed[skip..])),
        (Some((wanted, expected)), Some((line, printed))) => {
            wanted == line && agree(expected, printed)
        }
        (None, None) => true,
        _ => false,
    }
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
    }
}
