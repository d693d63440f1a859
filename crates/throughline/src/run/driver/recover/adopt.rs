//! Continuing a failed run with a new one, which begins with the messages that the failed run left
//! unpublished.

use throughline_model::{Message, Outcome as Ending, Role, Source};
use throughline_store::{CallState, Entry, Journal, NewItem, Run, RunKind, RunState};

use super::carried::spent_by;
use super::take_over::count_published;
use crate::run::driver::RunContext;
use crate::run::driver::model::AcceptedCall;
use crate::run::driver::start::{
    BeginResult, Leftover, OpenCallAnswers, Plan, QueuePlace, RunInput, SentToService, StartPoint,
    begin, queued_messages,
};
use crate::run::driver::tools::judge;
use crate::run::handle::Answered;
use crate::run::machine::{Ended, Spent};
use crate::run::options::RunOptions;
use crate::run::outcome::{Outcome, RunError, RunFailed};
use crate::thread::journal::{Calls, StepNote};
use crate::thread::{Loaded, ScopedStore};

/// Whether a new run can continue this one.
pub(crate) fn is_adoptable(run: &Run) -> bool {
    run.kind == RunKind::Turn && run.state == RunState::Failed
}

/// Begin a run that continues the newest one, which failed, and work on it. `None` if the thread has
/// changed since it was loaded.
pub(crate) async fn adopt(
    context: &RunContext,
    options: RunOptions,
    loaded: Loaded,
    newest: Option<Run>,
    replies: &[Answered],
    line: &mut QueuePlace,
) -> Result<Option<Outcome>, RunFailed> {
    let run = line.run();
    let refuse = |error: RunError| context.refuse(run, error);
    let failed = newest.filter(|run| loaded.found.is_some() && is_adoptable(run));
    let journal = match failed {
        Some(failed) => {
            let home = &context.thread.home;
            let journal = home.store.journal(&home.scope, failed.id).await;
            let journal = journal.map_err(|error| refuse(error.into()))?;
            Some(journal).filter(has_finished_steps)
        }
        None => None,
    };
    let Some(journal) = journal else {
        context.thread.put_back(loaded);
        return Err(refuse(match replies.first() {
            Some(reply) => reply.not_pending(Vec::new()),
            None => RunError::NothingToResume {
                thread: context.thread_id().clone(),
            },
        }));
    };
    let plan = Plan::resumed(&context.agent, options, &journal, &loaded.settings);
    let plan = plan.map_err(refuse)?;
    // A reply that the failed run got already may come again.
    for reply in replies {
        if let Err(error) = judge::check_repeated(&journal, &plan.tools, &[], reply) {
            context.thread.put_back(loaded);
            return Err(refuse(error));
        }
    }
    let input = run_input(context, &loaded, &journal, &plan).await;
    let input = input.map_err(refuse)?;
    let place = StartPoint {
        branch: loaded.at_node.is_some(),
        loaded,
    };
    match begin(context, run, plan, place, input).await {
        Ok(BeginResult::Begun(mut driver, _)) => {
            line.forget_place();
            let order = driver.turn.adopt();
            let worked = driver.work(order).await;
            driver.end(worked).await.map(Some)
        }
        Ok(BeginResult::Repeated(_)) => Err(refuse(RunError::Cancelled)),
        Ok(BeginResult::ThreadChanged(_)) => Ok(None),
        Err(error) => Err(refuse(error)),
    }
}

/// What the run begins with that continues a failed one.
async fn run_input(
    context: &RunContext,
    loaded: &Loaded,
    journal: &Journal,
    plan: &Plan,
) -> Result<RunInput, RunError> {
    let queue_count = context.thread.left();
    let queued = queued_messages(context, loaded).await?;
    let leftover = leftover_of(&context.thread.home, journal).await?;
    Ok(RunInput {
        leftover: Some(leftover),
        queue_count,
        queued,
        input: Vec::new(),
        answers: OpenCallAnswers::default(),
        spent: match plan.names_no_limits {
            true => spent_of(context, journal, plan).await?,
            false => Spent::default(),
        },
        after_results: false,
    })
}

