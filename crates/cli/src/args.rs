//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use throughline_wire::Format;

/// Keeps the thread of AI conversations.
#[derive(Debug, Parser)]
#[command(name = "throughline", version, about, subcommand_required = true)]
#[command(after_help = "Exit codes: 0 yes or done, 1 no or unreadable, 2 wrong usage.")]
pub(crate) struct Args {
    /// Print JSON on standard output, errors included.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Convert a transcript between vendors.
    Convert(Convert),
    /// Print a completion script for a shell.
    Completions(Completions),
    /// What the contract names and this version does not have.
    #[command(external_subcommand)]
    NotBuilt(Vec<OsString>),
}

/// Reads an array of messages or items, a request body, a response body or a captured event
/// stream, and writes it in another format. Shape in is shape out. Standard output holds exactly
/// one JSON document; what the target cannot say is listed on standard error.
#[derive(Debug, ClapArgs)]
pub(crate) struct Convert {
    /// The format of the file.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) from: Format,

    /// The format to write.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) to: Format,

    /// Report losses and repairs as JSON instead of writing; exit 1 if there is any loss.
    #[arg(long)]
    pub(crate) check: bool,

    /// Write with line breaks and indents.
    #[arg(long, conflicts_with = "check")]
    pub(crate) pretty: bool,

    /// Repair the history for the target even if both formats are the same.
    #[arg(long)]
    pub(crate) repair: bool,

    /// Refuse files larger than this.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub(crate) max_bytes: usize,

    /// Refuse JSON nested deeper than this (at most 1024).
    #[arg(long, value_name = "LEVELS", default_value_t = 128)]
    pub(crate) max_depth: usize,

    /// Refuse lines and events of a captured stream larger than this.
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    pub(crate) max_event_bytes: usize,

    /// The file; `-` or nothing reads standard input.
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

fn format(name: &str) -> Result<Format, String> {
    name.parse()
        .map_err(|error: throughline_wire::UnknownFormat| error.to_string())
}
