//! Writes the hand-written transcripts as requests, rendered for one target, for the models of the
//! vendors' SDKs to read.
//!
//! `sdk-rendered --wire NAME` writes one line of JSON for each transcript,
//! `{"kind":"rendered","name":"tools.json","value":{…}}`. The value is the body that would be sent:
//! what rendering gave, in the vendor's own place for messages and for system text, and what every
//! request must name besides.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use throughline_model::json::{ArrayWriter, ObjectWriter};
use throughline_model::{Content, Message, Request, Role};
use throughline_wire::render::{Options, Rendered, Target, render};
use throughline_wire::transcript::{self, Limits};
use throughline_wire::{Format, Wire};

/// From here, since the program is started by tests only.
const FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../wire/tests/fixtures/transcripts"
);

#[expect(
    clippy::print_stderr,
    reason = "a program says why it stops before its work is done"
)]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wire = match arguments.as_slice() {
        [word, name] if word == "--wire" => Wire::named(name),
        _ => {
            eprintln!("usage: sdk-rendered --wire NAME");
            return ExitCode::from(2);
        }
    };
    match write_all(&wire) {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(wire: &Wire) -> Result<(), String> {
    let mut out = io::stdout().lock();
    for path in transcripts()? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        let request = read(&path).map_err(|error| failed(&error))?;
        let rendered = rendered(&request, wire);
        let mut line = String::new();
        let mut object = ObjectWriter::new(&mut line);
        object.str("kind", "rendered").str("name", &name);
        body(object.key("value"), wire, &rendered).map_err(|error| failed(&error))?;
        object.end();
        // A line break can only stand between tokens, where a space means the same.
        writeln!(out, "{}", line.replace('\n', " ")).map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn transcripts() -> Result<Vec<PathBuf>, String> {
    let unreadable = |error: io::Error| format!("cannot list {FOLDER}: {error}");
    let entries = std::fs::read_dir(FOLDER).map_err(unreadable)?;
    let paths: Result<Vec<_>, _> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut paths = paths.map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

/// Reads a transcript; its name says in which format it is, `neutral` where it says nothing.
fn read(path: &Path) -> Result<Request, String> {
    let stem = Path::new(path.file_stem().unwrap_or_default());
    let format = match stem.extension() {
        Some(format) => format
            .to_string_lossy()
            .parse()
            .map_err(|error| format!("{error}"))?,
        None => Format::Neutral,
    };
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    transcript::read(&bytes, &format, Limits::default())
        .map(|transcript| transcript.request)
        .map_err(|error| error.to_string())
}

/// The whole conversation as the target accepts it; the system text is said before everything.
fn rendered(request: &Request, wire: &Wire) -> Rendered {
    let mut history = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        let system = request.system.iter().filter_map(Content::as_text);
        let contents = system.map(Content::text).collect();
        history.push(Message::new(Role::System, contents));
    }
    history.extend(request.messages.iter().cloned());
    let target = Target::newest(wire.clone());
    render(&history, &target, &Options::default())
}

/// Append the body of a request.
fn body(out: &mut String, wire: &Wire, rendered: &Rendered) -> Result<(), String> {
    const MODEL: &str = "some-model";
    let system = rendered.system.as_deref();
    let mut object = ObjectWriter::new(out);
    let (system_key, items_key) = match wire {
        Wire::OpenAiChat => (None, "messages"),
        Wire::OpenAiResponses | Wire::Foundry => (None, "input"),
        Wire::Anthropic => (Some("system"), "messages"),
        Wire::Gemini => (Some("systemInstruction"), "contents"),
        Wire::GeminiInteractions => (Some("system_instruction"), "input"),
        Wire::Other(name) => return Err(format!("nobody knows what a request to {name} is")),
    };
    match wire {
        // The model stands in the address there.
        Wire::Gemini => {}
        Wire::Anthropic => {
            object.str("model", MODEL).number("max_tokens", 1_024);
        }
        _ => {
            object.str("model", MODEL);
        }
    }
    match (system, system_key) {
        (None, _) => {}
        (Some(text), Some(key)) if *wire == Wire::Gemini => {
            let mut content = ObjectWriter::new(object.key(key));
            let mut parts = ArrayWriter::new(content.key("parts"));
            let mut part = ObjectWriter::new(parts.slot());
            part.str("text", text);
            part.end();
            parts.end();
            content.end();
        }
        (Some(text), Some(key)) => {
            object.str(key, text);
        }
        (Some(_), None) => return Err(format!("system text beside the messages of {wire}")),
    }
    object.raw(items_key, &rendered.array());
    object.end();
    Ok(())
}
