//! `throughline runs publish|discard`: runs that were left behind.

use std::process::ExitCode;

use throughline::thread::DiscardedRun;
use throughline_server::api::native::forms;
use throughline_store::{Claim, Error, Run, RunId};

use super::{Context, IfMissing, json_form, text};
use crate::failure::Failure;
use crate::output;

pub(super) async fn publish(context: &Context<'_>, run: RunId) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let before = store
        .run(&context.scope, run)
        .await
        .map_err(|error| context.failure(&error))?;
    let done = context
        .threads(&store)
        .publish(run)
        .await
        .map_err(|error| settle_failure(context, &before, &error))?;
    if context.json {
        let form = json_form::object(|object| forms::published_run(object, &done));
        output::document(&form, false)?;
    } else {
        let published = done.published;
        let node = published.node.map_or_else(
            || "it had nothing to publish".to_owned(),
            |node| format!("{node} up to #{}", published.last),
        );
        let moved = match published.moved {
            true => "now the head",
            false => "a branch",
        };
        output::line(&format!(
            "published {run} on thread {}: {node}, {moved}; {} closed",
            before.thread,
            text::counted(done.calls_closed, "open call"),
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn discard(context: &Context<'_>, run: RunId) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let before = store
        .run(&context.scope, run)
        .await
        .map_err(|error| context.failure(&error))?;
    store
        .discard_run(&context.scope, &before, Claim::Settle)
        .await
        .map_err(|error| settle_failure(context, &before, &error))?;
    if context.json {
        let discarded = DiscardedRun {
            run,
            thread: before.thread,
            published: before.published,
        };
        let form = json_form::object(|object| forms::discarded_run(object, &discarded));
        output::document(&form, false)?;
    } else {
        let stays = match before.published {
            Some(node) => format!("what it published stays, up to {node}"),
            None => "nothing of it is in the history".to_owned(),
        };
        output::line(&format!(
            "discarded {run} on thread {}: {stays}",
            before.thread
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a run cannot be settled, and what to do.
fn settle_failure(context: &Context<'_>, run: &Run, error: &Error) -> Failure {
    match error {
        Error::Busy { run: other, .. } if *other == run.id => Failure::other(format!(
            "{other} is being worked on; wait for it or stop whoever does"
        )),
        Error::WrongState { state, .. } => Failure::other(format!(
            "{} is {} and cannot be settled again; \
             'throughline runs list --state interrupted' lists what can",
            run.id,
            state.as_str()
        )),
        Error::HeadMoved { .. } => Failure::other(format!(
            "thread {} has moved on since {} began; 'throughline runs discard {}' gives it up",
            run.thread, run.id, run.id
        )),
        error => context.failure(error),
    }
}
