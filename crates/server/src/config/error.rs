//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::PathBuf;

use crate::suggest::did_you_mean;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Nowhere: it is the default.
    Default,
    /// In a file.
    File {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// In a variable of the environment.
    Environment {
        /// The variable.
        variable: String,
    },
    /// On the command line.
    Flag {
        /// The flag, dashes included.
        flag: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line } => write!(f, "{}:{line}", file.display()),
            Self::Environment { variable } => f.write_str(variable),
            Self::Flag { flag } => f.write_str(flag),
        }
    }
}

/// Why a server cannot start with this configuration. Each says where, which key and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}:{line}:{column}: not TOML: {message}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// There is no such key, or it cannot have this value.
    #[error("{origin}: {key}: {problem}")]
    Wrong {
        /// Where it stands.
        origin: Origin,
        /// The key.
        key: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A key, or the value that it has, belongs to a feature which this version does not have.
    #[error("{origin}: {key}: {feature} is not built in this version; take it out")]
    NotBuilt {
        /// Where it stands.
        origin: Origin,
        /// The key, with its value if only that is not built.
        key: String,
        /// The feature.
        feature: &'static str,
    },
}

impl ConfigError {
    pub(super) fn unknown(origin: Origin, key: String, near: &[impl AsRef<str>]) -> Self {
        Self::Wrong {
            origin,
            key,
            problem: format!("unknown key{}", did_you_mean(near)),
        }
    }

    /// Where the key stands, and the key, if it is about one.
    fn place(&self) -> Option<(&Origin, &str)> {
        match self {
            Self::Unreadable { .. } | Self::Syntax { .. } => None,
            Self::Wrong { origin, key, .. } | Self::NotBuilt { origin, key, .. } => {
                Some((origin, key))
            }
        }
    }

    /// The key that it is about, if it is about one.
    pub fn key(&self) -> Option<&str> {
        self.place().map(|(_, key)| key)
    }

    /// The line of the file, if there is one.
    pub fn line(&self) -> Option<usize> {
        match (self, self.place()) {
            (Self::Syntax { line, .. }, _) | (_, Some((Origin::File { line, .. }, _))) => {
                Some(*line)
            }
            _ => None,
        }
    }
}
