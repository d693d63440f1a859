//! Starts the bench programs in release mode.

use std::process::ExitCode;

use crate::tool::{self, Failure};

const FOLDER: &str = "crates/bench/src/bin";

/// Features that a program needs.
const FEATURES: &[(&str, &str)] = &[("compaction", "compaction")];

/// `cargo xtask bench`
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode, Failure> {
    let programs = programs()?;
    if arguments.iter().any(|argument| argument == "--list") {
        programs.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    let (options, names): (Vec<String>, Vec<String>) = arguments
        .iter()
        .cloned()
        .partition(|argument| argument.starts_with("--"));
    if let Some(unknown) = names.iter().find(|name| !programs.contains(name)) {
        return Err(Failure::new(format!(
            "there is no bench {unknown}; see `cargo xtask bench --list`"
        )));
    }
    let chosen = if names.is_empty() { &programs } else { &names };
    if chosen.is_empty() {
        println!("there are no bench programs in {FOLDER}");
    }
    let mut over = Vec::new();
    for name in chosen {
        let binary = format!("bench-{name}");
        // Standard output is one JSON text then.
        if !options.iter().any(|option| option == "--json") {
            println!("== {name}");
        }
        let arguments = [
            "run",
            "--quiet",
            "--release",
            "--locked",
            "--package",
            "throughline-bench",
            "--bin",
        ];
        let mut command = tool::cargo();
        command.args(arguments).arg(binary);
        for (_, feature) in FEATURES.iter().filter(|(program, _)| program == name) {
            command.args(["--features", feature]);
        }
        // What looks like an option is one of the program.
        command.arg("--").args(&options);
        if let Err(failure) = tool::run(&mut command) {
            println!("{failure}");
            over.push(name.as_str());
        }
    }
    if over.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("over the limit: {}", over.join(", "));
    Ok(ExitCode::FAILURE)
}

/// The names of the programs: each has a folder.
fn programs() -> Result<Vec<String>, Failure> {
    let folder = tool::root().join(FOLDER);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let unreadable = |error| Failure::new(format!("cannot list {FOLDER}: {error}"));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let file = entry
            .map_err(unreadable)?
            .file_name()
            .to_string_lossy()
            .into_owned();
        names.push(file);
    }
    names.sort();
    Ok(names)
}
