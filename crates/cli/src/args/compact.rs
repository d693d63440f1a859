//! Commands that show what a model would be given.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use throughline_compact::Policy;
use throughline_wire::Format;

use super::{Bounds, format};

/// Reads an array of messages or items, a request body, a response body or a captured event
/// stream, puts digests in the place of older tool calls, and writes it in the same shape. Standard
/// output holds exactly one JSON document; what was done is said in one line on standard error.
///
/// The newest calls stay in full, and so do system text and the first request. A digest names each
/// call in a line, with the number of the message that has all of it: `#12` is the position that
/// `threads import` gives it. A history that is small enough comes out as it went in.
#[derive(Debug, ClapArgs)]
pub(crate) struct Compact {
    /// The format of the file.
    #[arg(long, value_name = "FORMAT", default_value = "neutral", value_parser = format)]
    pub(crate) from: Format,

    /// The format to write; the same if nothing is said.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) to: Option<Format>,

    /// Calls that stay in full: whole rounds, until there are at least so many.
    #[arg(long, value_name = "N", default_value_t = Policy::default().recent_calls)]
    pub(crate) recent: u32,

    /// Tokens of tool history above which it is compacted. With a budget, no less is worth it
    /// until the budget is reached.
    #[arg(long, value_name = "N", default_value_t = Policy::default().threshold)]
    pub(crate) threshold: u64,

    /// Tokens that everything together may have: system text, tools and messages.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget: Option<u64>,

    /// How calls and results are written.
    #[arg(long, value_enum, default_value_t = Strategy::Native)]
    pub(crate) strategy: Strategy,

    #[command(flatten)]
    pub(crate) bounds: Bounds,

    /// The file; `-` or nothing reads standard input.
    pub(crate) file: Option<PathBuf>,
}

/// How tool history reaches a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Strategy {
    /// As the vendor's own calls and results.
    Native,
    /// As text, for models that refuse calls in their history.
    Text,
}

/// Shows the messages that a model would be given next: the thread's record with digests in the
/// place of what was compacted, and compacted further if it has grown out of its limits. Nothing
/// is stored and nothing is deleted.
#[derive(Debug, ClapArgs)]
pub(crate) struct View {
    /// A thread id, another name as KIND:NAME, or a run_…, resp_… or node_… id.
    #[arg(value_name = "THREAD")]
    pub(crate) name: String,

    /// Show it as this model's vendor would be sent it: gpt-…, o…, claude-…, gemini-…, or
    /// UPSTREAM/MODEL. Without it, in our own form.
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,

    /// Tokens that the messages may have together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget: Option<u64>,

    /// Show the whole record, as if nothing had ever been compacted.
    #[arg(long, conflicts_with = "budget")]
    pub(crate) full: bool,
}
