//! What went wrong, where, and what to do: one line on standard error, or JSON on standard output.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use throughline_model::json::{JsonError, ObjectWriter};
use throughline_wire::{DecodeError, Problem};

use crate::output;

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    path: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    code: u8,
}

/// No, or unreadable.
const NO: u8 = 1;
/// Wrong usage.
const USAGE: u8 = 2;

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

    /// A file that does not say what it should.
    pub(crate) fn decode(error: DecodeError, file: Option<&Path>) -> Self {
        let mut failure = Self::new(format!("{}: {error}", name(file)), NO);
        if let Problem::Json(error) = &error.problem {
            failure.line = Some(error.line);
            failure.column = Some(error.column);
        }
        failure.path = Some(error.path).filter(|path| !path.is_empty());
        failure
    }

    /// A file that is not JSON.
    pub(crate) fn not_json(error: &JsonError, file: Option<&Path>) -> Self {
        let mut failure = Self::new(format!("{}: {error}", name(file)), NO);
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
        Self::new(message, NO)
    }

    /// A combination of arguments that makes no sense.
    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self::new(message.into(), USAGE)
    }

    /// A file that cannot be read at all.
    pub(crate) fn unreadable(file: Option<&Path>, error: &std::io::Error) -> Self {
        Self::new(format!("{}: cannot be read: {error}", name(file)), NO)
    }

    /// Standard output that cannot be written.
    pub(crate) fn unwritable(error: &std::io::Error) -> Self {
        Self::new(format!("standard output cannot be written: {error}"), NO)
    }

    /// A command that could not do its work, in words.
    pub(crate) fn no(message: impl Into<String>) -> Self {
        Self::new(message.into(), NO)
    }

    /// A file that is not what it should be at a place in it.
    pub(crate) fn at(message: String, path: &str, line: u64, column: u64) -> Self {
        let mut failure = Self::new(message, NO);
        failure.path = Some(path.to_owned()).filter(|path| !path.is_empty());
        failure.line = usize::try_from(line).ok();
        failure.column = usize::try_from(column).ok();
        failure
    }

    /// A configuration that cannot be used, with the key and the line that are wrong.
    pub(crate) fn in_configuration(message: String, key: &str, line: Option<usize>) -> Self {
        let mut failure = Self::new(message, USAGE);
        failure.path = Some(key.to_owned()).filter(|key| !key.is_empty());
        failure.line = line;
        failure
    }

    /// A command that this version does not have. `group` is the word before it.
    pub(crate) fn not_built(group: &str, words: &[OsString]) -> Self {
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

    /// Say it and give the exit code.
    pub(crate) fn report(&self, as_json: bool) -> ExitCode {
        if as_json {
            // A failure to write the error itself cannot be reported.
            let _ = output::document(&self.json(), false);
        } else {
            output::note(&format!("throughline: {}", self.message));
        }
        ExitCode::from(self.code)
    }

    fn json(&self) -> String {
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

/// Usage errors come from the parser, which has its own way of saying them; help is not an error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    if wants_json && error.use_stderr() {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default();
        let message = first.strip_prefix("error: ").unwrap_or(first);
        return Failure::new(message.to_owned(), USAGE).report(true);
    }
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
}

pub(crate) fn name(file: Option<&Path>) -> String {
    match file {
        Some(path) if path != Path::new("-") => path.display().to_string(),
        _ => "standard input".to_owned(),
    }
}
