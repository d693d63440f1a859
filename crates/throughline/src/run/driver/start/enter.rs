//! How a run begins on a thread, after what was left there is settled.

use std::sync::Arc;

use throughline_model::{Body, Message};
use throughline_store::{CallState, Error, Idempotency, Run, RunId, RunState, ThreadId};

use super::open_calls::opening;
use super::plan::Plan;
use super::queue::QueuePlace;
use crate::run::driver::finish::refused;
use crate::run::driver::recover;
use crate::run::driver::recover::Restoring;
use crate::run::driver::{Driver, DriverError, Job};
use crate::run::handle::{Answered, Command};
use crate::run::input::Input;
use crate::run::machine::{Order, Spent};
use crate::run::options::{OnRepeat, RunOptions};
use crate::run::outcome::{Outcome, RunError, RunFailed};
use crate::run::setup::AgentSetup;
use crate::thread::{Loaded, OnBusy, OnInterrupt, OnOpenCalls, live};
use crate::trials::planted;

use super::begin::{Entered, RunInput, begin};

/// A run that was taken over so often is not tried again.
pub(in crate::run::driver) const START_ATTEMPTS: u32 = 5;

pub(in crate::run::driver) async fn driven(
    agent: Arc<AgentSetup>,
    job: Job,
    options: RunOptions,
    command: Command,
) -> Result<Outcome, RunFailed> {
    match command {
        Command::Start(input) => started(agent, job, options, (input, Vec::new())).await,
        Command::Reply(input, replies) => started(agent, job, options, (input, replies)).await,
        // In boxes: every run would have room for what few of them do.
        Command::TakeOver(run, replies) => {
            Box::pin(recover::adopt::taken_over(
                agent,
                job,
                options,
                (&run, &replies),
            ))
            .await
        }
        Command::Resume(replies) => {
            Box::pin(recover::resume::resumed(agent, job, options, replies)).await
        }
        Command::Cancel => Box::pin(recover::adopt::cancelled(agent, job, options)).await,
    }
}

/// A run with what is said first.
async fn started(
    agent: Arc<AgentSetup>,
    job: Job,
    options: RunOptions,
    (input, replies): (Input, Vec<Answered>),
) -> Result<Outcome, RunFailed> {
    let run = options.run.unwrap_or_else(|| agent.ids.run());
    let chosen = options.persistence;
    let plan = match Plan::of(&agent, options).and_then(|plan| fit(&input).map(|()| plan)) {
        Ok(plan) => plan,
        Err(error) => return Err(refused(run, &job, error)),
    };
    // In a box that is gone when the work begins: a run needs more room to begin than to go on.
    let entered = Box::pin(fresh(agent, job, run, (plan, chosen), (input, replies)));
    match entered.await? {
        StartResult::Begun(mut driver, order) => {
            let worked = match order {
                Ok(order) => driver.work(order).await,
                Err(broken) => Err(broken),
            };
            driver.end(worked).await
        }
        StartResult::Repeated(outcome) => Ok(*outcome),
    }
}

/// How a run goes on once it has been entered.
enum StartResult {
    /// With work.
    Begun(Box<Driver>, Result<Order, DriverError>),
    /// It is another run that answers.
    Repeated(Box<Outcome>),
}

/// What nobody may say as input: answers to questions that the record keeps.
fn fit(input: &Input) -> Result<(), RunError> {
    let contents = input.messages().iter().flat_map(|one| &one.contents);
    for content in contents {
        if let Body::ApprovalResponse(answer) = &content.body {
            return Err(RunError::Unasked {
                request: answer.request.to_string(),
            });
        }
    }
    Ok(())
}

/// Where a run begins.
pub(in crate::run::driver) struct StartPoint {
    pub(in crate::run::driver) loaded: Loaded,
    /// At the end of a branch, not at the head of the thread.
    pub(in crate::run::driver) branch: bool,
}

/// A run with new input. A place in the thread's line that it took is given up if it does not begin.
async fn fresh(
    agent: Arc<AgentSetup>,
    job: Job,
    run: RunId,
    how: (Plan, Option<crate::thread::Persistence>),
    said: (Input, Vec<Answered>),
) -> Result<StartResult, RunFailed> {
    let mut line = QueuePlace::of(&agent, &job, run);
    let way = entered(agent, job, &mut line, how, said).await;
    line.leave().await;
    way
}

