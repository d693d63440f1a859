//! From a command to a run that has begun: waiting for the thread, and repeated requests.

use throughline_model::{Body, Message};
use throughline_store::{Error, QueueNo, Run, RunId, RunState, ThreadId};

use super::begin::{BeginResult, RunInput, begin};
use super::open_calls::answer_open_calls;
use super::plan::Plan;
use super::queue::QueuePlace;
use super::settle::{Settled, settle};
use crate::run::driver::recover::{adopt, cancel, end_of_run, resume, take_over};
use crate::run::driver::{Driver, DriverError, RunContext};
use crate::run::handle::{Answered, Command};
use crate::run::input::Input;
use crate::run::machine::{Order, Spent};
use crate::run::options::{OnRepeat, RunOptions};
use crate::run::outcome::{Outcome, RunError, RunFailed};
use crate::thread::{Loaded, OnBusy, Persistence, live};
use crate::trials::planted;

/// A run that was taken over so often is not tried again.
pub(crate) const MAX_ATTEMPTS: u32 = 5;

/// Execute a command on the thread of the context.
pub(crate) async fn execute(
    context: RunContext,
    options: RunOptions,
    command: Command,
) -> Result<Outcome, RunFailed> {
    match command {
        Command::Start(input) => start(context, options, input, Vec::new()).await,
        Command::Reply(input, replies) => start(context, options, input, replies).await,
        // Boxed, because every run would have room for what few runs do.
        Command::TakeOver(run, replies) => {
            Box::pin(take_over::take_over(context, options, *run, &replies)).await
        }
        Command::Resume(replies) => Box::pin(resume::resume(context, options, &replies)).await,
        Command::Cancel => Box::pin(cancel::cancel(context, options)).await,
    }
}

async fn start(
    context: RunContext,
    options: RunOptions,
    input: Input,
    replies: Vec<Answered>,
) -> Result<Outcome, RunFailed> {
    let run = options.run.unwrap_or_else(|| context.agent.ids.run());
    let chosen = options.persistence;
    let plan = Plan::new(&context.agent, options);
    let plan = plan.and_then(|plan| check_input(&input).map(|()| plan));
    let plan = plan.map_err(|error| context.refuse(run, error))?;
    // Boxed and dropped before the work: beginning a run needs more memory than going on with it.
    let started = Box::pin(start_in_line(context, run, (plan, chosen), input, replies));
    match started.await? {
        StartResult::Begun(mut driver, order) => {
            let worked = match order {
                Ok(order) => driver.work(order).await,
                Err(error) => Err(error),
            };
            driver.end(worked).await
        }
        StartResult::Repeated(outcome) => Ok(*outcome),
    }
}

/// What came of starting a run.
enum StartResult {
    /// It has begun.
    Begun(Box<Driver>, Result<Order, DriverError>),
    /// The key of the request has another run, which ended with this outcome.
    Repeated(Box<Outcome>),
}

