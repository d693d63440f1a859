//! Writes the hand-written transcripts as requests, rendered for one target, for the models of the
//! vendors' SDKs to parse.
//!
//! `worker sdk-rendered --wire NAME` writes one line of JSON for each transcript,
//! `{"kind":"rendered","name":"tools.json","value":{…}}`. The value is the body that would be sent:
//! the rendered history with tools and all settings that the vendor supports.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use throughline_model::json::{self, ObjectWriter, RawJson};
use throughline_model::{
    AnswerShape, Content, Effort, Family, Message, Request, Role, Settings, ToolChoice, ToolDef,
    Vendor, Verbosity,
};
use throughline_wire::compose::{Prompt, compose};
use throughline_wire::render::{Options, Target, render};
use throughline_wire::transcript::{self, Limits};
use throughline_wire::{Format, Losses, Wire, codec};

/// The path is fixed at build time, because only tests start this program.
const FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../wire/tests/fixtures/transcripts"
);

#[expect(
    clippy::print_stderr,
    reason = "a program says why it stops before its work is done"
)]
pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = crate::arguments().collect();
    let wire = match arguments.as_slice() {
        [word, name] if word == "--wire" => Wire::named(name),
        _ => {
            eprintln!("usage: worker sdk-rendered --wire NAME");
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
    if codec(wire).is_none() {
        return Err(format!("nobody knows what a request to {wire} is"));
    }
    let mut out = io::stdout().lock();
    for path in transcripts()? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        let request = read(&path).map_err(|error| failed(&error))?;
        let body = body(&request, wire).map_err(|error| failed(&error))?;
        let mut line = String::new();
        let mut object = ObjectWriter::new(&mut line);
        object
            .str("kind", "rendered")
            .str("name", &name)
            .raw("value", &body);
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

/// Reads a transcript; its name says its format, or else it is `neutral`.
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

/// The whole conversation as the target accepts it, with the system text first.
fn body(request: &Request, wire: &Wire) -> Result<String, json::JsonError> {
    let mut history = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        let system = request.system.iter().filter_map(Content::as_text);
        let contents = system.map(Content::text).collect();
        history.push(Message::new(Role::System, contents));
    }
    history.extend(request.messages.iter().cloned());
    let target = Target::newest(wire.clone());
    let rendered = render(&history, &target, &Options::default());
    let items = rendered.array();
    let (tools, settings) = (tools()?, settings()?);
    let prompt = Prompt {
        instructions: Some("Be brief."),
        system: rendered.system.as_deref(),
        tools: &tools,
        choice: &ToolChoice::Named("get_tide_table".into()),
        settings: &settings,
        ..Prompt::new(&target, "some-model", &items)
    };
    // An SDK cannot check losses; the tests of the format do.
    Ok(compose(&prompt, &mut Losses::default()))
}

fn tools() -> Result<Vec<ToolDef>, json::JsonError> {
    let schema = r#"{"type":"object","properties":{"port":{"type":"string"}}}"#;
    let search = r#"{"type":"web_search","user_location":{"type":"approximate","city":"Brest"}}"#;
    Ok(vec![
        ToolDef {
            family: Family::FUNCTION,
            name: "get_tide_table".into(),
            description: Some("When is high water?".into()),
            parameters: Some(RawJson::new(schema)?),
            strict: Some(true),
            ..ToolDef::default()
        },
        ToolDef {
            family: Family::WEB_SEARCH,
            name: "web_search".into(),
            vendor: Some(Vendor::item(Wire::OpenAiResponses, RawJson::new(search)?)),
            ..ToolDef::default()
        },
    ])
}

fn settings() -> Result<Settings, json::JsonError> {
    let schema = r#"{"type":"object","properties":{},"additionalProperties":false}"#;
    Ok(Settings {
        max_output_tokens: Some(1_024),
        temperature: Some(0.5),
        top_p: Some(0.75),
        stop: vec!["END".into()],
        effort: Some(Effort::Low),
        parallel_calls: Some(false),
        answer: Some(AnswerShape {
            name: "tides".into(),
            schema: Some(RawJson::new(schema)?),
            ..AnswerShape::default()
        }),
        summary: true,
        verbosity: Some(Verbosity::Low),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(-0.5),
        user: Some("a4f1".into()),
        service_tier: Some("default".into()),
        cache_key: Some("harbour".into()),
        cache_retention: Some("24h".into()),
        betas: Vec::new(),
        extra: None,
    })
}
