//! `throughline completions`.

use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::args::{Args, Completions};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(args: &Completions) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "throughline", &mut script);
    output::bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}