/// Approvals are answered with their own methods, never by a message.
fn check_input(input: &Input) -> Result<(), RunError> {
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
pub(crate) struct StartPoint {
    pub(crate) loaded: Loaded,
    /// At the end of a branch, not at the head of the thread.
    pub(crate) branch: bool,
}

/// Start a run, and give up its place in the line of the thread if it does not begin.
async fn start_in_line(
    context: RunContext,
    run: RunId,
    plan: (Plan, Option<Persistence>),
    input: Input,
    replies: Vec<Answered>,
) -> Result<StartResult, RunFailed> {
    let mut line = QueuePlace::new(&context, run);
    let input = input.into_messages();
    let started = try_until_begun(&context, &mut line, plan, input, &replies).await;
    line.leave().await;
    started
}

/// Wait for the thread and begin, again and again until the thread is as it was read.
async fn try_until_begun(
    context: &RunContext,
    line: &mut QueuePlace,
    (mut plan, chosen): (Plan, Option<Persistence>),
    mut input: Vec<Message>,
    replies: &[Answered],
) -> Result<StartResult, RunFailed> {
    let run = line.run();
    let refuse = |error: RunError| context.refuse(run, error);
    let persistence = plan.policy.persistence;
    loop {
        // Messages that are queued after this are noticed by the run.
        let queue_count = context.thread.left();
        let place = match wait_until_free(context, &plan, line, !replies.is_empty()).await {
            Ok(place) => place,
            Err(Blocked::Refused(error)) => return Err(refuse(error)),
            Err(Blocked::Failed(failed)) => return Err(*failed),
            Err(Blocked::Repeated(mut earlier)) => {
                if plan.on_repeat == OnRepeat::Wait {
                    *earlier = end_of_run::wait_until_idle(context, *earlier).await?;
                    if earlier.state == RunState::Interrupted && earlier.leased {
                        // Its worker is gone. It is settled like any run that was left.
                        continue;
                    }
                }
                return repeat(context, plan.on_repeat, run, *earlier).await;
            }
        };
        let head = place.loaded.end().map(|end| end.node);
        if !plan.expected_head.is_met(head) {
            context.thread.put_back(place.loaded);
            // The head may have moved because of an earlier request with the same key.
            let earlier = run_by_key(context, &plan).await;
            return match earlier.map_err(|error| refuse(error.into()))? {
                Some(earlier) => repeat(context, plan.on_repeat, run, *earlier).await,
                None => Err(refuse(RunError::HeadMoved { head })),
            };
        }
        // The settings of the thread may have changed since the last attempt.
        plan.policy.persistence = persistence;
        plan.apply_thread_settings(&place.loaded.settings, chosen);
        plan.add_persistence_layer(&context.agent);
        let answers = answer_open_calls(context, &plan, &place.loaded, &mut input, replies).await;
        let mut answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                context.thread.put_back(place.loaded);
                // An earlier run of the same key may have taken the calls.
                let earlier = match &plan.key {
                    Some(_) => run_by_key(context, &plan)
                        .await
                        .map_err(|e| refuse(e.into()))?,
                    None => None,
                };
                return match earlier {
                    Some(earlier) => repeat(context, plan.on_repeat, run, *earlier).await,
                    None => Err(refuse(error)),
                };
            }
        };
        let calls = std::mem::take(&mut answers.run);
        let continues = place.loaded.failed.is_some() && input.is_empty();
        let read = async {
            let loaded = &place.loaded;
            Ok::<_, RunError>(RunInput {
                leftover: adopt::find_leftover(context, loaded).await?,
                queue_count,
                queued: queued_messages(context, loaded).await?,
                spent: match continues && (plan.names_no_limits || plan.keeps_spent) {
                    true => adopt::spent_before(context, loaded, &plan).await?,
                    false => Spent::default(),
                },
                answers,
                input: input.clone(),
                after_results: !calls.is_empty(),
            })
        };
        let run_input = read.await.map_err(refuse)?;
        let on_repeat = plan.on_repeat;
        match begin(context, run, plan, place, run_input).await {
            Ok(BeginResult::Begun(mut driver, order)) => {
                // Beginning has removed its place.
                line.forget_place();
                let order = match (calls.is_empty(), continues) {
                    (false, _) => Box::pin(driver.take_calls(calls)).await,
                    (true, true) => Ok(driver.turn.adopt()),
                    (true, false) => Ok(order),
                };
                return Ok(StartResult::Begun(driver, order));
            }
            Ok(BeginResult::Repeated(earlier)) => {
                return repeat(context, on_repeat, run, *earlier).await;
            }
            Ok(BeginResult::ThreadChanged(same)) => plan = *same,
            Err(error) => return Err(refuse(error)),
        }
    }
}

/// Answer a request whose key has an earlier run.
async fn repeat(
    context: &RunContext,
    on_repeat: OnRepeat,
    run: RunId,
    earlier: Run,
) -> Result<StartResult, RunFailed> {
    if on_repeat == OnRepeat::Tell {
        return Err(context.refuse(run, RunError::Repeated { run: earlier.id }));
    }
    // Boxed, because every run would have room for what few runs do.
    let outcome = Box::pin(end_of_run::outcome(context, earlier)).await?;
    Ok(StartResult::Repeated(Box::new(outcome)))
}

/// The messages in the queue of the thread.
pub(crate) async fn queued_messages(
    context: &RunContext,
    loaded: &Loaded,
) -> throughline_store::Result<Vec<(QueueNo, Message)>> {
    let queued = loaded.found.as_ref().map_or(0, |found| found.queued);
    match queued {
        0 => Ok(Vec::new()),
        _ => context.thread.queued().await,
    }
}