async fn entered(
    agent: Arc<AgentSetup>,
    job: Job,
    line: &mut QueuePlace,
    (mut plan, chosen): (Plan, Option<crate::thread::Persistence>),
    (input, replies): (Input, Vec<Answered>),
) -> Result<StartResult, RunFailed> {
    let run = line.run();
    let mut input = input.into_messages();
    let persistence = plan.policy.persistence;
    loop {
        // What is left from here on is looked for.
        let looked = job.thread.left();
        let blocks = (&mut *line, !replies.is_empty());
        let place = match free(&agent, &job, &plan, blocks).await {
            Ok(place) => place,
            Err(Blocked::Refused(error)) => return Err(refused(run, &job, error)),
            Err(Blocked::Failed(failed)) => return Err(*failed),
            Err(Blocked::Repeated(before)) if plan.on_repeat == OnRepeat::Tell => {
                return Err(told(run, &job, &before));
            }
            Err(Blocked::Repeated(run)) => {
                let run = recover::adopt::waited(&job, *run).await?;
                match run.state == RunState::Interrupted && run.leased {
                    // Whoever worked on it is gone: it is settled like any other.
                    true => continue,
                    false => {
                        return repeated(&agent, &job, run).await;
                    }
                }
            }
        };
        // Whoever looks again may find other settings.
        plan.policy.persistence = persistence;
        plan.on_thread(&place.loaded.settings, chosen);
        plan.layered(&agent);
        let by = agent.name.as_str();
        let opening = opening(&job, &plan, by, &place.loaded, &mut input, &replies).await;
        let mut opening = match opening {
            Ok(opening) => opening,
            Err(error) => {
                job.thread.put_back(place.loaded);
                // The run of the same key may be the one that took the calls.
                let before = match &plan.key {
                    Some(key) => asked_before(&job, key).await,
                    None => Ok(None),
                };
                return match before {
                    Ok(Some(before)) if plan.on_repeat == OnRepeat::Tell => {
                        Err(told(run, &job, &before))
                    }
                    Ok(Some(before)) => repeated(&agent, &job, *before).await,
                    Ok(None) => Err(refused(run, &job, error)),
                    Err(error) => Err(refused(run, &job, RunError::Store(error))),
                };
            }
        };
        let here = std::mem::take(&mut opening.run);
        let goes_on = place.loaded.failed.is_some() && input.is_empty();
        let left = recover::adopt::left_open(&job, &place.loaded).await;
        let queued = waiting(&job, &place.loaded).await;
        let spent = match goes_on && (plan.names_no_limits || plan.keeps_spent) {
            true => recover::adopt::spent_before(&agent, &job, &place.loaded, &plan).await,
            false => Ok(Spent::default()),
        };
        let read = left.and_then(|adopted| Ok((adopted, queued?)));
        let read = read.map_err(RunError::Store);
        let said = match read.and_then(|(adopted, queued)| Ok((adopted, queued, spent?))) {
            Ok((adopted, queued, spent)) => RunInput {
                adopted,
                queued,
                opening,
                input: input.clone(),
                spent,
                after_results: !here.is_empty(),
            },
            Err(error) => return Err(refused(run, &job, error)),
        };
        let tells = plan.on_repeat == OnRepeat::Tell;
        match begin(&agent, &job, run, plan, place, said).await {
            Ok(Entered::Begun(mut driver, order)) => {
                // It began with the place that it had.
                line.has_none();
                driver.looked = looked;
                let order = match (here.is_empty(), goes_on) {
                    (false, _) => Box::pin(driver.take(here)).await,
                    (true, true) => Ok(driver.turn.adopt()),
                    (true, false) => Ok(order),
                };
                return Ok(StartResult::Begun(driver, order));
            }
            Ok(Entered::Repeated(before)) if tells => {
                return Err(told(run, &job, &before));
            }
            Ok(Entered::Repeated(run)) => {
                return repeated(&agent, &job, *run).await;
            }
            // Somebody was faster: look again.
            Ok(Entered::Moved(again)) => plan = *again,
            Err(error) => return Err(refused(run, &job, error)),
        }
    }
}

/// Another run answers.
async fn repeated(agent: &Arc<AgentSetup>, job: &Job, run: Run) -> Result<StartResult, RunFailed> {
    // In a box, for what few runs do.
    let outcome = Box::pin(recover::adopt::repeated(agent, job, run)).await?;
    Ok(StartResult::Repeated(Box::new(outcome)))
}

