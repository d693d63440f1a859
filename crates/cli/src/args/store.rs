//! Commands that work on a store.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use throughline_store::{PageToken, Position, RunId, RunState, ThreadId};
use throughline_wire::Format;

use super::Bounds;

#[derive(Debug, Subcommand)]
pub(crate) enum Threads {
    /// List threads, last touched first.
    List(ThreadsList),
    /// Show the messages of a thread.
    Show(Show),
    /// Write a thread as NDJSON (throughline.export/2).
    Export(Export),
    /// Read a thread that was exported, or a transcript of a vendor.
    Import(Import),
    /// Make a thread that goes on from another one. It shares everything up to there.
    Fork(Fork),
    /// Show models the whole thread again: what was folded is taken back, from the next turn on.
    Uncompact(Uncompact),
    /// Always show models a message in full, by its number in digests.
    Pin(Pin),
    /// Delete a thread.
    Delete(RemoveThread),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ThreadsList {
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,

    /// Go on where another page ended.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) after: Option<PageToken>,

    /// Only threads with another name of this kind.
    #[arg(long, value_name = "KIND")]
    pub(crate) alias_kind: Option<String>,

    /// Only threads whose application data has this member with this text.
    #[arg(long, value_name = "KEY=TEXT", value_parser = pair)]
    pub(crate) meta: Vec<(String, String)>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Show {
    /// A thread id, another name as KIND:NAME, or a run_…, resp_… or node_… id.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// At most so many messages.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,

    /// The first messages after this position; without it, the last ones of all.
    #[arg(long, value_name = "POSITION")]
    pub(crate) after: Option<Position>,

    /// Show the nodes of all branches instead of messages.
    #[arg(long, conflicts_with_all = ["after", "limit"])]
    pub(crate) tree: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Export {
    /// A thread id, another name as KIND:NAME, or a run_…, resp_… or node_… id.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// Only the branch that ends in the head, or in the node that is named.
    #[arg(long)]
    pub(crate) branch: bool,

    /// Write to this file, which must not exist, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Import {
    /// Import under this id. Runs get new ids; other names of the thread are left out.
    #[arg(long = "as", value_name = "ID", value_parser = thread)]
    pub(crate) rename: Option<ThreadId>,

    /// The file is a transcript in this format; it becomes one run.
    #[arg(long, value_name = "FORMAT", value_parser = super::format)]
    pub(crate) from: Option<Format>,

    /// Refuse lines of an export larger than this.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    pub(crate) max_line_bytes: usize,

    #[command(flatten)]
    pub(crate) bounds: Bounds,

    /// The file; `-` or nothing reads standard input.
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Fork {
    /// A thread id, another name as KIND:NAME, or a run_…, resp_… or node_… id.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// The id of the new thread; one is made if there is none.
    #[arg(long, value_name = "NEW", value_parser = thread)]
    pub(crate) id: Option<ThreadId>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Uncompact {
    /// A thread id, or another name as KIND:NAME.
    #[arg(value_name = "ID")]
    pub(crate) name: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Pin {
    /// A thread id, or another name as KIND:NAME.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// The number of the message, as digests name it.
    #[arg(value_name = "NUMBER")]
    pub(crate) number: u64,

    /// No longer show it in full.
    #[arg(long)]
    pub(crate) remove: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RemoveThread {
    /// A thread id, or another name as KIND:NAME.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs, newest first.
    List(RunsList),
    /// Show what is journaled of a run: its steps, calls and messages.
    Show {
        /// The run, run_… or resp_….
        run: RunId,
    },
    /// Go on with a run that died, or that came out of a backup, with the agents of the configuration.
    /// Nothing that has finished is done again.
    Resume {
        /// The run, run_… or resp_….
        run: RunId,
        /// The configuration; without it throughline.toml, if it is there.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Publish a run that was left behind. Calls without a result are answered with what is known.
    Publish {
        /// The run, run_… or resp_….
        run: RunId,
    },
    /// Throw a run away that was left behind. What it published stays.
    Discard {
        /// The run, run_… or resp_….
        run: RunId,
    },
    /// What the contract names and this version does not have.
    #[command(external_subcommand)]
    NotBuilt(Vec<OsString>),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunsList {
    /// Only runs of this thread.
    #[arg(long, value_name = "ID", value_parser = thread)]
    pub(crate) thread: Option<ThreadId>,

    /// Only runs in this state; can be given several times.
    #[arg(long, value_name = "STATE", value_parser = state)]
    pub(crate) state: Vec<RunState>,

    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,

    /// Go on where another page ended.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) after: Option<PageToken>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Backup {
    /// The copy; it must not exist.
    pub(crate) file: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Restore {
    /// A file that `backup` wrote.
    pub(crate) file: PathBuf,
}

pub(super) fn thread(text: &str) -> Result<ThreadId, String> {
    ThreadId::new(text).map_err(|error| error.to_string())
}

fn state(word: &str) -> Result<RunState, String> {
    RunState::named(word).ok_or_else(|| {
        let words: Vec<&str> = RunState::ALL.iter().map(|state| state.as_str()).collect();
        format!("a state is one of {}", words.join(", "))
    })
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=TEXT")?;
    Ok((key.to_owned(), value.to_owned()))
}
