//! Going on with what a thread was left with: a run that waits, died or failed, or was asked for
//! twice.

use std::sync::Arc;
use std::time::Duration;

use throughline_model::{Message, Outcome as Ending, Role, Source};
use throughline_store::{
    CallState, Entry, Error, Journal, NewItem, Run, RunFilter, RunKind, RunState,
};

use super::carried::spent_by;
use super::restore::Restoring;
use crate::run::driver::finish::refused;
use crate::run::driver::start::OpenCallAnswers;
use crate::run::driver::start::Plan;
use crate::run::driver::start::QueuePlace;
use crate::run::driver::start::{Adopted, Entered, RunInput, begin};
use crate::run::driver::start::{START_ATTEMPTS, StartPoint, waiting};
use crate::run::driver::tools::judge;
use crate::run::driver::{EventBatch, Job};
use crate::run::event::RunEvent;
use crate::run::handle::Answered;
use crate::run::machine::Spent;
use crate::run::options::RunOptions;
use crate::run::outcome::{Outcome, RunError, RunFailed};
use crate::run::setup::AgentSetup;
use crate::run::usage::RunUsage;
use crate::thread::StopReason;
use crate::thread::journal::Calls;
use crate::thread::journal::pending_of;
use crate::thread::journal::{StepNote, ended, losses_of};
use crate::thread::{Loaded, ScopedStore, live};
use crate::trials::planted;

use super::take_over::{claim, published, taken};

