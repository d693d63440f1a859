//! Taking over a run that was left, and rebuilding its driver from the journal.

use std::sync::Arc;

use throughline_model::Message;
use throughline_store::{
    AfterTurn, Claim, ClaimInTurn, Error, Journal, Run, RunId, RunState, ServiceId, Started, State,
    Stopped,
};

use super::carried::Carried;
use super::end_of_run;
use super::restore::Restoring;
use crate::prompt::View;
use crate::run::driver::cutoff::Cutoff;
use crate::run::driver::finish::OutcomeDetails;
use crate::run::driver::inbox::Inbox;
use crate::run::driver::model::{
    ModelInput, Ownership, Provided, UnstartedRun, is_by_model, providers,
};
use crate::run::driver::publisher::{EventPublisher, RunLog};
use crate::run::driver::run_memory::RunMemory;
use crate::run::driver::start::{MAX_ATTEMPTS, Plan};
use crate::run::driver::thread_state::ThreadState;
use crate::run::driver::tools::ToolExecution;
use crate::run::driver::transcript::Transcript;
use crate::run::driver::{Driver, DriverError, RunContext};
use crate::run::event::RunEvent;
use crate::run::events::{encode, replayed};
use crate::run::handle::Answered;
use crate::run::machine::Turn;
use crate::run::options::RunOptions;
use crate::run::outcome::{Outcome, RunError, RunFailed};
use crate::telemetry;
use crate::thread::journal::{EndNote, StepNote};
use crate::thread::{
    Loaded, Owner, Recorder, RunningRun, StopReason, note_service, write_unwritten,
};
use crate::trials::planted;

/// A run that this task has taken over.
pub(crate) struct Claimed {
    started: Started,
    at_work: RunningRun,
}

/// Take over a run that no task works on: at once, or in line.
pub(crate) async fn claim(
    context: &RunContext,
    run: &Run,
    in_line: Option<(RunId, AfterTurn)>,
) -> throughline_store::Result<Claimed> {
    let home = &context.thread.home;
    let at_work = RunningRun::try_register(&home.store, run.id, context.cancel.clone());
    let at_work = at_work.ok_or_else(|| Error::Busy {
        thread: run.thread.clone(),
        run: run.id,
        state: run.state,
    })?;
    let claim = match run.state {
        RunState::Parked => Claim::Parked,
        RunState::Held => Claim::Settle,
        // Running or interrupted, of a dead process or of a task of this one that ended.
        _ => Claim::Own,
    };
    let started = match in_line {
        None => {
            let claimed = home.store.claim(&home.scope, run.id, run.epoch, claim);
            claimed.await?
        }
        Some((waiter, after)) => {
            let claim = ClaimInTurn {
                run: run.id,
                seen: run.epoch,
                claim,
                waiter,
                after,
            };
            home.store.claim_in_turn(&home.scope, &claim).await?
        }
    };
    Ok(Claimed { started, at_work })
}

