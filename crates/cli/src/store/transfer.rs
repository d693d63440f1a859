//! `throughline threads export|import`.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use throughline_model::{Message, Role};
use throughline_server::api::native::forms;
use throughline_store::transfer::{self, Exported, Extent, ImportOptions, Imported};
use throughline_store::{Clock as _, Error, NewThread, Store, SystemClock};
use throughline_wire::{Format, transcript};

use super::{Context, IfMissing, json_form, text};
use crate::args;
use crate::failure::{Failure, name};
use crate::input;
use crate::output;
use crate::progress;

pub(super) async fn export(
    context: &Context<'_>,
    args: &args::Export,
) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let (at, opened) = context.find(&store, &args.name, 0).await?;
    let extent = if args.branch {
        Extent::Branch
    } else {
        Extent::Tree
    };
    let mut line = progress::Line::new("exporting");
    let mut show = |progress| line.show(progress);
    let Some(path) = &args.out else {
        let mut out = BufWriter::new(std::io::stdout());
        let done = transfer::export(&store, &context.scope, &at, extent, &mut out, &mut show).await;
        return match done {
            // A reader that has seen enough (`| head`) is not a failure.
            Err(Error::Stream {
                kind: ErrorKind::BrokenPipe,
                ..
            }) => Ok(ExitCode::SUCCESS),
            Err(Error::Stream { detail, .. }) => Err(Failure::other(format!(
                "standard output cannot be written: {detail}"
            ))),
            Err(error) => Err(context.failure(&error)),
            Ok(_) => Ok(ExitCode::SUCCESS),
        };
    };
    let unwritable = |error: &std::io::Error| {
        Failure::other(match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("{} exists already; name another file", path.display())
            }
            _ => format!("{} cannot be written: {error}", path.display()),
        })
    };
    let file = throughline_store::create_private(path);
    let mut out = BufWriter::new(file.map_err(|error| unwritable(&error))?);
    let done = transfer::export(&store, &context.scope, &at, extent, &mut out, &mut show).await;
    let exported = match done {
        Ok(exported) => exported,
        Err(error) => {
            // Half an export is of no use.
            let _ = std::fs::remove_file(path);
            return Err(match &error {
                Error::Stream { detail, .. } => {
                    Failure::other(format!("{} cannot be written: {detail}", path.display()))
                }
                error => context.failure(error),
            });
        }
    };
    out.flush()
        .and_then(|()| out.get_ref().sync_all())
        .map_err(|error| unwritable(&error))?;
    drop(line);
    report_export(context, opened.thread.id.as_str(), path, exported)
}

fn report_export(
    context: &Context<'_>,
    thread: &str,
    path: &Path,
    exported: Exported,
) -> Result<ExitCode, Failure> {
    let Exported {
        nodes,
        items,
        tokens,
        bytes,
    } = exported;
    if context.json {
        let form = json_form::object(|object| {
            object
                .str("thread", thread)
                .str("file", &path.display().to_string())
                .number("nodes", nodes)
                .number("items", items)
                .number("tokens", tokens)
                .number("bytes", bytes);
        });
        output::document(&form, false)?;
    } else {
        output::line(&format!(
            "exported {thread} to {}: {}, {}, {}, {bytes} bytes",
            path.display(),
            text::counted(nodes, "node"),
            text::counted(items, "item"),
            text::counted(tokens, "token"),
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn import(
    context: &Context<'_>,
    args: &args::Import,
) -> Result<ExitCode, Failure> {
    let file = args.file.as_deref();
    let done = match &args.from {
        Some(format) => {
            let messages = messages(args, format)?;
            let store = context.open(IfMissing::Create).await?;
            let id = args.rename.clone().unwrap_or_else(|| store.ids().thread());
            let thread = NewThread::new(id);
            let now = SystemClock.now();
            transfer::import_messages(&store, &context.scope, thread, &messages, now).await
        }
        None => {
            let (mut input, total) = opened(file)?;
            let store = context.open(IfMissing::Create).await?;
            stream(context, &store, args, &mut *input, total).await
        }
    };
    let imported = done.map_err(|error| failed(context, args, &error))?;
    report_import(context, &imported)
}

async fn stream(
    context: &Context<'_>,
    store: &Store,
    args: &args::Import,
    input: &mut (dyn Read + Send),
    total: u64,
) -> throughline_store::Result<Imported> {
    let options = ImportOptions {
        rename: args.rename.clone(),
        line_bytes: args.max_line_bytes,
    };
    let mut line = progress::Line::new("importing");
    let mut show = |progress| line.show(progress);
    transfer::import(store, &context.scope, input, total, options, &mut show).await
}

/// The file or standard input, with its size if it is known.
fn opened(file: Option<&Path>) -> Result<(Box<dyn Read + Send>, u64), Failure> {
    match file {
        Some(path) if path != Path::new("-") => {
            let unreadable = |error| Failure::unreadable(file, &error);
            let input = File::open(path).map_err(unreadable)?;
            let size = input.metadata().map_or(0, |data| data.len());
            Ok((Box::new(input), size))
        }
        _ => Ok((Box::new(std::io::stdin()), 0)),
    }
}

/// The messages of a transcript.
fn messages(args: &args::Import, format: &Format) -> Result<Vec<Message>, Failure> {
    let file = args.file.as_deref();
    let limits = args.bounds.limits();
    let bytes = input::read(file, limits.file_bytes)?;
    let read = transcript::read(&bytes, format, limits);
    let request = read.map_err(|error| Failure::decode(error, file))?.request;
    let mut messages = request.messages;
    if !request.system.is_empty() {
        messages.insert(0, Message::new(Role::System, request.system));
    }
    if messages.is_empty() {
        return Err(Failure::other(format!(
            "{}: there are no messages in it",
            name(file)
        )));
    }
    Ok(messages)
}

fn failed(context: &Context<'_>, args: &args::Import, error: &Error) -> Failure {
    let file = name(args.file.as_deref());
    match error {
        Error::Malformed {
            line,
            column,
            path,
            why,
        } => {
            let place = match path.as_str() {
                "" => String::new(),
                path => format!("{path}: "),
            };
            let mut message = format!("{file}: {place}{why} at line {line} column {column}");
            if *line == 1 {
                message.push_str("; transcripts are imported with --from FORMAT");
            } else {
                message.push_str("; nothing was imported");
            }
            Failure::at_position(message, path, *line, *column)
        }
        Error::Stream { detail, .. } => Failure::other(format!(
            "{file}: cannot be read: {detail}; nothing was imported"
        )),
        Error::Exists { .. } => Failure::other(format!(
            "{error} in {}; import under a new id with --as ID",
            context.url
        )),
        error => context.failure(error),
    }
}

fn report_import(context: &Context<'_>, imported: &Imported) -> Result<ExitCode, Failure> {
    if context.json {
        let form = json_form::object(|object| forms::imported(object, imported));
        output::document(&form, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut line = format!(
        "imported {}: {}, {}",
        imported.thread,
        text::counted(imported.nodes, "node"),
        text::counted(imported.items, "item"),
    );
    if imported.aliases_left_out > 0 {
        line.push_str(&format!(
            "; {} left out, the thread has a new id",
            text::counted(imported.aliases_left_out, "other name")
        ));
    }
    output::line(&line)?;
    Ok(ExitCode::SUCCESS)
}
