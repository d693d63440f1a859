//! Does what the turn machine orders: calls models, runs tools, keeps time, tells readers.

mod ask;
mod judge;
mod own;
mod settle;
mod tools;

use std::collections::HashMap;
use std::sync::Arc;

use throughline_model::{Settings, ToolChoice};
use throughline_store::{RunId, ThreadId};
use tokio::sync::{Mutex, mpsc};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::event::RunEvent;
use super::inner::Inner;
use super::limits::Limits;
use super::options::RunOptions;
use super::outcome::{Outcome, RunError, RunFailed, Step};
use super::run::Start;
use super::stop::StopReason;
use super::turn::{Order, Turn};
use crate::client::ClientError;
use crate::history::{Held, Mailbox, Thread};
use crate::telemetry;
use crate::tool::ToolSet;
use ask::Asked;
use judge::Prepared;
use own::OwnTools;
use tools::Finished;

/// Where a run works, and who listens.
pub(crate) struct Job {
    thread: ThreadId,
    held: Arc<Mutex<Held>>,
    mailbox: Mailbox,
    pub(super) cancel: CancellationToken,
    pub(super) events: Option<mpsc::UnboundedSender<RunEvent>>,
}

impl Job {
    pub(super) fn on(thread: &Thread) -> Self {
        Self {
            thread: thread.id().clone(),
            held: thread.held(),
            mailbox: thread.mailbox(),
            cancel: CancellationToken::new(),
            events: None,
        }
    }

    fn emit(&self, event: impl FnOnce() -> RunEvent) {
        if let Some(events) = &self.events {
            // Whoever listened may be gone; the run is then being cancelled anyway.
            drop(events.send(event()));
        }
    }
}

/// What holds for all model calls of a run.
#[derive(Clone)]
struct Plan {
    instructions: Option<String>,
    settings: Settings,
    model: Option<String>,
    choice: ToolChoice,
    limits: Limits,
}

/// A run that stopped and can be gone on with.
pub(crate) struct Parked {
    run: RunId,
    turn: Turn,
    tools: ToolSet,
    plan: Plan,
    steps: Vec<Step>,
    /// Where in the view its messages begin.
    base: usize,
}

/// A run at work.
struct Driver<'h> {
    agent: Arc<Inner>,
    job: Job,
    held: &'h mut Held,
    run: RunId,
    turn: Turn,
    tools: Arc<OwnTools>,
    plan: Plan,
    steps: Vec<Step>,
    base: usize,
    running: JoinSet<Finished>,
    /// Which call a task answers.
    tasks: HashMap<Id, u32>,
    /// Calls that were judged fit to run.
    prepared: HashMap<u32, Prepared>,
    deadline: Option<Instant>,
    /// Cancelled when what runs is to stop.
    stop_tools: CancellationToken,
}

/// Run an agent on a thread, from its input or from where it stopped. What is entered now is the
/// parent of the run's span, so this is no `async fn`: its body would begin in the run's own task.
pub(crate) fn drive(
    agent: Arc<Inner>,
    job: Job,
    options: RunOptions,
    start: Start,
) -> impl Future<Output = Result<Outcome, RunFailed>> + Send {
    let watch = agent.telemetry.run(agent.client.abilities(), &job.thread);
    // In a box, because what is put around it would move it, and it is large.
    watch.over(Box::pin(driven(agent, job, options, start)))
}

async fn driven(
    agent: Arc<Inner>,
    job: Job,
    options: RunOptions,
    start: Start,
) -> Result<Outcome, RunFailed> {
    let lock = Arc::clone(&job.held);
    let mut held = lock.lock().await;
    match start {
        Start::Input(input) => {
            let run = agent.ids.run();
            let (plan, tools, calling) = match settle::plan(&agent, options) {
                Ok(plan) => plan,
                Err(error) => return Err(settle::refused(run, &job, error)),
            };
            settle::before(&mut held);
            let base = held.view.messages().len();
            let turn = Turn::new(run, plan.limits.clone(), calling);
            let parked = Parked {
                run,
                turn,
                tools,
                plan,
                steps: Vec::new(),
                base,
            };
            let mut driver = Driver::new(agent, job, &mut held, parked);
            driver.mail();
            let order = driver.turn.start(input.into_messages());
            let ended = driver.work(order).await;
            driver.end(ended)
        }
        Start::Unsettled(replies) => {
            let Some(mut parked) = held.unsettled.take() else {
                let error = RunError::NothingToResume {
                    thread: job.thread.clone(),
                };
                return Err(settle::refused(agent.ids.run(), &job, error));
            };
            let prepared = match judge::replies(&mut parked, &replies) {
                Ok(prepared) => prepared,
                Err(error) => {
                    let failed = settle::refused(parked.run, &job, error);
                    held.unsettled = Some(parked);
                    return Err(failed);
                }
            };
            let mut driver = Driver::new(agent, job, &mut held, *parked);
            driver.prepared = prepared;
            driver.mail();
            let order = driver.turn.resume();
            let ended = driver.work(order).await;
            driver.end(ended)
        }
    }
}

impl<'h> Driver<'h> {
    fn new(agent: Arc<Inner>, job: Job, held: &'h mut Held, parked: Parked) -> Self {
        let time = parked.plan.limits.time;
        telemetry::name_run(parked.run);
        job.emit(|| RunEvent::Started {
            run: parked.run,
            thread: job.thread.clone(),
        });
        Self {
            tools: Arc::new(OwnTools::new(parked.tools, job.mailbox.clone())),
            run: parked.run,
            turn: parked.turn,
            plan: parked.plan,
            steps: parked.steps,
            base: parked.base,
            running: JoinSet::new(),
            tasks: HashMap::new(),
            prepared: HashMap::new(),
            deadline: time.map(|time| Instant::now() + time),
            stop_tools: job.cancel.child_token(),
            agent,
            job,
            held,
        }
    }

    /// Follow orders until the last.
    async fn work(&mut self, mut order: Order) -> (StopReason, Option<ClientError>) {
        let mut failure = None;
        loop {
            self.tell();
            order = match order {
                Order::Ask(ask) => match self.ask(ask).await {
                    Asked::Answered(response) => self.answered(response),
                    Asked::Failed(error) => {
                        failure = Some(error);
                        self.turn.failed()
                    }
                    Asked::Cut(stop, partial) => self.turn.cut(stop, partial),
                },
                Order::Dispatch(positions) => {
                    for position in positions {
                        self.dispatch(position);
                    }
                    self.wait().await
                }
                Order::Wait => self.wait().await,
                Order::End(stop) => return (stop, failure),
            };
        }
    }

    /// Bring what was left in the mailbox to the turn.
    fn mail(&mut self) {
        for message in self.job.mailbox.take() {
            self.turn.inject(message);
        }
    }

    /// Put what entered the transcript into the view, and tell readers.
    fn tell(&mut self) {
        for mut message in self.turn.take_fresh() {
            message.created = Some(self.agent.clock.now());
            let message = Arc::new(message);
            self.job.emit(|| RunEvent::Message((*message).clone()));
            self.held.view.push(message);
        }
    }

    fn end(
        mut self,
        (stop, failure): (StopReason, Option<ClientError>),
    ) -> Result<Outcome, RunFailed> {
        self.stop_tools.cancel();
        self.running.abort_all();
        let events = self.job.events.clone();
        let outcome = self.settle(stop);
        if let Some(events) = events {
            drop(events.send(RunEvent::Ended { stop }));
        }
        match failure {
            None => Ok(outcome),
            Some(error) => Err(RunFailed {
                outcome: Box::new(outcome),
                source: RunError::Client(error),
            }),
        }
    }
}
