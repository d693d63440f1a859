//! `throughline serve`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Serves models of any vendor through OpenAI's stateful Responses API. Without configuration it
/// listens on 127.0.0.1:8377, stores everything in throughline.db, uses the vendors whose API keys
/// are set (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY) and offers the model `demo`.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Serve {
    /// The configuration file (default: throughline.toml in the working directory, if it exists).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The address to listen on (default: 127.0.0.1:8377); port 0 selects a free port.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
}

impl Serve {
    /// The name of the first flag that was given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        match (&self.config, &self.listen) {
            (Some(_), _) => Some("--config"),
            (None, Some(_)) => Some("--listen"),
            (None, None) => None,
        }
    }
}
