//! `throughline runs publish|discard`: runs that were left behind.

use std::process::ExitCode;

use throughline_model::{
    CallId, Content, Family, Message, Outcome, Output, Role, Source, ToolResult,
};
use throughline_store::{
    At, CallResult, CallState, Claim, End, Ending, Error, Execution, Journal, Publish, Run, RunId,
    RunState, Started, Stopped, Store,
};

use super::{Context, IfMissing, json_form, text};
use crate::failure::Failure;
use crate::output;

pub(super) async fn publish(context: &Context<'_>, run: RunId) -> Result<ExitCode, Failure> {
    let store = context.open(IfMissing::Fail).await?;
    let failure = |error: Error| context.failure(&error);
    let scope = &context.scope;
    let before = store.run(scope, run).await.map_err(failure)?;
    check_not_moved(context, &store, &before).await?;
    let started = claim(context, &store, &before).await?;
    // No other worker can write to the run any more, so its journal is complete.
    let journal = store.journal(scope, run).await.map_err(failure)?;
    let results: Vec<CallResult> = journal
        .calls
        .iter()
        .filter_map(|call| known_result(&journal, call))
        .collect();
    let closed = results.len() as u64;
    let publish = Publish {
        results,
        // What ended well and was only never published is done; all else was cut off.
        ending: match before.state {
            RunState::Unpublished => Ending::Committed,
            _ => Ending::Cancelled,
        },
        note: before.note.clone(),
        ..Publish::new(journal.run.next_step, Vec::new())
    };
    let published = match store.publish(scope, started.lease, &publish).await {
        Ok(published) => published,
        Err(error) => {
            return_run(context, &store, &before, started).await;
            return Err(context.failure(&error));
        }
    };
    if context.json {
        let form = json_form::object(|object| {
            object.str("run", &run.to_string());
            object.str("thread", before.thread.as_str());
            json_form::opt_node(object, "node", published.node);
            object.number("last", published.last);
            object.bool("moved", published.moved);
            object.number("version", published.version.0);
            object.number("calls_closed", closed);
        });
        output::document(&form, false)?;
    } else {
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
            text::counted(closed, "open call"),
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
        let form = json_form::object(|object| {
            object.str("discarded", &run.to_string());
            object.str("thread", before.thread.as_str());
            json_form::opt_node(object, "published", before.published);
        });
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

async fn claim(context: &Context<'_>, store: &Store, run: &Run) -> Result<Started, Failure> {
    store
        .claim(&context.scope, run.id, run.epoch, Claim::Settle)
        .await
        .map_err(|error| settle_failure(context, run, &error))
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
        error => context.failure(error),
    }
}

/// Refuse before the run is taken over, so that another process can still resume it unchanged.
async fn check_not_moved(context: &Context<'_>, store: &Store, run: &Run) -> Result<(), Failure> {
    let at = At::Thread(run.thread.clone());
    let opened = store
        .open(&context.scope, &at, 0)
        .await
        .map_err(|error| context.failure(&error))?;
    if run.leased && opened.thread.version != run.version {
        return Err(Failure::other(format!(
            "thread {} has moved on since {} began; 'throughline runs discard {}' gives it up",
            run.thread, run.id, run.id
        )));
    }
    Ok(())
}

/// A run that could not be published goes back to where it waited, so that no worker continues with
/// it unasked.
async fn return_run(context: &Context<'_>, store: &Store, run: &Run, started: Started) {
    let scope = &context.scope;
    // If this fails too, the run is interrupted once this process is gone.
    let _ = match run.state {
        RunState::Unpublished => {
            let end = End {
                how: Stopped::Unpublished,
                note: run.note.clone(),
                events: None,
            };
            store.end(scope, started.lease, &end).await
        }
        RunState::Parked | RunState::Held => store.park(scope, started.lease, None).await,
        RunState::Running
        | RunState::Interrupted
        | RunState::Committed
        | RunState::Cancelled
        | RunState::Failed
        | RunState::Discarded => Ok(()),
    };
}

/// What is known of a call without a result.
fn known_result(journal: &Journal, call: &Execution) -> Option<CallResult> {
    let (outcome, words) = match call.state {
        CallState::Done | CallState::Taken => return None,
        CallState::Planned => (
            Outcome::Terminated,
            "[The run was ended; the call did not run.]",
        ),
        CallState::Intent => (
            Outcome::Unknown,
            "[The result of this call was lost; whether it ran is unknown.]",
        ),
        CallState::Approval => (
            Outcome::Withdrawn,
            "[The call was withdrawn and did not run.]",
        ),
        CallState::Client => (
            Outcome::Unknown,
            "[No result was recorded for this call; whether it ran is unknown.]",
        ),
    };
    let output = Output::Text(words.to_owned());
    let placed = journal.call_at(call.at);
    let placed = placed.and_then(|placed| Some((placed.call.clone()?, placed)));
    let result = match placed {
        Some((asked, placed)) if placed.shares_id => asked
            .answer(outcome, output)
            .with_occurrence(placed.occurrence),
        Some((asked, _)) => asked.answer(outcome, output),
        None => {
            let id = CallId::natural(&call.call)?;
            let mut result = ToolResult::answering(id, Family::FUNCTION, output);
            result.name = Some(call.tool.clone());
            result.outcome = outcome;
            result
        }
    };
    let message = Message {
        source: Some(Source::Repair),
        ..Message::new(Role::Tool, vec![Content::from(result)])
    };
    Some(CallResult::new(call.at.step, call.at.position, &message))
}
