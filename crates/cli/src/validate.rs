//! `throughline validate`.

use std::process::ExitCode;

use throughline_model::json::{self, ArrayWriter, ObjectWriter};
use throughline_wire::validate::{self, Profile, Violation, validate};
use throughline_wire::{ConvertOptions, Format, Repairing, convert};

use crate::args::{Generation, Validate};
use crate::failure::Failure;
use crate::input;
use crate::output;

pub(crate) fn run(args: &Validate, as_json: bool) -> Result<ExitCode, Failure> {
    let Format::Vendor(wire) = &args.target else {
        return Err(Failure::usage(
            "neutral histories have no rules; name a vendor's format",
        ));
    };
    let limits = args.bounds.limits();
    let mut file = input::read(args.file.as_deref(), limits.file_bytes)?;
    let decode = |error| Failure::decode(error, args.file.as_deref());
    if let Some(from) = &args.from {
        let options = ConvertOptions {
            limits,
            repairing: Repairing::Always,
        };
        let rendered = convert(&file, from, &args.target, options).map_err(decode)?;
        file = rendered.output.into_bytes();
    }
    if file.len() > limits.file_bytes && args.from.is_none() {
        return Err(Failure::too_large(args.file.as_deref(), limits.file_bytes));
    }
    let request = json::parse_bytes(&file, limits.json)
        .map_err(|error| Failure::not_json(&error, args.file.as_deref()))?;
    let profile = Profile {
        generation: match args.generation {
            Generation::Newest => validate::Generation::NEWEST,
            Generation::Older => validate::Generation::OLDER,
        },
        stored: args.stored,
        thinking: args.thinking,
        same_account: !args.other_account,
        ..Profile::newest(wire.clone())
    };
    let violations = validate(&request, &profile);
    if as_json {
        output::document(&report(&violations), false)?;
    } else {
        for violation in &violations {
            output::line(&violation.to_string())?;
        }
        if violations.is_empty() {
            output::line(&format!("{wire} would accept this history"))?;
        }
    }
    Ok(ExitCode::from(u8::from(!violations.is_empty())))
}

/// `{"ok", "violations"}`
fn report(violations: &[Violation]) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.bool("ok", violations.is_empty());
    let mut array = ArrayWriter::new(object.key("violations"));
    for violation in violations {
        violation.write_json(array.slot());
    }
    array.end();
    object.end();
    out
}
