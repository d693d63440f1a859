//! `throughline convert`.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use throughline_model::json::{self, ArrayWriter, ObjectWriter};
use throughline_wire::sse;
use throughline_wire::transcript::Limits;
use throughline_wire::{Converted, convert};

use crate::args::Convert;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(args: &Convert, as_json: bool) -> Result<ExitCode, Failure> {
    if args.repair {
        return Err(Failure::not_built(&["convert --repair".into()]));
    }
    let limits = Limits {
        file_bytes: args.max_bytes,
        json: json::Limits {
            depth: args.max_depth,
            ..json::Limits::default()
        },
        sse: sse::Limits {
            line_bytes: args.max_event_bytes,
            event_bytes: args.max_event_bytes,
        },
    };
    let file = read(args.file.as_deref(), args.max_bytes)?;
    let converted = convert(&file, &args.from, &args.to, limits)
        .map_err(|error| Failure::decode(error, args.file.as_deref()))?;
    drop(file);
    if args.check {
        output::document(&report(&converted, None), false)?;
        let clean = converted.losses.is_empty();
        return Ok(ExitCode::from(u8::from(!clean)));
    }
    if as_json {
        output::document(&report(&converted, Some(&converted.output)), args.pretty)?;
    } else {
        output::document(&converted.output, args.pretty)?;
        for loss in &converted.losses {
            output::note(&format!("lost: {loss}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The file or standard input, never more than one byte beyond the limit.
fn read(file: Option<&Path>, limit: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let most = (limit as u64).saturating_add(1);
    let done = match file {
        Some(path) if path != Path::new("-") => {
            std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
        }
        _ => std::io::stdin().lock().take(most).read_to_end(&mut bytes),
    };
    match done {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::unreadable(file, &error)),
    }
}

/// `{"output"?, "losses", "repairs"}`
fn report(converted: &Converted, output: Option<&str>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    if let Some(output) = output {
        object.raw("output", output);
    }
    let mut losses = ArrayWriter::new(object.key("losses"));
    for loss in &converted.losses {
        loss.write_json(losses.slot());
    }
    losses.end();
    let mut repairs = ArrayWriter::new(object.key("repairs"));
    for repair in &converted.repairs {
        repair.write_json(repairs.slot());
    }
    repairs.end();
    object.end();
    out
}
