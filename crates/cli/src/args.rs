//! The command line: commands, flags and their help texts.

mod approvals;
mod compact;
mod serve;
mod store;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use throughline_model::json;
use throughline_store::Tenant;
use throughline_wire::transcript::Limits;
use throughline_wire::{Format, sse};

pub(crate) use approvals::{Approvals, ApprovalsAnswer, ApprovalsList};
pub(crate) use compact::{Compact, Strategy, TokenCount, View, Vocabulary};
pub(crate) use serve::Serve;
pub(crate) use store::{
    Backup, Export, Fork, HandOver, Import, Pin, Redact, RemoveThread, Restore, Runs, RunsList,
    Show, Threads, ThreadsList, Tree, Uncompact,
};

/// The default store.
const STORE: &str = "sqlite://throughline.db";

/// Stores AI conversations durably. Without a command it starts the server.
#[derive(Debug, Parser)]
#[command(name = "throughline", version, about)]
#[command(after_help = "Exit codes: 0 success or yes, 1 failure or no, 2 wrong usage.")]
pub(crate) struct Args {
    /// Print JSON on standard output, errors included.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The store: `sqlite://PATH` (default: `sqlite://throughline.db`).
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// The tenant whose data is used.
    #[arg(long, global = true, value_name = "T", default_value = "local", value_parser = tenant)]
    pub(crate) tenant: Tenant,

    #[command(flatten)]
    pub(crate) serve: Serve,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Args {
    /// The store, for commands that have no configuration.
    pub(crate) fn store(&self) -> &str {
        self.store.as_deref().unwrap_or(STORE)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the Responses API over HTTP (the default command).
    Serve(Serve),
    /// Convert a transcript between vendors.
    Convert(Convert),
    /// Check whether a vendor would accept a history, and list the rules that it breaks.
    Validate(Validate),
    /// Replace older tool calls of a transcript by digests.
    Compact(Compact),
    /// Show what a model would be sent of a thread, and how it was compacted.
    View(View),
    /// List, show, export, import, fork, hand over and delete threads; pin and redact messages, undo
    /// compactions.
    #[command(subcommand)]
    Threads(Threads),
    /// List and show runs; resume, publish or discard abandoned ones.
    #[command(subcommand)]
    Runs(Runs),
    /// List calls that wait for approval, and approve or deny them.
    #[command(subcommand)]
    Approvals(Approvals),
    /// Check every digest and every reference of the store. Exit 1 if something is damaged.
    Fsck,
    /// Write a copy of the whole store to a new file while it is in use.
    Backup(Backup),
    /// Create the store from a backup. Runs that were active in it stay stopped until they are resumed.
    Restore(Restore),
    /// Migrate the store to the schema of this version.
    Migrate,
    /// Report the durability settings of the store as read back from it. Exit 1 if one is wrong.
    Doctor,
    /// Print a completion script for a shell.
    Completions(Completions),
    /// Commands of the contract that this version does not have.
    #[command(external_subcommand)]
    NotImplemented(Vec<OsString>),
}

impl Command {
    pub(crate) fn is_serve(&self) -> bool {
        matches!(self, Self::Serve(_))
    }
}

/// Reads an array of messages or items, a request body, a response body or a captured event
/// stream, and writes it in another format. Shape in is shape out. Standard output holds exactly
/// one JSON document; what the target cannot express is listed on standard error.
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

    #[command(flatten)]
    pub(crate) bounds: InputLimits,

    /// The file to read; `-` or no file reads standard input.
    pub(crate) file: Option<PathBuf>,
}

/// Checks a request body or an array of messages or items against every known rule of the vendor.
/// Exit 0 if it would be accepted, 1 if not.
#[derive(Debug, ClapArgs)]
pub(crate) struct Validate {
    /// The vendor's format.
    #[arg(long = "for", value_name = "FORMAT", value_parser = format)]
    pub(crate) target: Format,

    /// Read the file in this format and render it for the vendor first.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) from: Option<Format>,

    /// The generation of the vendor's models.
    #[arg(long, value_enum, default_value_t = Generation::Newest)]
    pub(crate) generation: Generation,

    /// The vendor stores items, so that requests can refer to them by id.
    #[arg(long)]
    pub(crate) stored: bool,

    /// Extended thinking is on.
    #[arg(long)]
    pub(crate) thinking: bool,

    /// Encrypted and signed items in the history belong to another account.
    #[arg(long)]
    pub(crate) other_account: bool,

    #[command(flatten)]
    pub(crate) bounds: InputLimits,

    /// The file to read; `-` or no file reads standard input.
    pub(crate) file: Option<PathBuf>,
}

/// The generation of a vendor's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Generation {
    /// The newest models.
    Newest,
    /// The models before those.
    Older,
}

/// Limits on the size of input files.
#[derive(Debug, ClapArgs)]
pub(crate) struct InputLimits {
    /// Refuse files larger than this.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub(crate) max_bytes: usize,

    /// Refuse JSON nested deeper than this (at most 1024).
    #[arg(long, value_name = "LEVELS", default_value_t = 128)]
    pub(crate) max_depth: usize,

    /// Refuse lines and events of a captured stream larger than this.
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    pub(crate) max_event_bytes: usize,
}

impl InputLimits {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            file_bytes: self.max_bytes,
            json: json::Limits {
                depth: self.max_depth,
                ..json::Limits::default()
            },
            sse: sse::Limits {
                line_bytes: self.max_event_bytes,
                event_bytes: self.max_event_bytes,
            },
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// The shell to write the script for.
    pub(crate) shell: clap_complete::Shell,
}

fn tenant(name: &str) -> Result<Tenant, String> {
    Tenant::new(name).map_err(|error| error.to_string())
}

fn format(name: &str) -> Result<Format, String> {
    name.parse()
        .map_err(|error: throughline_wire::UnknownFormat| error.to_string())
}
