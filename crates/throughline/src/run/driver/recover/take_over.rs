//! Taking a run over that was left, and putting it together again from its journal.

use std::sync::Arc;
use std::time::Duration;

use throughline_model::Message;
use throughline_store::{
    Claim, ClaimInLine, Error, Journal, Place, Run, RunId, RunState, Started, Stopped,
};

use super::carried::Carried;
use super::restore::{Restoring, closing};
use crate::run::driver::finish::refused;
use crate::run::driver::model::{Ownership, is_models};
use crate::run::driver::model::{Provided, Unbegun, providers};
use crate::run::driver::publisher::EventPublisher;
use crate::run::driver::start::Parts;
use crate::run::driver::start::Plan;
use crate::run::driver::{Driver, DriverError, Job};
use crate::run::event::RunEvent;
use crate::run::events::{encode, replayed};
use crate::run::handle::Answered;
use crate::run::machine::Turn;
use crate::run::options::RunOptions;
use crate::run::outcome::{Outcome, RunError, RunFailed};
use crate::run::setup::AgentSetup;
use crate::thread::StopReason;
use crate::thread::journal::{EndNote, StepNote};
use crate::thread::{AtWork, Loaded, Owner, Recorder, write_unwritten};
use crate::trials::planted;

/// A run that was taken over.
pub(in crate::run::driver) struct Claimed {
    started: Started,
    at_work: AtWork,
}

/// Take over a run that no task works on: at once, or in line.
pub(in crate::run::driver) async fn claim(
    job: &Job,
    run: &Run,
    in_line: Option<(RunId, Place)>,
) -> throughline_store::Result<Claimed> {
    let at_work = AtWork::alone(&job.thread.home.store, run.id, job.cancel.clone());
    let at_work = at_work.ok_or_else(|| Error::Busy {
        thread: run.thread.clone(),
        run: run.id,
        state: run.state,
    })?;
    let claim = match run.state {
        RunState::Parked => Claim::Parked,
        RunState::Held => Claim::Settle,
        // Running or interrupted: of a process that is gone, or of this one and given up.
        _ => Claim::Own,
    };
    let home = &job.thread.home;
    let started = match in_line {
        None => {
            home.store
                .claim(&home.scope, run.id, run.epoch, claim)
                .await?
        }
        Some((waiter, place)) => {
            let asked = ClaimInLine {
                run: run.id,
                seen: run.epoch,
                claim,
                waiter,
                place,
            };
            home.store.claim_in_line(&home.scope, &asked).await?
        }
    };
    Ok(Claimed { started, at_work })
}

/// Do with a run that was taken over what is to be done.
pub(in crate::run::driver) async fn taken(
    agent: &Arc<AgentSetup>,
    job: Job,
    loaded: Loaded,
    run: &Run,
    Claimed { started, at_work }: Claimed,
    (restoring, options): (Restoring, RunOptions),
    replies: &[Answered],
) -> Result<Outcome, RunFailed> {
    let home = job.thread.home.clone();
    if let Err(error) = write_unwritten(&home, started.lease).await {
        job.thread.put_back(loaded);
        return Err(refused(run.id, &job, RunError::Store(error)));
    }
    let journal = match home.store.journal(&home.scope, run.id).await {
        Ok(journal) => journal,
        Err(error) => return Err(refused(run.id, &job, RunError::Store(error))),
    };
    let at = (journal.run.next_step, journal.run.next_event);
    let mut recorder = Recorder::new(home, started, journal.run.mode, at);
    if restoring == Restoring::Seal {
        let note = EndNote {
            stop: StopReason::Failed,
            finish: None,
            tokens: 0,
            error: Some((
                "run",
                format!("given up after {} attempts", run.attempt + 1),
            )),
            abandoned: false,
            losses: &[],
        };
        if journal.run.next_event > 0 {
            let stop = StopReason::Failed;
            recorder.event(encode(&RunEvent::Ended { stop }));
        }
        let sealed = recorder.end(Stopped::Failed, note.to_json()).await;
        job.thread.put_back(loaded);
        return match sealed {
            Ok(()) => Ok(refused(run.id, &job, RunError::Cancelled).into_outcome()),
            Err(error) => Err(refused(run.id, &job, RunError::Store(error))),
        };
    }
    let asks = restoring == Restoring::Resume;
    let made = rebuilt(
        agent,
        job,
        loaded,
        (options, asks),
        recorder,
        &journal,
        at_work,
    )
    .await;
    let mut driver = match made {
        Ok(driver) => driver,
        Err(failed) => return Err(*failed),
    };
    let worked = match driver.restore(&journal, restoring).await {
        Err(broken) => Err(broken),
        Ok(order) => match restoring {
            Restoring::Resume => match driver.answer(order, &journal, replies).await {
                Ok(order) => driver.work(order).await,
                Err(DriverError::Run(error)) => return driver.put_down(error).await,
                Err(broken) => Err(broken),
            },
            Restoring::Withdraw => {
                driver.turn.withdraw();
                return driver.end_closed(closing(restoring)).await;
            }
            Restoring::Close | Restoring::Cancel | Restoring::Seal => {
                driver.turn.cut(StopReason::Cancelled, None);
                return driver.end_closed(closing(restoring)).await;
            }
        },
    };
    Box::new(driver).end(worked).await
}

