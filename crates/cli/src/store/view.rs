//! `throughline view`.

mod annotated;
mod vendor;

use std::process::ExitCode;
use std::sync::Arc;

use throughline_compact::Policy;
use throughline_model::Message;
use throughline_server::api::native::view::{Branch, ModelChoice, ThreadView};
use throughline_store::{At, Opened, Store};

use super::{Context, IfMissing, text};
use crate::args::View;
use crate::compact::{MessageDisplay, line, unreachable};
use crate::failure::Failure;
use crate::losses;
use crate::output;

pub(super) async fn show(context: &Context<'_>, args: &View) -> Result<ExitCode, Failure> {
    let asked = vendor::named(args.model.as_deref())?;
    let store = context.open(IfMissing::Fail).await?;
    let (at, opened) = context.find(&store, &args.name, 0).await?;
    let branch = branch(context, &store, at, &opened).await?;
    let (entries, record) = (&branch.entries, branch.record());
    let (view, line) = viewed(args, &asked, &opened, (&record, branch.deleted))?;
    if context.json {
        output::document(&view.to_json(&asked, &opened), false)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&text::thread(&opened.thread))?;
    for line in annotated::lines(&view.messages, entries, &record) {
        output::line(&line)?;
    }
    if let Some(rendered) = asked.rendered(&view.messages) {
        let items = text::counted(rendered.items, "item");
        output::line(&format!("as {}: {items}", rendered.format))?;
        losses::print(&rendered.losses, &rendered.repairs);
    }
    output::line(&line)?;
    Ok(ExitCode::SUCCESS)
}

/// The messages of a branch that models may be shown.
pub(super) async fn branch(
    context: &Context<'_>,
    store: &Store,
    at: At,
    opened: &Opened,
) -> Result<Branch, Failure> {
    let read = Branch::read(store, &context.scope, at, opened).await;
    read.map_err(|error| context.failure(&error))
}

/// What a model would be given, and the line about it for people.
fn viewed(
    args: &View,
    asked: &ModelChoice,
    opened: &Opened,
    (record, deleted): (&[Arc<Message>], u64),
) -> Result<(ThreadView, String), Failure> {
    if args.full {
        let line = match deleted {
            0 => "The whole record: nothing is left out.".to_owned(),
            deleted => {
                let contents = text::counted(deleted, "deleted content");
                format!("All but {contents}, which 'throughline threads export' still has.")
            }
        };
        return Ok((ThreadView::whole(record), line));
    }
    let policy = Policy {
        budget: args.budget,
        ..Policy::default()
    };
    let view = ThreadView::planned(policy, asked, opened, record);
    let view = view.map_err(|error| unreachable(&error))?;
    let line = match &view.compacted {
        Some((report, history)) => line(report, MessageDisplay::of(history)),
        None => String::new(),
    };
    Ok((view, line))
}
