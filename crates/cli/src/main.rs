//! The command line `throughline`.

mod allocator;
mod args;
mod compact;
mod completions;
mod convert;
mod failure;
mod input;
mod losses;
mod output;
mod progress;
mod resume;
mod serve;
mod store;
mod time;
mod validate;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command, Runs};
use failure::Failure;

/// A turn is made by one thread and stored by another, so that most of what is allocated is freed
/// elsewhere. With the allocator of the C library that takes a third of a turn's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return output::usage_error(&error),
    };
    let Some(command) = &args.command else {
        return exit_code(serve::run(&args, None), args.json);
    };
    if let Some(flag) = args.serve.first_given().filter(|_| !command.is_serve()) {
        let text = format!("{flag} is for serve alone; leave it out");
        return output::failure(&Failure::usage(text), args.json);
    }
    let result = match command {
        Command::Serve(serve) => serve::run(&args, Some(serve)),
        Command::Convert(convert) => convert::run(convert, args.json),
        Command::Validate(validate) => validate::run(validate, args.json),
        Command::Compact(compact) => compact::run(compact, args.json),
        Command::Runs(Runs::Resume { run, config }) => resume::run(&args, *run, config.as_ref()),
        Command::View(_)
        | Command::Threads(_)
        | Command::Runs(_)
        | Command::Approvals(_)
        | Command::Fsck
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Migrate
        | Command::Doctor => store::run(&args, command),
        Command::Completions(completions) => completions::run(completions),
        Command::NotImplemented(words) => Err(Failure::not_implemented("", words)),
    };
    exit_code(result, args.json)
}

fn exit_code(result: Result<ExitCode, Failure>, as_json: bool) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(failure) => output::failure(&failure, as_json),
    }
}
