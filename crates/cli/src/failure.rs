//! What went wrong, where, and what to do: one line on standard error, or JSON on standard output.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use throughline_model::json::{JsonError, ObjectWriter};
use throughline_wire::{DecodeError, Problem};

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    path: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    code: u8,
}

/// The exit code of a command that failed.
const FAILED: u8 = 1;
/// The exit code of a wrong command line.
pub(crate) const USAGE: u8 = 2;

/// Commands of the contract that later versions bring.
const PLANNED: &[&str] = &["chat", "keys", "copy", "init"];

impl Failure {
    fn new(message: String, code: u8) -> Self {
        Self {
            message,
            path: None,
            line: None,
            column: None,
            code,
        }
    }

    /// A file that is not of its format.
    pub(crate) fn decode(error: DecodeError, file: Option<&Path>) -> Self {
        let mut failure = Self::new(format!("{}: {error}", name(file)), FAILED);
        if let Problem::Json(error) = &error.problem {
            failure.line = Some(error.line);
            failure.column = Some(error.column);
        }
        failure.path = Some(error.path).filter(|path| !path.is_empty());
        failure
    }

    /// A file that is not JSON.
    pub(crate) fn not_json(error: &JsonError, file: Option<&Path>) -> Self {
        let mut failure = Self::new(format!("{}: {error}", name(file)), FAILED);
        failure.line = Some(error.line);
        failure.column = Some(error.column);
        failure
    }

    /// A file beyond the limit.
    pub(crate) fn too_large(file: Option<&Path>, limit: usize) -> Self {
        let message = format!(
            "{}: larger than {limit} bytes; raise --max-bytes",
            name(file)
        );
        Self::new(message, FAILED)
    }

    /// A combination of arguments that makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(message.into(), USAGE)
    }

    /// A file that cannot be read at all.
    pub(crate) fn unreadable(file: Option<&Path>, error: &std::io::Error) -> Self {
        Self::new(format!("{}: cannot be read: {error}", name(file)), FAILED)
    }

    /// Standard output that cannot be written.
    pub(crate) fn unwritable(error: &std::io::Error) -> Self {
        Self::new(
            format!("standard output cannot be written: {error}"),
            FAILED,
        )
    }

    /// Any other failure.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(message.into(), FAILED)
    }

    /// A file that is not what it should be at a place in it.
    pub(crate) fn at_position(message: String, path: &str, line: u64, column: u64) -> Self {
        let mut failure = Self::new(message, FAILED);
        failure.path = Some(path.to_owned()).filter(|path| !path.is_empty());
        failure.line = usize::try_from(line).ok();
        failure.column = usize::try_from(column).ok();
        failure
    }

    /// A configuration that cannot be used, with the key and the line that are wrong.
    pub(crate) fn configuration(message: String, key: &str, line: Option<usize>) -> Self {
        let mut failure = Self::new(message, USAGE);
        failure.path = Some(key.to_owned()).filter(|key| !key.is_empty());
        failure.line = line;
        failure
    }

    /// A command that this version does not have. `group` is the word before it.
    pub(crate) fn not_implemented(group: &str, words: &[OsString]) -> Self {
        let name = words
            .first()
            .map(|word| word.to_string_lossy().into_owned())
            .unwrap_or_default();
        let name = format!("{group} {name}").trim_start().to_owned();
        let known = PLANNED.contains(&name.as_str()) || (group.is_empty() && name.contains(' '));
        let message = if known {
            format!("{name} is not built in this version; see the README for what is")
        } else {
            format!("unknown command {name:?}; 'throughline --help' lists them")
        };
        Self::new(message, USAGE)
    }

    /// The exit code of the program.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// The message for people.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The failure as a JSON document.
    pub(crate) fn to_json(&self) -> String {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        let mut error = ObjectWriter::new(object.key("error"));
        error.str("message", &self.message);
        match &self.path {
            Some(path) => error.str("path", path),
            None => error.raw("path", "null"),
        };
        for (key, value) in [("line", self.line), ("column", self.column)] {
            match value {
                Some(value) => error.number(key, value as u64),
                None => error.raw(key, "null"),
            };
        }
        error.end();
        object.end();
        out
    }
}

pub(crate) fn name(file: Option<&Path>) -> String {
    match file {
        Some(path) if path != Path::new("-") => path.display().to_string(),
        _ => "standard input".to_owned(),
    }
}
