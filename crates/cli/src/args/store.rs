//! Commands that work on a store.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use throughline::thread::MessageName;
use throughline_store::{NodeId, PageToken, Position, RunId, RunState, ThreadId};
use throughline_wire::Format;

use super::InputLimits;
use crate::time::Moment;

#[derive(Debug, Subcommand)]
pub(crate) enum Threads {
    /// List threads, last touched first.
    List(ThreadsList),
    /// Show the messages of a thread.
    Show(Show),
    /// Show the branches of a thread: its nodes, which node each continues, and where the head is.
    Tree(Tree),
    /// Write a thread as NDJSON (throughline.export/2).
    Export(Export),
    /// Import an exported thread, or a transcript in a vendor's format.
    Import(Import),
    /// Create a thread that continues another one. Both share the history up to that point.
    Fork(Fork),
    /// Undo the compaction of a thread: from the next turn on, models are sent all of it.
    Uncompact(Uncompact),
    /// Exclude a message from compaction, by its number in digests.
    Pin(Pin),
    /// Hand a thread that a vendor keeps over to another upstream, or to our store.
    HandOver(HandOver),
    /// Remove what a message says, everywhere in the store. Who did it and when stays.
    Redact(Redact),
    /// Delete a thread. Copies that vendors have are listed.
    Delete(RemoveThread),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ThreadsList {
    /// The maximum number of entries.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,

    /// Continue after the page that returned this token.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) after: Option<PageToken>,

    /// List only threads with an alias of this kind.
    #[arg(long, value_name = "KIND")]
    pub(crate) alias_kind: Option<String>,

    /// List only threads whose application data has this member with this text.
    #[arg(long, value_name = "KEY=TEXT", value_parser = pair)]
    pub(crate) meta: Vec<(String, String)>,

    /// List only threads whose title contains this text, in letters of either case.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,

    /// List only threads whose newest turn was made by this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// List only threads whose newest turn asked this model, as UPSTREAM/MODEL or MODEL.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// List only threads whose newest run is in this state; can be given several times.
    #[arg(long, value_name = "STATE", value_parser = state)]
    pub(crate) state: Vec<RunState>,

    /// List only threads touched at or after this time: `2026-11-15`, `2026-11-15T05:47:52Z`, or `2h`,
    /// `7d` ago.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<Moment>,

    /// List only threads touched before this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) before: Option<Moment>,

    /// List only threads created at or after this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) created_since: Option<Moment>,

    /// List only threads created before this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) created_before: Option<Moment>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Tree {
    /// A thread id, or an alias as KIND:NAME.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// The maximum number of nodes.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) limit: usize,

    /// Continue after this node, the last one of the page before.
    #[arg(long, value_name = "NODE")]
    pub(crate) after: Option<NodeId>,
}

/// The message keeps its place, and models see `[redacted]` in it. Branches and forks that share the message show
/// the same. Copies that vendors and clients have are not changed.
#[derive(Debug, ClapArgs)]
pub(crate) struct Redact {
    /// A thread id, an alias as KIND:NAME, or a run_…, resp_… or node_… id at which a branch ends.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// The position of the message, as `threads show` prints it (`#7` or `7`), or its id, msg_….
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: MessageName,