/// Why a run does not begin.
pub(super) enum Blocked {
    Refused(RunError),
    /// Another run had to be settled first, and failed.
    Failed(Box<RunFailed>),
    /// The key of the request has this run.
    Repeated(Box<Run>),
}

impl From<RunError> for Blocked {
    fn from(error: RunError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for Blocked {
    fn from(error: Error) -> Self {
        Self::Refused(error.into())
    }
}

/// Wait until the thread is free and the run is the first in line, or make it free as the policy
/// says.
async fn wait_until_free(
    context: &RunContext,
    plan: &Plan,
    line: &mut QueuePlace,
    has_replies: bool,
) -> Result<StartPoint, Blocked> {
    let mut is_remembered = true;
    loop {
        let loaded = context.thread.load().await?;
        let (unsettled, next) = match (&loaded.found, loaded.at_node) {
            (Some(found), None) => (found.unsettled.clone(), found.next),
            // A run at a node begins a branch and waits for no other run.
            _ => (None, None),
        };
        let before = line.before(next);
        // The handle may have read the thread long ago. A claim compares what it says of a left run,
        // but what it says of the line is read again.
        if before.is_some() && std::mem::take(&mut is_remembered) {
            context.thread.put_back(loaded);
            continue;
        }
        let left = unsettled.as_ref().map(|run| run.id);
        if (left, before) != (None, None)
            && let Some(known) = run_by_key(context, plan).await?
            && (known.state != RunState::Interrupted || Some(known.id) != left)
        {
            context.thread.put_back(loaded);
            return Err(Blocked::Repeated(known));
        }
        let (loaded, blocking) = match (unsettled, before) {
            (None, None) => {
                let branch = loaded.at_node.is_some();
                return Ok(StartPoint { loaded, branch });
            }
            (None, Some(first)) => (loaded, BlockingRun::first_in_line(context, first)),
            (Some(run), before) => {
                let refuses = has_replies && !planted("loop-input-with-answers");
                if refuses && run.state == RunState::Parked {
                    context.thread.put_back(loaded);
                    return Err(RunError::Parked { run: run.id }.into());
                }
                // A run of this process without a task was left, like one of a dead process.
                let is_worked_on = run.state == RunState::Running
                    && live::is_running_here(&context.thread.home.store, run.id);
                let settled = match is_worked_on || before.is_some() {
                    true => Settled::Busy(Box::new(loaded)),
                    false => Box::pin(settle(context, plan, loaded, &run, line)).await?,
                };
                let Settled::Busy(loaded) = settled else {
                    continue;
                };
                (*loaded, BlockingRun::of(&run))
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
                context.thread.put_back(loaded);
                return Err(blocking.error().into());
            }
            OnBusy::Interrupt if blocking.has_begun && blocking.state == RunState::Running => {
                let home = &context.thread.home;
                home.store.cancel(&home.scope, blocking.run).await?;
                live::cancel(&home.store, blocking.run);
            }
            OnBusy::Interrupt | OnBusy::Queue => {}
        }
        context.thread.put_back(loaded);
        if !line.wait_behind(blocking.run, before, context).await? {
            return Err(RunError::Cancelled.into());
        }
    }
}

/// A run that must end before another one can begin.
pub(crate) struct BlockingRun {
    thread: ThreadId,
    pub(crate) run: RunId,
    state: RunState,
    /// If not, it is the first in line.
    has_begun: bool,
}

impl BlockingRun {
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            thread: run.thread.clone(),
            run: run.id,
            state: run.state,
            has_begun: true,
        }
    }

    pub(crate) fn first_in_line(context: &RunContext, run: RunId) -> Self {
        Self {
            thread: context.thread_id().clone(),
            run,
            state: RunState::Running,
            has_begun: false,
        }
    }

    pub(crate) fn error(self) -> Error {
        let Self {
            thread, run, state, ..
        } = self;
        Error::Busy { thread, run, state }
    }
}

/// The run that was begun under the key of the request. A repeated request is answered with it
/// whatever else happens on the thread.
async fn run_by_key(
    context: &RunContext,
    plan: &Plan,
) -> throughline_store::Result<Option<Box<Run>>> {
    let Some(key) = &plan.key else {
        return Ok(None);
    };
    let home = &context.thread.home;
    let found = home.store.run_by_key(&home.scope, key).await?;
    Ok(found.map(Box::new))
}
