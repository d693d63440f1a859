//! Why a server cannot start.

use std::net::SocketAddr;

use throughline_store::RunId;

use crate::config::ConfigError;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be opened.
    #[error("the store cannot be opened: {0}")]
    Store(#[from] throughline_store::Error),
    /// The address cannot be listened on.
    #[error("{address} cannot be listened on: {source}; is another server running there?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The system has no threads for connections.
    #[error("no thread for connections can be started: {0}")]
    Threads(std::io::Error),
    /// A run cannot be resumed.
    #[error("{run} cannot be gone on with: {why}")]
    Resume {
        /// The run.
        run: RunId,
        /// Why.
        why: String,
    },
}