    /// The name of the person who removes it (default: the user of this machine).
    #[arg(long, value_name = "NAME", value_parser = super::approvals::person)]
    pub(crate) by: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Show {
    /// A thread id, an alias as KIND:NAME, or a run_…, resp_… or node_… id.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// The maximum number of messages.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,

    /// Show the first messages after this position instead of the last messages.
    #[arg(long, value_name = "POSITION")]
    pub(crate) after: Option<Position>,

    /// Show the nodes of all branches instead of messages.
    #[arg(long, conflicts_with_all = ["after", "limit"])]
    pub(crate) tree: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Export {
    /// A thread id, an alias as KIND:NAME, or a run_…, resp_… or node_… id.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// Export only the branch that ends in the head, or in the given node.
    #[arg(long)]
    pub(crate) branch: bool,

    /// Write to this file, which must not exist, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Import {
    /// Import under this id. Runs get new ids; aliases of the thread are omitted.
    #[arg(long = "as", value_name = "ID", value_parser = thread)]
    pub(crate) rename: Option<ThreadId>,

    /// The file is a transcript in this format; it becomes one run.
    #[arg(long, value_name = "FORMAT", value_parser = super::format)]
    pub(crate) from: Option<Format>,

    /// Refuse lines of an export larger than this.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    pub(crate) max_line_bytes: usize,

    #[command(flatten)]
    pub(crate) bounds: InputLimits,

    /// The file to read; `-` or no file reads standard input.
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Fork {
    /// A thread id, an alias as KIND:NAME, or a run_…, resp_… or node_… id.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// The id of the new thread (default: a generated one).
    #[arg(long, value_name = "NEW", value_parser = thread)]
    pub(crate) id: Option<ThreadId>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Uncompact {
    /// A thread id, or an alias as KIND:NAME.
    #[arg(value_name = "ID")]
    pub(crate) name: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Pin {
    /// A thread id, or an alias as KIND:NAME.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// The number of the message, as digests name it.
    #[arg(value_name = "NUMBER")]
    pub(crate) number: u64,

    /// Remove the pin.
    #[arg(long)]
    pub(crate) remove: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RemoveThread {
    /// A thread id, or an alias as KIND:NAME.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// Delete without confirmation.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Delete the copies of vendors too, where the vendor can. If a vendor fails, the thread stays.
    #[arg(long)]
    pub(crate) at_vendors: bool,

    /// The configuration file with the vendors (default: throughline.toml, if it exists).
    #[arg(long, value_name = "FILE", requires = "at_vendors")]
    pub(crate) config: Option<PathBuf>,
}

/// The history becomes what went through us, with what vendors that kept it have more; the next
/// upstream is sent all of it. The ids of those vendors stay on the thread.
#[derive(Debug, ClapArgs)]
pub(crate) struct HandOver {
    /// A thread id, or an alias as KIND:NAME.
    #[arg(value_name = "ID")]
    pub(crate) name: String,

    /// An upstream of the configuration, or `local` for our store. Our store also keeps what is
    /// handed to an upstream without `history = "service"`.
    #[arg(long, value_name = "UPSTREAM")]
    pub(crate) to: String,

    /// Do not ask vendors for what they have more than our record.
    #[arg(long)]
    pub(crate) no_read_back: bool,

    /// The configuration file (default: throughline.toml, if it exists).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs, newest first.
    List(RunsList),
    /// Show the journal of a run: its steps, calls and messages.
    Show {
        /// The run, run_… or resp_….
        run: RunId,
    },
    /// Resume a run that was interrupted or restored from a backup, with the agents of the configuration.
    /// Steps that finished are not repeated.
    Resume {
        /// The run, run_… or resp_….
        run: RunId,
        /// The configuration file (default: throughline.toml, if it exists).
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Publish an abandoned run. Calls without a result get a result with what is known.
    Publish {
        /// The run, run_… or resp_….
        run: RunId,
    },
    /// Discard an abandoned run. What it has published stays.
    Discard {
        /// The run, run_… or resp_….
        run: RunId,
    },
    /// Commands of the contract that this version does not have.
    #[command(external_subcommand)]
    NotImplemented(Vec<OsString>),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunsList {
    /// List only runs of this thread.
    #[arg(long, value_name = "ID", value_parser = thread)]
    pub(crate) thread: Option<ThreadId>,

    /// List only runs in this state; can be given several times.
    #[arg(long, value_name = "STATE", value_parser = state)]
    pub(crate) state: Vec<RunState>,

    /// The maximum number of entries.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,

    /// Continue after the page that returned this token.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) after: Option<PageToken>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Backup {
    /// The file to create; it must not exist.
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

fn moment(text: &str) -> Result<Moment, String> {
    Moment::parse(text).ok_or_else(|| {
        "write a date (2026-11-15), a time in UTC (2026-11-15T05:47:52Z), or how long ago (30m, 2h, 7d)"
            .to_owned()
    })
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=TEXT")?;
    Ok((key.to_owned(), value.to_owned()))
}