/// A driver for a run of the journal.
async fn rebuilt(
    agent: &Arc<AgentSetup>,
    job: Job,
    mut loaded: Loaded,
    (options, asks): (RunOptions, bool),
    recorder: Recorder,
    journal: &Journal,
    at_work: AtWork,
) -> Result<Driver, Box<RunFailed>> {
    let run = journal.run.id;
    let fail = |job: &Job, error| Box::new(refused(run, job, error));
    let planned = Plan::resumed(agent, options, journal.request.as_ref(), journal.run.mode);
    let mut plan = planned.map_err(|error| fail(&job, error))?;
    plan.wishes = loaded.settings.wishes.clone();
    plan.layered(agent);
    plan.service_id = None;
    let mut state = loaded.state();
    let last = journal.steps.last().and_then(|step| step.note.as_ref());
    let note = StepNote::read(last).unwrap_or_default();
    let mut settings = loaded.settings.clone();
    let owner = Ownership::of(agent, &plan, &mut settings, &state, run);
    let mut owner = owner.map_err(|error| fail(&job, error))?;
    let forgets = planted("loop-service-forgotten");
    let service = note.service.filter(|_| !forgets);
    if let (Owner::Service { upstream }, Some(id)) = (&settings.owner, service) {
        // The id is as durable as the step that it came with.
        let service = throughline_store::ServiceId {
            upstream: upstream.clone(),
            agent: agent.sub_agent.clone(),
            id,
        };
        let said = journal.entries.iter().map(|entry| &entry.message);
        let has = said.rev().find(|message| is_models(message));
        owner.kept_as(service, has.and_then(|last| last.id.as_ref()), &mut state);
    }
    let node = journal.run.published.or(journal.run.base);
    let end = loaded.end().map(|end| end.node);
    let view = std::mem::take(&mut loaded.view);
    let view = match end == node {
        true => view,
        false => {
            let read = job.thread.view_at(node).await;
            read.map_err(|error| fail(&job, RunError::Store(error)))?
        }
    };
    // In `per_call` the view ends with what the run itself has published.
    let published = published(journal);
    let start = view.messages().len() - published.min(view.messages().len());
    let mut base = view;
    let history = &base.messages()[..start];
    let input: Vec<Message> = journal
        .entries
        .iter()
        .filter(|entry| entry.at.no <= journal.inputs)
        .map(|entry| entry.message.clone())
        .collect();
    let provided = match asks {
        false => Provided::default(),
        true => {
            let at = (job.id(), run);
            let unbegun = Unbegun::of(&plan, history, &input, &state);
            match providers::before_run(&plan, at, history, &input, &mut state).await {
                Ok(provided) => provided,
                Err(error) => {
                    if let Some(unbegun) = unbegun {
                        unbegun.failed(at, &error).await;
                    }
                    return Err(fail(&job, error));
                }
            }
        }
    };
    let mut tools = plan.tools.clone();
    let added = tools.add(provided.run.tools.clone());
    added.map_err(|error| fail(&job, RunError::Tools(error)))?;
    base.rewind(start);
    let shown = match &owner {
        // What was shown with an earlier call is with the service.
        Ownership::Service { id: Some(_), .. } if !journal.steps.is_empty() => &[],
        _ => &provided.run.messages[..],
    };
    let prompt = owner.prompt(&plan, base, shown).await;
    let prompt = prompt.map_err(|error| fail(&job, error))?;
    let mut publisher = EventPublisher::new(&job, journal.run.next_event);
    let mut recorder = recorder;
    if publisher.is_logged() && journal.run.next_event == 0 {
        // It went without readers so far: its events are numbered as if it had had one.
        publisher.store(&mut recorder, &replayed(journal));
    }
    publisher.say(&mut recorder, || RunEvent::Started {
        run,
        thread: job.id().clone(),
    });
    let spent = Carried::read(journal.request.as_ref()).map(|carried| carried.spent);
    let spent = spent.map_err(|error| {
        let why = error.to_string();
        fail(&job, RunError::Journal { why })
    })?;
    let used = match planted("loop-time-forgotten") {
        true => 0,
        false => spent.ms.saturating_add(journal.run.worked),
    };
    let mut turn = Turn::new(run, plan.limits.clone(), plan.calling);
    turn.charge(&spent);
    let mut driver = Driver::new(
        Arc::clone(agent),
        job,
        Parts {
            run,
            turn,
            tools,
            plan,
            recorder,
            publisher,
            prompt,
            owner,
            provided,
            state,
            node,
            at_work,
            used: Duration::from_millis(used),
        },
    );
    driver.published = published;
    if let Ownership::External { appended, .. } = &mut driver.owner {
        *appended = published;
    }
    Ok(driver)
}

/// How many messages of a run are history.
pub(in crate::run::driver) fn published(journal: &Journal) -> usize {
    let nodes = journal.steps.iter().filter(|step| step.node.is_some());
    let until = nodes.map(|step| step.first + step.items).max().unwrap_or(0);
    let entries = journal.entries.iter();
    entries.filter(|entry| entry.at.no < until).count()
}