/// The caller asked to be told which run answers instead of waiting for it.
fn told(run: RunId, job: &Job, before: &Run) -> RunFailed {
    refused(run, job, RunError::Repeated { run: before.id })
}

pub(in crate::run::driver) async fn waiting(
    job: &Job,
    loaded: &Loaded,
) -> throughline_store::Result<Vec<(throughline_store::QueueNo, Message)>> {
    let queued = loaded.found.as_ref().map_or(0, |found| found.queued);
    match queued {
        0 => Ok(Vec::new()),
        _ => job.thread.queued().await,
    }
}

/// Why a run does not begin.
pub(in crate::run::driver) enum Blocked {
    Refused(RunError),
    /// A run that had to be finished first failed.
    Failed(Box<RunFailed>),
    /// The same was asked before.
    Repeated(Box<Run>),
}

impl From<Error> for Blocked {
    fn from(error: Error) -> Self {
        Self::Refused(RunError::Store(error))
    }
}

/// Wait until the thread is free and it is the run's turn, or make it so, as the policy says.
async fn free(
    agent: &Arc<AgentSetup>,
    job: &Job,
    plan: &Plan,
    (line, answers): (&mut QueuePlace, bool),
) -> Result<StartPoint, Blocked> {
    let mut is_remembered = true;
    loop {
        let loaded = job.thread.load().await?;
        let (unsettled, next) = match (&loaded.found, loaded.at_node) {
            (Some(found), None) => (found.unsettled.clone(), found.next),
            // At a node nobody is in the way: what is said there is a branch.
            _ => (None, None),
        };
        let before = line.before(next);
        // The handle may have read the thread long ago. What it says of a left run is compared when
        // that is claimed; what it says of the line is read again.
        if before.is_some() && std::mem::take(&mut is_remembered) {
            job.thread.put_back(loaded);
            continue;
        }
        let left = unsettled.as_ref().map(|run| run.id);
        if (left, before) != (None, None)
            && let Some(key) = &plan.key
            && let Some(known) = asked_before(job, key).await?
            && (known.state != RunState::Interrupted || Some(known.id) != left)
        {
            job.thread.put_back(loaded);
            return Err(Blocked::Repeated(known));
        }
        let (loaded, busy) = match (unsettled, before) {
            (None, None) => {
                let branch = loaded.at_node.is_some();
                return Ok(StartPoint { loaded, branch });
            }
            (None, Some(first)) => (loaded, Busy::first_in_line(job, first)),
            (Some(run), before) => {
                let refuses = answers && !planted("loop-input-with-answers");
                if refuses && run.state == RunState::Parked {
                    job.thread.put_back(loaded);
                    return Err(Blocked::Refused(RunError::Parked { run: run.id }));
                }
                // One of this process that no task works on was left, like that of a process that is
                // gone.
                let held = run.state == RunState::Running
                    && live::is_at_work(&job.thread.home.store, run.id);
                let settled = match held || before.is_some() {
                    true => Settled::Busy(Box::new(loaded)),
                    false => Box::pin(settle_left(agent, job, plan, loaded, &run, line)).await?,
                };
                let Settled::Busy(loaded) = settled else {
                    continue;
                };
                (*loaded, Busy::with(&run))
            }
        };
        match plan.policy.on_busy {
            OnBusy::Branch if loaded.end().is_some() => {
                return Ok(StartPoint {
                    loaded,
                    branch: true,
                });
            }
            OnBusy::Reject | OnBusy::Branch => {
                job.thread.put_back(loaded);
                return Err(Blocked::Refused(RunError::Store(busy.error())));
            }
            OnBusy::Interrupt if busy.has_begun && busy.state == RunState::Running => {
                let home = &job.thread.home;
                home.store.cancel(&home.scope, busy.run).await?;
                live::cancel(&home.store, busy.run);
            }
            OnBusy::Interrupt | OnBusy::Queue => {}
        }
        job.thread.put_back(loaded);
        // After lining up, look again: the thread may have become free before that.
        let lines_up = !line.has_place();
        if lines_up || before.is_some() {
            line.keep_place().await?;
        }
        if !lines_up && !line.wait(job, busy.run).await {
            return Err(Blocked::Refused(RunError::Cancelled));
        }
    }
}

/// What a run has to wait for.
pub(in crate::run::driver) struct Busy {
    thread: ThreadId,
    pub(in crate::run::driver) run: RunId,
    state: RunState,
    /// If not, it is the first in line.
    has_begun: bool,
}

