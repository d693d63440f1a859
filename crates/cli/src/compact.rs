//! `throughline compact`.

mod exact;

use std::process::ExitCode;
use std::sync::Arc;

use throughline_compact::tokens::{self, Calibration, Mix, recent_mix};
use throughline_compact::{
    BudgetUnreachable, Call, Planned, Policy, Report, Scale, ToolHistory, number_count,
};
use throughline_model::json::{self, ObjectWriter};
use throughline_model::{Content, Request};
use throughline_store::Progress;
use throughline_wire::render::{Options, TextEmbed};
use throughline_wire::transcript::{self, Transcript};
use throughline_wire::validate::{Profile, validate};
use throughline_wire::{
    Converted, DecodeError, Format, Wire, convert_transcript, render_transcript,
};

use crate::args::{Compact, Strategy};
use crate::failure::Failure;
use crate::input;
use crate::losses;
use crate::output;
use crate::progress;
use exact::ExactCount;

pub(crate) fn run(args: &Compact, as_json: bool) -> Result<ExitCode, Failure> {
    let to = args.to.as_ref().unwrap_or(&args.from);
    if args.strategy == Strategy::Text && *to == Format::Neutral {
        return Err(Failure::usage(
            "--strategy text is for vendors' formats, and neutral is none; name one with --to",
        ));
    }
    let limits = args.bounds.limits();
    let file = input::read(args.file.as_deref(), limits.file_bytes)?;
    let unreadable = |error: DecodeError| Failure::decode(error, args.file.as_deref());
    let mut transcript = transcript::read(&file, &args.from, limits).map_err(unreadable)?;
    drop(file);
    let (shown, report) = compact(&mut transcript.request, args, to)?;
    let exact = ExactCount::of(&transcript.request, args.count)?;
    let converted = written(&transcript, args, to, shown);
    if as_json {
        output::document(&form(&converted, &report, exact), false)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::document(&converted.output, false)?;
    output::note(&line(&report, shown));
    if let Some(exact) = exact {
        output::note(&exact.line());
    }
    losses::print(&converted.losses, &converted.repairs);
    Ok(ExitCode::SUCCESS)
}

/// What became of the messages of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageDisplay {
    /// All of them, as they were.
    Unchanged,
    /// Some of them differently.
    Changed,
}

impl MessageDisplay {
    /// Whether a history shows the messages of its record and nothing else.
    pub(crate) fn of(history: &ToolHistory) -> Self {
        let view = history.view();
        let same = history
            .record()
            .zip(view)
            .take_while(|((_, message), shown)| Arc::ptr_eq(message, shown))
            .count();
        if same == view.len() && history.record().count() == same {
            Self::Unchanged
        } else {
            Self::Changed
        }
    }
}

/// The summary for people. Some results are shown in another way before anything is digested.
pub(crate) fn line(report: &Report, shown: MessageDisplay) -> String {
    match (report.stayed, report.epoch, shown) {
        (Some(_), 0, MessageDisplay::Changed) => format!(
            "{report} Long results are shown in part, and those without a call as quoted text."
        ),
        _ => report.to_string(),
    }
}

/// Put the view in the place of the messages.
fn compact(
    request: &mut Request,
    args: &Compact,
    to: &Format,
) -> Result<(MessageDisplay, Report), Failure> {
    let mut history = ToolHistory::new(Policy {
        budget: args.budget,
        threshold: args.threshold,
        recent_calls: args.recent,
        ..Policy::default()
    });
    let scale = initial_scale(to, &recent_mix(request.messages.iter()));
    let units = push_messages(&mut history, request);
    let call = Call {
        overhead: scale.tokens(overhead(request)),
        scale,
        open: Vec::new(),
    };
    let planned = history.plan(&call).map_err(|error| unreachable(&error))?;
    let mut report = install_epoch(&mut history, planned);
    // No model was sent part of this file before, so it is compared with the whole file.
    report.tokens_before = call.overhead + scale.tokens(units);
    let shown = MessageDisplay::of(&history);
    let view = history.view().to_vec();
    // The history lets go first, so that its messages are moved rather than copied.
    drop(history);
    request.messages = view.into_iter().map(Arc::unwrap_or_clone).collect();
    Ok((shown, report))
}

