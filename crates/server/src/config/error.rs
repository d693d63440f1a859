//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::PathBuf;

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
    /// There is no such key.
    #[error("{origin}: {key}: unknown key{}", crate::suggest::did_you_mean(near))]
    Unknown {
        /// Where it stands.
        origin: Origin,
        /// The key as it was written.
        key: String,
        /// Keys that may have been meant.
        near: Vec<String>,
    },
    /// A key has a value that it cannot have.
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
    /// The key that it is about, if it is about one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Unreadable { .. } | Self::Syntax { .. } => None,
            Self::Unknown { key, .. } | Self::Wrong { key, .. } | Self::NotBuilt { key, .. } => {
                Some(key)
            }
        }
    }

    /// The line of the file, if there is one.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Syntax { line, .. } => Some(*line),
            Self::Unknown { origin, .. }
            | Self::Wrong { origin, .. }
            | Self::NotBuilt { origin, .. } => match origin {
                Origin::File { line, .. } => Some(*line),
                Origin::Default | Origin::Environment { .. } | Origin::Flag { .. } => None,
            },
            Self::Unreadable { .. } => None,
        }
    }
}
