//! The command line `throughline`.

mod args;
mod completions;
mod convert;
mod failure;
mod input;
mod output;
mod progress;
mod store;
mod time;
mod validate;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use failure::Failure;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return failure::usage(&error),
    };
    let done = match &args.command {
        Command::Convert(convert) => convert::run(convert, args.json),
        Command::Validate(validate) => validate::run(validate, args.json),
        Command::Threads(_)
        | Command::Runs(_)
        | Command::Approvals(_)
        | Command::Fsck
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Migrate
        | Command::Doctor => store::run(&args),
        Command::Completions(completions) => completions::run(completions),
        Command::NotBuilt(words) => Err(Failure::not_built("", words)),
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(args.json),
    }
}