/// Push the messages with the numbers that an import gives them: system text goes before. Returns
/// the units of all of them.
fn push_messages(history: &mut ToolHistory, request: &mut Request) -> u64 {
    let messages = std::mem::take(&mut request.messages);
    let total = messages.len() as u64;
    let mut next = if request.system.is_empty() { 1 } else { 2 };
    let mut sum = 0;
    let mut line = progress::Line::new("reading");
    for (done, message) in messages.into_iter().enumerate() {
        line.show(Progress {
            done: done as u64,
            total,
            unit: "messages",
        });
        let (taken, units) = (number_count(&message), tokens::units(&message));
        history.push_counted(next, message, units);
        next += taken;
        sum += u64::from(units);
    }
    sum
}

/// Install a planned epoch.
pub(crate) fn install_epoch(history: &mut ToolHistory, planned: Planned) -> Report {
    match planned {
        Planned::Unchanged(report) => report,
        Planned::Epoch(epoch, report) => {
            history.install(epoch);
            report
        }
    }
}

/// A budget that no view fits into, for policies that refuse it.
pub(crate) fn unreachable(error: &BudgetUnreachable) -> Failure {
    Failure::other(format!("{error}; raise --budget"))
}

/// Units of what is sent beside the messages.
fn overhead(request: &Request) -> u64 {
    let mut units = 0;
    for_each_text_beside(request, |text| units += u64::from(tokens::text_units(text)));
    units
}

/// Visit each text that is sent beside the messages: system text and tools.
fn for_each_text_beside(request: &Request, mut visit: impl FnMut(&str)) {
    let system = request.system.iter().filter_map(Content::as_text);
    system.for_each(&mut visit);
    for tool in &request.tools {
        visit(&tool.name);
        let description = tool.description.as_deref();
        description.into_iter().for_each(&mut visit);
        if let Some(schema) = &tool.parameters {
            visit(schema.get());
        }
    }
}

/// How the models of a format count, as long as nothing was billed.
fn initial_scale(format: &Format, mix: &Mix) -> Scale {
    let family = match format {
        Format::Vendor(Wire::Anthropic) => "claude",
        Format::Vendor(Wire::Gemini | Wire::GeminiInteractions) => "gemini",
        Format::Vendor(_) | Format::Neutral => "",
    };
    Scale::per_mille(Calibration::for_mix(family, mix).per_mille())
}

fn written(
    transcript: &Transcript,
    args: &Compact,
    to: &Format,
    shown: MessageDisplay,
) -> Converted {
    match (args.strategy, shown) {
        (Strategy::Native, MessageDisplay::Unchanged) => {
            let converted = convert_transcript(transcript, &args.from, to);
            // A file that its vendor refuses is repaired like a view of it would be.
            match is_refused(&converted, to) {
                true => render_transcript(transcript, to, &Options::default()),
                false => converted,
            }
        }
        (Strategy::Native, MessageDisplay::Changed) => {
            render_transcript(transcript, to, &Options::default())
        }
        (Strategy::Text, _) => {
            let options = Options::with_strategy(Arc::new(TextEmbed::default()));
            render_transcript(transcript, to, &options)
        }
    }
}

/// Whether `throughline validate` finds something in a converted file.
fn is_refused(converted: &Converted, to: &Format) -> bool {
    let Format::Vendor(wire) = to else {
        return false;
    };
    let profile = Profile {
        same_account: true,
        ..Profile::newest(wire.clone())
    };
    json::parse(&converted.output).is_ok_and(|output| !validate(&output, &profile).is_empty())
}

/// `{"output","report","exact"?,"losses","repairs"}`
fn form(converted: &Converted, report: &Report, exact: Option<ExactCount>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.raw("output", &converted.output);
    object.raw("report", &report.to_json());
    if let Some(exact) = exact {
        exact.write(object.key("exact"));
    }
    losses::write(&mut object, &converted.losses, &converted.repairs);
    object.end();
    out
}