impl Busy {
    pub(in crate::run::driver) fn with(run: &Run) -> Self {
        Self {
            thread: run.thread.clone(),
            run: run.id,
            state: run.state,
            has_begun: true,
        }
    }

    pub(in crate::run::driver) fn first_in_line(job: &Job, run: RunId) -> Self {
        Self {
            thread: job.id().clone(),
            run,
            state: RunState::Running,
            has_begun: false,
        }
    }

    pub(in crate::run::driver) fn error(self) -> Error {
        let Self {
            thread, run, state, ..
        } = self;
        Error::Busy { thread, run, state }
    }
}

/// The run that was begun under a key, if there is one. It is found whatever is in the way on the
/// thread: that does not concern a request that is only repeated.
pub(in crate::run::driver) async fn asked_before(
    job: &Job,
    key: &Idempotency,
) -> Result<Option<Box<Run>>, Error> {
    let home = &job.thread.home;
    let found = home.store.run_by_key(&home.scope, key).await?;
    Ok(found.map(Box::new))
}

/// What came of looking at a run that was left.
enum Settled {
    /// Look at the thread again.
    Again,
    /// Somebody works on it.
    Busy(Box<Loaded>),
}

/// Settle a run that was left on the thread.
async fn settle_left(
    agent: &Arc<AgentSetup>,
    job: &Job,
    plan: &Plan,
    loaded: Loaded,
    run: &Run,
    line: &mut QueuePlace,
) -> Result<Settled, Blocked> {
    let restoring = match run.state {
        RunState::Parked => {
            let home = &job.thread.home;
            let journal = home.store.journal(&home.scope, run.id).await?;
            let waits = recover::restore::waiting(&journal);
            if waits.is_empty() {
                by_interrupt(plan, run)?
            } else if plan.policy.on_open_calls == OnOpenCalls::Reject {
                job.thread.put_back(loaded);
                return Err(Blocked::Refused(RunError::OpenCalls {
                    run: run.id,
                    pending: waits,
                    approvals: journal
                        .calls
                        .iter()
                        .filter(|call| call.state == CallState::Approval)
                        .filter_map(|call| call.approval)
                        .collect(),
                }));
            } else {
                Restoring::Withdraw
            }
        }
        // What came out of a backup is never gone on with unasked.
        RunState::Held => Restoring::Close,
        _ => by_interrupt(plan, run)?,
    };
    // What lines up while the run is settled stands behind the one that settles it.
    let had_place = line.has_place();
    line.expect_place();
    let in_line = Some((line.run(), throughline_store::Place::Keep));
    let claimed = recover::take_over::claim(job, run, in_line).await;
    if let Err(Error::Busy { .. } | Error::Fenced { .. } | Error::WrongState { .. }) = &claimed
        && !had_place
    {
        line.has_none();
    }
    let claimed = match claimed {
        Ok(claimed) => claimed,
        Err(Error::Busy { .. }) => return Ok(Settled::Busy(Box::new(loaded))),
        // Somebody else settled it meanwhile.
        Err(Error::Fenced { .. } | Error::WrongState { .. }) => {
            job.thread.put_back(loaded);
            return Ok(Settled::Again);
        }
        Err(error) => {
            job.thread.put_back(loaded);
            return Err(error.into());
        }
    };
    let quiet = Job {
        thread: Arc::clone(&job.thread),
        cancel: job.cancel.child_token(),
        starter: job.starter.clone(),
        events: None,
        stores: true,
    };
    let how = (restoring, RunOptions::default());
    // In a box: a run may have to finish another one first.
    let settled = Box::pin(recover::take_over::taken(
        agent,
        quiet,
        loaded,
        run,
        claimed,
        how,
        &[],
    ));
    match settled.await {
        Ok(_) => Ok(Settled::Again),
        Err(failed) => Err(Blocked::Failed(Box::new(failed))),
    }
}

fn by_interrupt(plan: &Plan, run: &Run) -> Result<Restoring, Blocked> {
    match plan.policy.on_interrupt {
        OnInterrupt::Resume
            if run.attempt + 1 >= START_ATTEMPTS && !planted("loop-never-sealed") =>
        {
            Ok(Restoring::Seal)
        }
        OnInterrupt::Resume => Ok(Restoring::Resume),
        OnInterrupt::Close => Ok(Restoring::Close),
        OnInterrupt::Reject => Err(Blocked::Refused(RunError::Interrupted { run: run.id })),
    }
}
