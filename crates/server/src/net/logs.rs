//! Where the log goes: standard error, one line for each event.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::LogFormat;

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLog {
    /// The filter cannot be read.
    #[error("server.log: {filter:?} is no filter: {source}")]
    Filter {
        /// The filter.
        filter: String,
        /// Why.
        source: ParseError,
    },
    /// A global subscriber is installed already.
    #[error("the log goes elsewhere already")]
    Taken,
}

/// Send what is traced to standard error, once for the whole process. A program that embeds the
/// server may have its own subscriber and leave this.
pub fn log_to_stderr(filter: &str, format: LogFormat) -> Result<(), BadLog> {
    let parsed = EnvFilter::try_new(filter).map_err(|source| BadLog::Filter {
        filter: filter.to_owned(),
        source,
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let set = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    set.map_err(|_| BadLog::Taken)
}
