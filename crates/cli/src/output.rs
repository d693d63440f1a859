//! Standard output and standard error.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use throughline_model::json;

use crate::failure::{Failure, USAGE};

/// Write one JSON document and a newline.
pub(crate) fn document(text: &str, pretty: bool) -> Result<(), Failure> {
    if !pretty {
        return write(&[text.as_bytes(), b"\n"]);
    }
    let laid_out = json::pretty(text).unwrap_or_else(|_| text.to_owned());
    write(&[laid_out.as_bytes(), b"\n"])
}

/// Write a line of text.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    write(&[text.as_bytes(), b"\n"])
}

/// Write bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    write(&[bytes])
}

fn write(pieces: &[&[u8]]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let done = pieces
        .iter()
        .try_for_each(|piece| out.write_all(piece))
        .and_then(|()| out.flush());
    match done {
        Ok(()) => Ok(()),
        // A reader that has seen enough (`| head`) is not a failure.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::unwritable(&error)),
    }
}

/// One line for people, on standard error.
pub(crate) fn note(line: &str) {
    // Standard error may be closed; there is no other place to report that.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Report a failure: one line on standard error, or JSON on standard output. Returns the exit code.
pub(crate) fn failure(failure: &Failure, as_json: bool) -> ExitCode {
    if as_json {
        // A failure to write the error itself cannot be reported.
        let _ = document(&failure.to_json(), false);
    } else {
        note(&format!("throughline: {}", failure.message()));
    }
    failure.exit_code()
}

/// Report that the command line is wrong, or print the help that it asks for. The parser formats both itself, except
/// errors as JSON.
pub(crate) fn usage_error(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    if wants_json && error.use_stderr() {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default();
        let message = first.strip_prefix("error: ").unwrap_or(first);
        return failure(&Failure::usage(message), true);
    }
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
}