/// Whether a failed run, or a run that it continued, has finished something.
fn has_finished_steps(journal: &Journal) -> bool {
    let messages = journal.entries.iter().map(|entry| &entry.message);
    let by_model = |message: &Message| message.source == Some(Source::Model);
    journal.run.next_step > 0 || messages.into_iter().any(by_model)
}

/// What a run has used of its limits.
async fn spent_of(context: &RunContext, journal: &Journal, plan: &Plan) -> Result<Spent, RunError> {
    let calls = Calls::of(&context.thread.home, journal).await?;
    spent_by(journal, &calls, plan).map_err(|error| RunError::journal(&error))
}

/// What the failed run at which the thread was opened has used of its limits.
pub(crate) async fn spent_before(
    context: &RunContext,
    loaded: &Loaded,
    next: &Plan,
) -> Result<Spent, RunError> {
    let Some(failed) = loaded.failed else {
        return Ok(Spent::default());
    };
    let home = &context.thread.home;
    let journal = home.store.journal(&home.scope, failed).await?;
    let options = RunOptions {
        limits: (!next.names_no_limits).then(|| next.limits.clone()),
        ..RunOptions::default()
    };
    let plan = Plan::resumed(&context.agent, options, &journal, &loaded.settings)?;
    spent_of(context, &journal, &plan).await
}

/// The unpublished part of the run at the node, if it failed or was killed: the node waits for
/// results that no model call has sent, so the next run begins with them.
pub(crate) async fn find_leftover(
    context: &RunContext,
    loaded: &Loaded,
) -> throughline_store::Result<Option<Leftover>> {
    let home = &context.thread.home;
    let journal = match (loaded.failed, loaded.end()) {
        (Some(failed), _) => home.store.journal(&home.scope, failed).await?,
        (None, Some(end)) if end.open && !end.unsent => {
            let journal = home.store.journal(&home.scope, end.node.run).await?;
            let ends_here = journal.run.published == Some(end.node);
            // Finished calls of a killed run are as durable as those of a failed one.
            if !ends_here || !matches!(journal.run.state, RunState::Failed | RunState::Interrupted)
            {
                return Ok(None);
            }
            journal
        }
        (None, _) => return Ok(None),
    };
    Ok(Some(Leftover {
        is_own: false,
        accepted: None,
        ..leftover_of(home, &journal).await?
    }))
}

/// The part of a failed run that is no history. Calls without a result get one.
async fn leftover_of(home: &ScopedStore, journal: &Journal) -> throughline_store::Result<Leftover> {
    let calls = Calls::of(home, journal).await?;
    let entries: Vec<&Entry> = journal
        .entries
        .iter()
        .skip(count_published(journal))
        .collect();
    let mut items = Vec::new();
    let mut messages = Vec::new();
    for entry in &entries {
        items.extend(entry.item_refs().map(NewItem::Repeat));
        messages.push(entry.message.clone());
    }
    let open = journal
        .calls
        .iter()
        .filter(|call| call.state != CallState::Done && call.taken_by.is_none());
    let mut closed = Vec::new();
    for execution in open {
        let outcome = match execution.state {
            CallState::Intent => Ending::Unknown,
            _ => Ending::Cancelled,
        };
        if let Some(call) = calls.at(execution.at) {
            let ended = Ended::closed(outcome);
            closed.push(call.answer(ended.outcome, ended.output).into());
        }
    }
    if !closed.is_empty() {
        let mut message = Message::new(Role::Tool, closed);
        message.source = Some(Source::Repair);
        NewItem::push(&mut items, &message);
        messages.push(message);
    }
    let last = journal.steps.last();
    let note = last.and_then(|step| StepNote::read(step.note.as_ref()).ok());
    let sent_to_service = match (note, last) {
        (
            Some(StepNote {
                service: Some(id),
                upstream,
                ..
            }),
            Some(step),
        ) => {
            let until = step.first + step.items;
            let sent = entries.iter().filter(|entry| entry.at.no < until);
            Some(SentToService {
                upstream,
                id,
                count: sent.count(),
            })
        }
        _ => None,
    };
    Ok(Leftover {
        items,
        messages,
        sent_to_service,
        is_own: true,
        accepted: AcceptedCall::of(journal),
    })
}
