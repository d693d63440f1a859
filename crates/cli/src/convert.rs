//! `throughline convert`.

use std::process::ExitCode;

use throughline_model::json::ObjectWriter;
use throughline_wire::{ConvertOptions, Converted, Repairing, convert};

use crate::args::Convert;
use crate::failure::Failure;
use crate::input;
use crate::losses;
use crate::output;

pub(crate) fn run(args: &Convert, as_json: bool) -> Result<ExitCode, Failure> {
    let limits = args.bounds.limits();
    let file = input::read(args.file.as_deref(), limits.file_bytes)?;
    let options = ConvertOptions {
        limits,
        repairing: if args.repair {
            Repairing::Always
        } else {
            Repairing::Elsewhere
        },
    };
    let converted = convert(&file, &args.from, &args.to, options)
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
        losses::print(&converted.losses, &converted.repairs);
    }
    Ok(ExitCode::SUCCESS)
}

/// `{"output"?, "losses", "repairs"}`
fn report(converted: &Converted, output: Option<&str>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    if let Some(output) = output {
        object.raw("output", output);
    }
    losses::write(&mut object, &converted.losses, &converted.repairs);
    object.end();
    out
}
