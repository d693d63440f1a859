//! Commands that show what a model would be sent.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use throughline_compact::Policy;
use throughline_wire::Format;

use super::{InputLimits, format};

/// Reads an array of messages or items, a request body, a response body or a captured event
/// stream, puts digests in the place of older tool calls, and writes it in the same shape. Standard
/// output holds exactly one JSON document; a report of one line goes to standard error.
///
/// The newest calls stay in full, and so do system text and the first request. A digest has one
/// line for each call, with the number of the full message: `#12` is the position that
/// `threads import` gives it. A history that is small enough is written unchanged.
#[derive(Debug, ClapArgs)]
pub(crate) struct Compact {
    /// The format of the file.
    #[arg(long, value_name = "FORMAT", default_value = "neutral", value_parser = format)]
    pub(crate) from: Format,

    /// The format to write (default: the format of the file).
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) to: Option<Format>,

    /// The minimum number of calls that stay in full, in whole rounds.
    #[arg(long, value_name = "N", default_value_t = Policy::default().recent_calls)]
    pub(crate) recent: u32,

    /// Tokens of tool history above which it is compacted. With a budget, less than this is not
    /// compacted until the budget is reached.
    #[arg(long, value_name = "N", default_value_t = Policy::default().threshold)]
    pub(crate) threshold: u64,

    /// The maximum number of tokens of system text, tools and messages together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget: Option<u64>,

    /// How calls and results are written.
    #[arg(long, value_enum, default_value_t = Strategy::Native)]
    pub(crate) strategy: Strategy,

    /// How the tokens of what is written are counted: `estimate`, or `exact` with a vocabulary of
    /// OpenAI beside the estimate, `o200k` or `cl100k`.
    #[arg(long, value_name = "estimate|exact[:VOCABULARY]", default_value = "estimate", value_parser = token_count)]
    pub(crate) count: TokenCount,

    #[command(flatten)]
    pub(crate) bounds: InputLimits,

    /// The file to read; `-` or no file reads standard input.
    pub(crate) file: Option<PathBuf>,
}

/// How tool calls and results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Strategy {
    /// As the vendor's own calls and results.
    Native,
    /// As text, for models that refuse calls in their history.
    Text,
}

/// How the tokens of what is written are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TokenCount {
    /// Estimated, as for every compaction.
    #[default]
    Estimate,
    /// With a vocabulary too.
    Exact(Vocabulary),
}

/// A vocabulary that was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vocabulary {
    /// Of GPT-4o and later models of OpenAI.
    O200k,
    /// Of GPT-4 and GPT-3.5.
    Cl100k,
}

impl Vocabulary {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
        }
    }
}

/// Reads the value of `--count`.
fn token_count(word: &str) -> Result<TokenCount, String> {
    match word {
        "estimate" => Ok(TokenCount::Estimate),
        "exact" | "exact:o200k" => Ok(TokenCount::Exact(Vocabulary::O200k)),
        "exact:cl100k" => Ok(TokenCount::Exact(Vocabulary::Cl100k)),
        _ => Err("expected estimate, exact, exact:o200k or exact:cl100k".to_owned()),
    }
}

/// Shows the messages that a model would be sent next: the thread's record with digests in place
/// of what was compacted, compacted further if it exceeds its limits. Nothing is stored and nothing
/// is deleted.
#[derive(Debug, ClapArgs)]
pub(crate) struct View {
    /// A thread id, an alias as KIND:NAME, or a run_…, resp_… or node_… id.
    #[arg(value_name = "THREAD")]
    pub(crate) name: String,

    /// Show it in the format of this model's vendor: gpt-…, o…, claude-…, gemini-…, or
    /// UPSTREAM/MODEL. Without it, in the neutral format.
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,

    /// The maximum number of tokens of all messages.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget: Option<u64>,

    /// Show the whole record without compaction.
    #[arg(long, conflicts_with = "budget")]
    pub(crate) full: bool,
}
