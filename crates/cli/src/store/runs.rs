//! `throughline runs list|show`.

use std::process::ExitCode;

use throughline_store::{Entry, Journal, RunFilter, RunId};

use super::{Context, IfMissing, json_form, show, text};
use crate::args::RunsList;
use crate::failure::Failure;
use crate::output;
use crate::time;

pub(super) async fn list(context: &Context<'_>, args: &RunsList) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let filter = RunFilter {
        thread: args.thread.clone(),
        states: args.state.clone(),
    };
    let listing = store
        .runs(&context.scope, &filter, args.after, args.limit)
        .await
        .map_err(|error| context.failure(&error))?;
    if context.json {
        let form = json_form::listing("runs", &listing, json_form::run);
        output::document(&form, false)?;
        return Ok(ExitCode::SUCCESS);
    }
    for run in &listing.found {
        output::line(&text::run(run))?;
    }
    if let Some(next) = listing.next {
        output::line(&format!("… more: --after {next}"))?;
    } else if listing.found.is_empty() {
        output::line("no runs")?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn show(context: &Context<'_>, run: RunId) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let journal = store
        .journal(&context.scope, run)
        .await
        .map_err(|error| context.failure(&error))?;
    let unsent = match journal.run.published {
        Some(node) if journal.run.state.is_settled() => show::unsent(context, &store, node).await?,
        _ => Vec::new(),
    };
    if context.json {
        output::document(&json_form::journal(&journal, &unsent), false)?;
    } else {
        output::line(&words(&journal, &unsent))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn words(journal: &Journal, unsent: &[Entry]) -> String {
    let run = &journal.run;
    let mut lines = vec![text::run(run)];
    let holds = if run.leased { "leased" } else { "free" };
    lines.push(format!(
        "{holds}, epoch {}, attempt {}, last wrote {}",
        run.epoch,
        run.attempt,
        time::format_utc(run.progress)
    ));
    if let Some(base) = run.base {
        lines.push(format!("continues {base}"));
    }
    match run.published {
        Some(node) => lines.push(format!("published {node}")),
        None => lines.push("not published".to_owned()),
    }
    if let Some(key) = &run.key {
        lines.push(format!("idempotency key {}", text::plain(key)));
    }
    if let Some(note) = &run.note {
        lines.push(format!("note {}", text::plain(note.get())));
    }
    for entry in journal
        .entries
        .iter()
        .filter(|entry| entry.at.no <= journal.inputs)
    {
        lines.push(format!("input {}", text::entry(entry)));
    }
    let mut rest = journal
        .entries
        .iter()
        .filter(|entry| entry.at.no > journal.inputs)
        .peekable();
    for (place, step) in journal.steps.iter().enumerate() {
        let next = journal.steps.get(place + 1).map(|next| next.first);
        let mut line = format!("step {}", step.no);
        if let Some(node) = step.node {
            line.push_str(&format!(", published {node}"));
        }
        lines.push(line);
        for call in journal.calls.iter().filter(|call| call.at.step == step.no) {
            let mut line = format!(
                "  call {} {} ({}): {}, {}, key {}, result is item {}",
                call.at.position,
                text::plain(&call.tool),
                text::plain(&call.call),
                call.state.as_str(),
                call.effect.as_str(),
                call.key,
                call.result
            );
            if let Some(approval) = call.approval {
                line.push_str(&format!(", {approval}"));
            }
            if let Some(by) = call.taken_by {
                line.push_str(&format!(", taken by {by}"));
            }
            lines.push(line);
        }
        while let Some(entry) = rest.next_if(|entry| next.is_none_or(|next| entry.at.no < next)) {
            lines.push(format!("  {}", text::entry(entry)));
        }
    }
    lines.extend(rest.map(text::entry));
    for entry in unsent {
        lines.push(format!("not sent yet, {}", text::entry(entry)));
    }
    lines.join("\n")
}
