//! Chores of the workspace, started as `cargo xtask`.
//!
//! Standard library only, so that a fresh checkout can test itself before anything else is built. JSON is
//! read with the model crate's reader, which is included as source because a dependency would make every
//! chore wait for that crate.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to the person who started it"
)]

use std::process::ExitCode;

mod bench;
mod campaign;
mod fuzz;
#[path = "../../crates/model/src/json/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::all,
    clippy::allow_attributes,
    reason = "the module is made for another crate and linted there; here only a part of it is used"
)]
mod json;
mod metadata;
mod tenants;
mod test;
mod tidy;
mod tool;
mod units;

use tool::Failure;

const HELP: &str = "\
Chores of the workspace.

cargo xtask test [--quick]
    Everything a change must pass: format, lints, arrows and licences, docs, tests, examples, a short
    fuzz run. --quick is for before a commit: format, lints, tidy, unit tests and fast integration tests; it
    prints what it left out.

cargo xtask clients [FAMILY…] [--json] [--list]
    Runs the published SDKs against the server, each on every vendor; all of them if none is named. --json
    prints one line of JSON for each family.

cargo xtask readme
    Runs the commands and programs that the README shows, as the test command does.

cargo xtask tidy [--shrink]
    The rules no compiler checks: which crate and which module may use which, licences, banned crates, names,
    lengths, words, subjects of commits, links. Known exceptions are in xtask/known.txt and may only shrink;
    --shrink lowers their numbers.

cargo xtask behaviours
    Writes the table of behaviours and their tests, docs/behaviours.md.

cargo xtask fuzz [TARGET…] [--seconds N] [--list]
    Fuzzes each target, or those named, for N seconds (60).

cargo xtask campaign [R…] [--tier C|N] [--minutes N] [--seed S]
    Runs the campaigns of guarantees at their full counts; all of them if none is named.
cargo xtask planted [NAME…] [tenants] [--small] [--large]
    Plants mistakes one after the other and says which test finds each; `compact-*` names all that begin so,
    `tenants` takes the conditions that keep tenants apart out of SQLite's statements.
cargo xtask bench [NAME…] [--list]
    Runs the bench programs in release mode; fails when a ratio is over its limit.

cargo xtask units [--fit]
    Compares token estimates with the vocabularies of five families, which it installs, and fails when a
    figure is over its limit. --fit prints weights that are fitted to one half of the texts.

cargo xtask help
    This text.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let outcome = match command {
        "test" => test::main(rest),
        "readme" => test::readme(rest),
        "clients" => test::families(rest),
        "tidy" => tidy::main(rest),
        "behaviours" => tidy::behaviours(rest),
        "fuzz" => fuzz::main(rest),
        "campaign" => campaign::main(rest),
        "planted" => campaign::planted(rest),
        "bench" => bench::main(rest),
        "units" => units::main(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(Failure::new(format!(
            "there is no chore called {other}; see `cargo xtask help`"
        ))),
    };
    outcome.unwrap_or_else(|failure| {
        eprintln!("error: {failure}");
        ExitCode::FAILURE
    })
}