/// How often somebody who waits for another's run looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Go on with a run that nobody works on.
pub(in crate::run::driver) async fn taken_over(
    agent: Arc<AgentSetup>,
    job: Job,
    options: RunOptions,
    (run, replies): (&Run, &[Answered]),
) -> Result<Outcome, RunFailed> {
    job.thread.distrust();
    let loaded = match job.thread.load().await {
        Ok(loaded) => loaded,
        Err(error) => return Err(refused(run.id, &job, RunError::Store(error))),
    };
    let mut run = run.clone();
    loop {
        let error = match claim(&job, &run, None).await {
            Ok(claimed) => {
                let restoring = match run.attempt + 1 >= START_ATTEMPTS {
                    true => Restoring::Seal,
                    false => Restoring::Resume,
                };
                let how = (restoring, options);
                return taken(&agent, job, loaded, &run, claimed, how, replies).await;
            }
            // It was not over when it was looked at: another worker was faster.
            Err(Error::WrongState { .. }) if !run.state.is_settled() => {
                let home = &job.thread.home;
                match home.store.run(&home.scope, run.id).await {
                    Ok(now) if now.state.is_settled() => {
                        job.thread.put_back(loaded);
                        return repeated(&agent, &job, now).await;
                    }
                    Ok(now) => {
                        run = now;
                        continue;
                    }
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        job.thread.put_back(loaded);
        return Err(refused(run.id, &job, RunError::Store(error)));
    }
}

/// Cancel what is left on the thread, or at work on it. A run that ended before that is left as it is,
/// and its outcome is the answer.
pub(in crate::run::driver) async fn cancelled(
    agent: Arc<AgentSetup>,
    job: Job,
    options: RunOptions,
) -> Result<Outcome, RunFailed> {
    let fresh = agent.ids.run();
    let stored = |error| RunError::Store(error);
    let home = job.thread.home.clone();
    // The run that was there when this was asked for.
    let mut about: Option<Run> = None;
    loop {
        job.thread.distrust();
        let loaded = match job.thread.load().await {
            Ok(loaded) => loaded,
            Err(error) => return Err(refused(fresh, &job, stored(error))),
        };
        let unsettled = loaded.found.as_ref().and_then(|one| one.unsettled.clone());
        let Some(run) = unsettled else {
            job.thread.put_back(loaded);
            let ended = match about {
                Some(about) => home.store.run(&home.scope, about.id).await.map(Some),
                None => last_ended(&job).await,
            };
            let thread = job.id().clone();
            return match ended {
                Ok(Some(run)) => repeated(&agent, &job, run).await,
                Ok(None) => Err(refused(fresh, &job, RunError::NothingToResume { thread })),
                Err(error) => Err(refused(fresh, &job, stored(error))),
            };
        };
        // What nobody works on is closed here; it may be one that this process gave up.
        let error = match claim(&job, &run, None).await {
            Ok(claimed) => {
                let how = (Restoring::Cancel, options);
                return taken(&agent, job, loaded, &run, claimed, how, &[]).await;
            }
            Err(error) => error,
        };
        job.thread.put_back(loaded);
        match error {
            Error::Busy { .. } => {
                let asked = home.store.cancel(&home.scope, run.id).await;
                if let Err(error) = asked {
                    return Err(refused(run.id, &job, stored(error)));
                }
                live::cancel(&home.store, run.id);
                let ended = waited(&job, run.clone()).await?;
                if ended.state.is_settled() {
                    return repeated(&agent, &job, ended).await;
                }
                // It parked before it saw the order, or its process died: then it is closed here.
            }
            // Another worker took it over, or it ended since it was read: look again.
            Error::Fenced { .. } | Error::WrongState { .. } => {}
            error => return Err(refused(run.id, &job, stored(error))),
        }
        about = Some(run);
    }
}

/// The last run at the head of the thread that ended by itself or was cancelled, if none came after it
/// that did not.
async fn last_ended(job: &Job) -> throughline_store::Result<Option<Run>> {
    let home = &job.thread.home;
    let filter = RunFilter {
        thread: Some(job.id().clone()),
        states: Vec::new(),
    };
    // Branches, and messages that were added by hand, are no matter.
    let mut after = None;
    loop {
        let page = home.store.runs(&home.scope, &filter, after, 50).await?;
        let mut runs = page.found.into_iter();
        let last = runs.find(|run| run.leased && run.kind == RunKind::Turn);
        if let Some(run) = last {
            let ended = match run.state {
                RunState::Committed => !planted("loop-cancel-late"),
                state => state == RunState::Cancelled,
            };
            return Ok(ended.then_some(run));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(None),
        }
    }
}

/// Whether a new run can go on with the journal of this one.
pub(in crate::run::driver) fn is_adoptable(run: &Run) -> bool {
    run.kind == RunKind::Turn && run.state == RunState::Failed
}

/// Begin a run that adopts the journal of the newest one, which failed. `None` if the thread is not
/// where it was.
pub(in crate::run::driver) async fn adopted(
    agent: Arc<AgentSetup>,
    job: Job,
    options: RunOptions,
    loaded: Loaded,
    replies: &[Answered],
    (newest, line): (Option<Run>, &mut QueuePlace),
) -> Result<Option<Outcome>, RunFailed> {
    let fresh = line.run();
    let nothing = |job: &Job, loaded: Loaded| {
        job.thread.put_back(loaded);
        let thread = job.id().clone();
        refused(fresh, job, RunError::NothingToResume { thread })
    };
    let stray = |job: &Job, loaded: Loaded, answered: &Answered| {
        job.thread.put_back(loaded);
        refused(fresh, job, answered.not_pending(Vec::new()))
    };
    if loaded.found.is_none() {
        return Err(match replies.first() {
            Some(reply) => stray(&job, loaded, reply),
            None => nothing(&job, loaded),
        });
    }
    let home = job.thread.home.clone();
    let failed = newest.filter(is_adoptable);
    let journal = match failed {
        Some(failed) => match home.store.journal(&home.scope, failed.id).await {
            Ok(journal) => Some(journal).filter(has_finished_steps),
            Err(error) => return Err(refused(fresh, &job, RunError::Store(error))),
        },
        None => None,
    };
    let Some(journal) = journal else {
        return Err(match replies.first() {
            Some(reply) => stray(&job, loaded, reply),
            None => nothing(&job, loaded),
        });
    };
    let mode = journal.run.mode;
    let planned = Plan::resumed(&agent, options, journal.request.as_ref(), mode);
    let mut plan = match planned {
        Ok(plan) => plan,
        Err(error) => return Err(refused(fresh, &job, error)),
    };
    plan.wishes = loaded.settings.wishes.clone();
    plan.layered(&agent);
    // Whoever tries again may say again what was said before.
    for reply in replies {
        if let Err(error) = judge::said_before(&journal, &plan.tools, &[], reply) {
            job.thread.put_back(loaded);
            return Err(refused(fresh, &job, error));
        }
    }
    let place = StartPoint {
        branch: loaded.at_node.is_some(),
        loaded,
    };
    let queued = waiting(&job, &place.loaded).await;
    let left = left(&home, &journal).await;
    let (queued, left) = match queued.and_then(|queued| Ok((queued, left?))) {
        Ok(read) => read,
        Err(error) => return Err(refused(fresh, &job, RunError::Store(error))),
    };
    let spent = match plan.names_no_limits {
        true => spent_of(&job, &journal, &plan).await,
        false => Ok(Spent::default()),
    };
    let spent = match spent {
        Ok(spent) => spent,
        Err(error) => return Err(refused(fresh, &job, error)),
    };
    let said = RunInput {
        adopted: Some(left),
        queued,
        input: Vec::new(),
        opening: OpenCallAnswers::default(),
        spent,
        after_results: false,
    };
    let begun = begin(&agent, &job, fresh, plan, place, said).await;
    match begun {
        Ok(Entered::Begun(mut driver, _)) => {
            line.has_none();
            let order = driver.turn.adopt();
            let worked = driver.work(order).await;
            driver.end(worked).await.map(Some)
        }
        Ok(Entered::Repeated(_)) => Err(refused(fresh, &job, RunError::Cancelled)),
        Ok(Entered::Moved(_)) => Ok(None),
        Err(error) => Err(refused(fresh, &job, error)),
    }
}

/// Whether a failed run has finished something, itself or in the runs in whose place it went on.
fn has_finished_steps(journal: &Journal) -> bool {
    let said = journal.entries.iter().map(|entry| &entry.message);
    let by_model = |message: &Message| message.source == Some(Source::Model);
    journal.run.next_step > 0 || said.into_iter().any(by_model)
}

/// What a run has used of its limits.
async fn spent_of(job: &Job, journal: &Journal, plan: &Plan) -> Result<Spent, RunError> {
    let made = Calls::of(&job.thread.home, journal).await;
    let made = made.map_err(RunError::Store)?;
    spent_by(journal, &made, plan).map_err(|error| RunError::Journal {
        why: error.to_string(),
    })
}

/// What the failed run has used of its limits in whose place the next one goes on.
pub(in crate::run::driver) async fn spent_before(
    agent: &AgentSetup,
    job: &Job,
    loaded: &Loaded,
    next: &Plan,
) -> Result<Spent, RunError> {
    let Some(failed) = loaded.failed else {
        return Ok(Spent::default());
    };
    let home = &job.thread.home;
    let journal = home.store.journal(&home.scope, failed).await;
    let journal = journal.map_err(RunError::Store)?;
    let mode = journal.run.mode;
    let options = RunOptions {
        limits: (!next.names_no_limits).then(|| next.limits.clone()),
        ..RunOptions::default()
    };
    let plan = Plan::resumed(agent, options, journal.request.as_ref(), mode)?;
    spent_of(job, &journal, &plan).await
}

/// What a run that failed or was killed left after the node that it published: results that no model
/// call took. The node waits for them, so a run that begins there says them first.
pub(in crate::run::driver) async fn left_open(
    job: &Job,
    loaded: &Loaded,
) -> throughline_store::Result<Option<Adopted>> {
    let home = &job.thread.home;
    if let Some(failed) = loaded.failed {
        let journal = home.store.journal(&home.scope, failed).await?;
        return Ok(Some(Adopted {
            own: false,
            ..left(home, &journal).await?
        }));
    }
    let Some(end) = loaded.end().filter(|end| end.open && !end.unsent) else {
        return Ok(None);
    };
    let journal = home.store.journal(&home.scope, end.node.run).await?;
    let ends_here = journal.run.published == Some(end.node);
    // What a run that was killed has finished is as durable as what a failed one has.
    let is_left = matches!(journal.run.state, RunState::Failed | RunState::Interrupted);
    if !is_left || !ends_here {
        return Ok(None);
    }
    Ok(Some(Adopted {
        own: false,
        ..left(home, &journal).await?
    }))
}

/// What a failed run left that is no history.
async fn left(home: &ScopedStore, journal: &Journal) -> throughline_store::Result<Adopted> {
    let calls = Calls::of(home, journal).await?;
    let published = published(journal);
    let entries: Vec<&Entry> = journal.entries.iter().skip(published).collect();
    let mut items = Vec::new();
    let mut messages = Vec::new();
    for entry in &entries {
        items.extend(entry.item_refs().map(NewItem::Again));
        messages.push(entry.message.clone());
    }
    // Calls that never got a result are answered here.
    let open = journal
        .calls
        .iter()
        .filter(|call| call.state != CallState::Done && call.taken_by.is_none());
    let mut closed = Vec::new();
    for call in open {
        let outcome = match call.state {
            CallState::Intent => Ending::Unknown,
            _ => Ending::Cancelled,
        };
        let Some(asked) = calls.at(call.at) else {
            continue;
        };
        let ended = crate::run::machine::closed(outcome);
        closed.push(asked.answer(ended.outcome, ended.output).into());
    }
    if !closed.is_empty() {
        let mut message = Message::new(Role::Tool, closed);
        message.source = Some(Source::Repair);
        NewItem::push(&mut items, &message);
        messages.push(message);
    }
    let last = journal.steps.last();
    let note = last.and_then(|step| StepNote::read(step.note.as_ref()).ok());
    let kept = note.and_then(|note| note.service).zip(last);
    Ok(Adopted {
        items,
        messages,
        kept: kept.map(|(id, step)| {
            let until = step.first + step.items;
            let sent = entries.iter().filter(|entry| entry.at.no < until);
            (id, sent.count())
        }),
        own: true,
    })
}

/// A run once nobody works on it any more.
pub(in crate::run::driver) async fn waited(job: &Job, mut run: Run) -> Result<Run, RunFailed> {
    let home = &job.thread.home;
    while run.state == RunState::Running {
        tokio::select! {
            biased;
            () = job.cancel.cancelled() => return Err(refused(run.id, job, RunError::Cancelled)),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
        run = match home.store.run(&home.scope, run.id).await {
            Ok(run) => run,
            Err(error) => return Err(refused(run.id, job, RunError::Store(error))),
        };
    }
    Ok(run)
}

/// The answer of a run that was asked for twice, once it has ended.
pub(in crate::run::driver) async fn repeated(
    agent: &Arc<AgentSetup>,
    job: &Job,
    run: Run,
) -> Result<Outcome, RunFailed> {
    let _ = agent;
    let home = &job.thread.home;
    let run = waited(job, run).await?;
    let journal = match home.store.journal(&home.scope, run.id).await {
        Ok(journal) => journal,
        Err(error) => return Err(refused(run.id, job, RunError::Store(error))),
    };
    let (stop, finish) = ended(run.note.as_ref());
    let stop = stop.unwrap_or(match run.state {
        RunState::Parked => StopReason::Parked,
        RunState::Cancelled | RunState::Discarded => StopReason::Cancelled,
        RunState::Failed | RunState::Interrupted | RunState::Held => StopReason::Failed,
        RunState::Running | RunState::Committed | RunState::Unpublished => StopReason::Done,
    });
    let mut usage = RunUsage::default();
    for entry in &journal.entries {
        if let Some(reported) = &entry.message.usage {
            usage.add(Some(reported));
        }
    }
    if let Some(events) = &job.events {
        drop(events.send(EventBatch::unstored(RunEvent::Ended { stop })));
    }
    let pending = match run.state {
        RunState::Parked => match Calls::of(home, &journal).await {
            Ok(calls) => pending_of(&journal, &calls),
            Err(error) => return Err(refused(run.id, job, RunError::Store(error))),
        },
        _ => Vec::new(),
    };
    Ok(Outcome {
        run: run.id,
        thread: run.thread,
        stop,
        messages: journal
            .entries
            .into_iter()
            .map(|entry| entry.message)
            .collect(),
        usage,
        pending,
        finish,
        compaction: None,
        losses: losses_of(run.note.as_ref()),
        steps: Vec::new(),
    })
}
