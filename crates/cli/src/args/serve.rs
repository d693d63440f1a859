//! `throughline serve`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Serves any vendor's models by OpenAI's stateful Responses API. Without any configuration it
/// listens on 127.0.0.1:8377, keeps everything in throughline.db, asks the vendors whose usual
/// variables are set (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY) and has the model `demo`.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Serve {
    /// The configuration (throughline.toml of this folder if there is one).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Where to listen (127.0.0.1:8377 if nothing else is said); port 0 takes a free one.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
}

impl Serve {
    /// The flag that was given, if one was.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        match (&self.config, &self.listen) {
            (Some(_), _) => Some("--config"),
            (None, Some(_)) => Some("--listen"),
            (None, None) => None,
        }
    }
}