/// Take over a run that was named, and work on it.
pub(crate) async fn take_over(
    context: RunContext,
    options: RunOptions,
    mut run: Run,
    replies: &[Answered],
) -> Result<Outcome, RunFailed> {
    context.thread.distrust();
    let loaded = context.thread.load().await;
    let loaded = loaded.map_err(|error| context.refuse(run.id, error))?;
    loop {
        let error = match claim(&context, &run, None).await {
            Ok(claimed) => {
                let restoring = match run.attempt + 1 >= MAX_ATTEMPTS {
                    true => Restoring::Seal,
                    false => Restoring::Resume,
                };
                let how = (restoring, options);
                return work(context, loaded, &run, claimed, how, replies).await;
            }
            // Another worker has taken it over since it was read.
            Err(Error::WrongState { .. }) if !run.state.is_settled() => {
                let home = &context.thread.home;
                match home.store.run(&home.scope, run.id).await {
                    Ok(now) if now.state.is_settled() => {
                        context.thread.put_back(loaded);
                        return end_of_run::outcome(&context, now).await;
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
        context.thread.put_back(loaded);
        return Err(context.refuse(run.id, error));
    }
}

/// Restore a run that was taken over, and work on it or close it.
pub(crate) async fn work(
    context: RunContext,
    loaded: Loaded,
    run: &Run,
    Claimed { started, at_work }: Claimed,
    (restoring, options): (Restoring, RunOptions),
    replies: &[Answered],
) -> Result<Outcome, RunFailed> {
    let home = context.thread.home.clone();
    if let Err(error) = write_unwritten(&home, started.lease).await {
        context.thread.put_back(loaded);
        return Err(context.refuse(run.id, error));
    }
    let journal = home.store.journal(&home.scope, run.id).await;
    let journal = journal.map_err(|error| context.refuse(run.id, error))?;
    let restoring = match restoring {
        // Its end was asked for, and may have been stored in part.
        Restoring::Resume if journal.run.cancelling => Restoring::Cancel,
        restoring => restoring,
    };
    let next = (journal.run.next_step, journal.run.next_event);
    let mut recorder = Recorder::new(home, started, journal.run.mode, next);
    if restoring == Restoring::Seal {
        let sealed = seal(&mut recorder, run, &journal).await;
        context.thread.put_back(loaded);
        return match sealed {
            Ok(()) => Ok(context.refuse(run.id, RunError::Cancelled).into_outcome()),
            Err(error) => Err(context.refuse(run.id, error)),
        };
    }
    let rebuilt = rebuild(
        &context,
        loaded,
        (restoring, options),
        recorder,
        &journal,
        at_work,
    );
    let mut driver = match rebuilt.await {
        Ok(driver) => driver,
        Err(error) => return Err(context.refuse(run.id, error)),
    };
    let worked = match driver.restore(&journal, restoring).await {
        Err(error) => Err(error),
        Ok(order) => match restoring {
            Restoring::Resume => match driver.apply_replies(order, &journal, replies).await {
                Ok(order) => driver.work(order).await,
                Err(DriverError::Run(error)) => return driver.park_again(error).await,
                Err(error) => Err(error),
            },
            Restoring::Withdraw => {
                driver.turn.withdraw();
                return driver.end_closed(StopReason::Parked).await;
            }
            Restoring::Close | Restoring::Cancel | Restoring::Seal => {
                driver.turn.cut(StopReason::Cancelled, None);
                return driver.end_closed(StopReason::Cancelled).await;
            }
        },
    };
    Box::new(driver).end(worked).await
}

/// Record that a run failed because it was tried too often.
async fn seal(
    recorder: &mut Recorder,
    run: &Run,
    journal: &Journal,
) -> throughline_store::Result<()> {
    let stop = StopReason::Failed;
    let note = EndNote {
        stop,
        finish: None,
        tokens: 0,
        error: Some((
            "run",
            format!("given up after {} attempts", run.attempt + 1),
        )),
        abandoned: false,
        losses: &[],
        service: None,
    };
    if journal.run.next_event > 0 {
        recorder.event(encode(&RunEvent::Ended { stop }));
    }
    recorder.end(Stopped::Failed, note.to_json()).await
}

/// A driver for the run of a journal.
async fn rebuild(
    context: &RunContext,
    mut loaded: Loaded,
    (restoring, options): (Restoring, RunOptions),
    recorder: Recorder,
    journal: &Journal,
    at_work: RunningRun,
) -> Result<Driver, RunError> {
    let run = journal.run.id;
    let mut plan = Plan::resumed(&context.agent, options, journal, &loaded.settings)?;
    plan.service_id = None;
    let mut state = loaded.state();
    let mut owner = restore_owner(context, &plan, &loaded, journal, &mut state)?;
    let mut base = view_at_node(context, &mut loaded, journal).await?;
    if let Some(external) = owner.external_mut() {
        external.repeat(base.messages(), &mut state).await?;
    }
    // With `per_call` the view ends with messages that the run itself has published.
    let published = count_published(journal);
    let start = base.messages().len().saturating_sub(published);
    let provided = match restoring {
        Restoring::Resume => {
            let history = &base.messages()[..start];
            ask_providers(context, &plan, history, journal, &mut state).await?
        }
        _ => Provided::default(),
    };
    let mut tools = plan.tools.clone();
    let added = tools.add(provided.run.tools.clone());
    added.map_err(RunError::Tools)?;
    base.rewind(start);
    let shown = match &owner {
        // The service has what was shown with an earlier call.
        Ownership::Service { id: Some(_), .. } if !journal.steps.is_empty() => &[],
        _ => &provided.run.messages[..],
    };
    let view = owner.prompt(&plan, base, shown).await?;
    let carried = Carried::read(journal.request.as_ref());
    let spent = carried.map_err(|error| RunError::journal(&error))?.spent;
    let used = match planted("loop-time-forgotten") {
        true => 0,
        false => spent.ms.saturating_add(journal.run.worked),
    };
    let mut turn = Turn::new(run, plan.limits.clone(), plan.calling);
    turn.charge(&spent);
    if let Some(external) = owner.external_mut() {
        external.resume_at(published);
    }
    telemetry::name_run(run);
    let node = journal.run.published.or(journal.run.base);
    Ok(Driver {
        run,
        turn,
        log: reopen_log(context, recorder, journal),
        transcript: Transcript::new(node, 0, published),
        state: ThreadState::new(state, None),
        inbox: Inbox::resumed(context.thread.left()),
        model: ModelInput {
            view,
            owner,
            provided,
            accepted: None,
        },
        tools: ToolExecution::new(tools, context),
        details: OutcomeDetails::default(),
        cutoff: Cutoff::new(context, plan.limits.time, used),
        memory: RunMemory::new(context.agent.memory.as_ref()),
        was_cut: false,
        plan,
        context: context.clone(),
        _at_work: at_work,
    })
}

/// The owner of the history after the last step: the id of a service is as durable as the step that
/// it came with. The steps may have been answered by several services of the thread.
fn restore_owner(
    context: &RunContext,
    plan: &Plan,
    loaded: &Loaded,
    journal: &Journal,
    state: &mut State,
) -> Result<Ownership, RunError> {
    let agent = &context.agent;
    let mut settings = loaded.settings.clone();
    let mut owner = Ownership::of(agent, plan, &mut settings, state, journal.run.id)?;
    if !matches!(settings.owner, Owner::Services(_)) || planted("loop-service-forgotten") {
        return Ok(owner);
    }
    let here = &plan.client.abilities().upstream;
    for step in &journal.steps {
        let note = StepNote::read(step.note.as_ref()).unwrap_or_default();
        let Some(id) = note.service else { continue };
        let service = ServiceId {
            upstream: note.upstream.unwrap_or_else(|| here.clone()),
            agent: agent.sub_agent.clone(),
            id,
        };
        let until = step.first + step.items;
        let entries = journal.entries.iter().filter(|one| one.at.no < until);
        let messages = entries.map(|entry| &entry.message);
        let last = messages.rev().find(|message| is_by_model(message));
        let last = last.and_then(|last| last.id.as_ref());
        match service.upstream == *here {
            true => owner.set_service(service, last, state),
            // The step was answered by another service of the thread.
            false => note_service(service, last, state),
        }
    }
    Ok(owner)
}

/// The history at the node to which the run has published, or at which it began.
async fn view_at_node(
    context: &RunContext,
    loaded: &mut Loaded,
    journal: &Journal,
) -> Result<View, RunError> {
    let node = journal.run.published.or(journal.run.base);
    match loaded.end().map(|end| end.node) == node {
        true => Ok(std::mem::take(&mut loaded.view)),
        false => Ok(context.thread.view_at(node).await?),
    }
}

/// Ask context providers again: what they added to the run is not stored.
async fn ask_providers(
    context: &RunContext,
    plan: &Plan,
    history: &[Arc<Message>],
    journal: &Journal,
    state: &mut State,
) -> Result<Provided, RunError> {
    let entries = journal.entries.iter();
    let input: Vec<Message> = entries
        .filter(|entry| entry.at.no <= journal.inputs)
        .map(|entry| entry.message.clone())
        .collect();
    let at = (context.thread_id(), journal.run.id);
    let unstarted = UnstartedRun::of(plan, history, &input, state);
    let provided = providers::before_run(plan, at, history, &input, state).await;
    if let (Some(unstarted), Err(error)) = (unstarted, &provided) {
        unstarted.failed(at, error).await;
    }
    provided
}

/// The journal, and a publisher that numbers events from where the last worker stopped.
fn reopen_log(context: &RunContext, recorder: Recorder, journal: &Journal) -> RunLog {
    let mut log = RunLog {
        recorder,
        events: EventPublisher::new(context, journal.run.next_event),
    };
    if log.events.is_stored() && journal.run.next_event == 0 {
        // It had no reader before: its events get the numbers that they would have with one.
        log.events
            .store_earlier(&mut log.recorder, &replayed(journal));
    }
    log.publish(|| RunEvent::Started {
        run: journal.run.id,
        thread: context.thread_id().clone(),
    });
    log
}

/// How many messages of a run are history.
pub(crate) fn count_published(journal: &Journal) -> usize {
    let nodes = journal.steps.iter().filter(|step| step.node.is_some());
    let until = nodes.map(|step| step.first + step.items).max().unwrap_or(0);
    let entries = journal.entries.iter();
    entries.filter(|entry| entry.at.no < until).count()
}
