//! Does what the turn machine orders: calls models, runs tools, writes the journal, keeps time,
//! tells readers.

mod cancel_poll;
mod finish;
mod model;
mod publisher;
mod recover;
mod start;
mod tools;

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use throughline_compact::Report;
use throughline_model::Message;
use throughline_store::{
    ApprovalId, CallRef, Millis, NodeId, QueueNo, RunId, Shown, State, ThreadId,
};
use throughline_wire::Loss;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::event::RunEvent;
use super::handle::Command;
use super::options::RunOptions;
use super::outcome::{self, Outcome, RunError, RunFailed, Step};
use super::setup::AgentSetup;
use crate::client::ClientError;
use crate::run::machine::{Ask, Fresh, Order, Turn};
use crate::thread::StopReason;
use crate::thread::{AtWork, Recorder, Shared, Thread};
pub(crate) use finish::told as told_error;
use model::{CallResult, Ownership, PromptView, Provided};
use publisher::EventPublisher;
pub(crate) use publisher::{EventBatch, NumberedEvent};
use start::Plan;
use tools::{Finished, Prepared, RunTools};

/// Where a run works, and who listens.
pub(crate) struct Job {
    thread: Arc<Shared>,
    pub(super) cancel: CancellationToken,
    pub(super) starter: Starter,
    pub(super) events: Option<mpsc::UnboundedSender<EventBatch>>,
    /// Whether what they hear is stored.
    pub(super) stores: bool,
}

impl Job {
    pub(super) fn on(thread: &Thread) -> Self {
        Self {
            thread: Arc::clone(thread.shared()),
            cancel: CancellationToken::new(),
            starter: Starter::default(),
            events: None,
            stores: true,
        }
    }

    /// The same job, for a run that may not begin.
    fn again(&self) -> Self {
        Self {
            thread: Arc::clone(&self.thread),
            cancel: self.cancel.clone(),
            starter: self.starter.clone(),
            events: self.events.clone(),
            stores: self.stores,
        }
    }

    /// Whether it is to end only because whoever started it went away.
    fn is_abandoned(&self) -> bool {
        let Starter { left, asked } = &self.starter;
        left.is_cancelled() && !asked.is_cancelled()
    }

    fn id(&self) -> &ThreadId {
        &self.thread.id
    }
}

/// What is known of whoever started a run.
#[derive(Clone, Default)]
pub(crate) struct Starter {
    /// Cancelled when nobody waits for the run any more.
    pub(super) left: CancellationToken,
    /// Cancelled when the run was to end.
    pub(super) asked: CancellationToken,
}

/// A run at work.
struct Driver {
    agent: Arc<AgentSetup>,
    job: Job,
    run: RunId,
    turn: Turn,
    tools: Arc<RunTools>,
    plan: Plan,
    recorder: Recorder,
    publisher: EventPublisher,
    prompt: PromptView,
    owner: Ownership,
    provided: Provided,
    /// State at the end of the history, as this run changes it.
    state: State,
    /// The state of the node to go on from, if it is known: what has not changed is not written.
    held: Option<State>,
    /// What was done to what the model is shown.
    compaction: Option<Report>,
    /// What the service could not be told in the last call.
    lost: Vec<Loss>,
    /// The same of all calls, each once.
    losses: Vec<Loss>,
    /// The state that this run published last.
    published_state: Option<State>,
    /// Whether the end of the run is a node of its own.
    ends_here: bool,
    /// What was said in this run.
    said: Vec<Arc<Message>>,
    /// How much of it comes from the run before, which never sent it.
    carried: usize,
    /// Whether results that no model was shown were said last.
    trailing: bool,
    /// How much of it is history already.
    published: usize,
    /// Whether the last model call is to be published at once.
    marked: bool,
    /// The node to go on from.
    node: Option<NodeId>,
    steps: Vec<Step>,
    /// The last step, and what is known of its calls.
    round: RoundRecord,
    running: JoinSet<Finished>,
    /// Which call a task answers.
    tasks: HashMap<Id, u32>,
    /// Calls that were judged fit to run.
    prepared: HashMap<u32, Prepared>,
    /// Numbers of the messages that the turn was given, in its order; none for input of the run
    /// itself that is said later.
    queued: VecDeque<Option<QueueNo>>,
    /// Numbers of queued messages that were taken.
    taken: HashSet<QueueNo>,
    /// How often something had been left when the queue was last looked at.
    looked: u64,
    deadline: Option<Instant>,
    /// Cancelled when what runs is to stop.
    stop_tools: CancellationToken,
    _at_work: AtWork,
}

/// What the journal has of the round that is going on.
#[derive(Default)]
struct RoundRecord {
    step: u32,
    /// When its answer came; its results carry this date.
    at: Option<Millis>,
    /// Calls with an intent.
    intended: HashSet<u32>,
    /// Calls with a result.
    stored: HashSet<u32>,
    approvals: HashMap<u32, (ApprovalId, Shown)>,
    /// Calls that were taken over from an earlier run, by position.
    taken: Vec<CallRef>,
}

/// Why a run cannot go on.
enum DriverError {
    /// The model could not be called; the run failed.
    Client(ClientError),
    /// Something else; the run failed.
    Run(RunError),
    /// Something that can be tried again as it is: the run waits for that.
    Wait(RunError),
    /// The journal cannot be written, or is somebody else's by now. Nothing more is done.
    Journal(throughline_store::Error),
}

impl From<throughline_store::Error> for DriverError {
    fn from(error: throughline_store::Error) -> Self {
        Self::Journal(error)
    }
}

/// Run an agent on a thread, from its input or from where it stopped. What is entered now is the
/// parent of the run's span, so this is no `async fn`: its body would begin in the run's own task.
pub(crate) fn drive(
    agent: Arc<AgentSetup>,
    job: Job,
    options: RunOptions,
    command: Command,
) -> Pin<Box<dyn Future<Output = Result<Outcome, RunFailed>> + Send>> {
    let watch = agent.telemetry.run(agent.client.abilities(), job.id());
    // In a box, because what is put around it would move it, and it is large.
    let run = Box::pin(start::driven(agent, job, options, command));
    Box::pin(watch.over(run, outcome::report))
}

impl Driver {
    /// Follow orders until the last, or until somebody asks for the end in another process.
    async fn work(&mut self, order: Order) -> Result<StopReason, DriverError> {
        let asked = self.asked_elsewhere();
        tokio::select! {
            biased;
            worked = self.follow(order) => worked,
            never = asked => match never {},
        }
    }

    /// Follow orders until the last.
    async fn follow(&mut self, mut order: Order) -> Result<StopReason, DriverError> {
        loop {
            self.tell();
            order = match order {
                Order::Ask(ask) => {
                    self.store_results().await?;
                    if ask != Ask::First {
                        self.mail_for_call().await?;
                    }
                    match self.ask(ask).await? {
                        CallResult::Answered(response) => self.answered(response).await?,
                        CallResult::Failed(error) => {
                            self.turn.failed();
                            return Err(DriverError::Client(error));
                        }
                        CallResult::Cut(stop, partial) => {
                            self.begin_round();
                            let order = self.turn.cut(stop, partial);
                            self.tell();
                            self.record_closed().await?;
                            order
                        }
                    }
                }
                Order::Dispatch(positions) => {
                    self.dispatch(&positions).await?;
                    self.wait().await?
                }
                Order::Wait => self.wait().await?,
                Order::End(stop) => return Ok(stop),
            };
        }
    }

    /// Bring what was left in the mailbox through this handle to the turn.
    async fn mail(&mut self) -> Result<(), DriverError> {
        let left = self.job.thread.left();
        if left == self.looked {
            return Ok(());
        }
        self.looked = left;
        self.read_queue().await
    }

    /// Bring what was left in the mailbox, also by others, to the model call that comes next.
    async fn mail_for_call(&mut self) -> Result<(), DriverError> {
        match self.job.thread.is_private() {
            true => self.mail().await?,
            false => self.read_queue().await?,
        }
        self.turn.deliver_now();
        self.tell();
        Ok(())
    }

    /// Hand queued messages to the turn, each once.
    async fn read_queue(&mut self) -> Result<(), DriverError> {
        if crate::trials::planted("loop-queue-forgotten") {
            return Ok(());
        }
        for (no, message) in self.job.thread.queued().await? {
            if self.taken.insert(no) {
                self.queued.push_back(Some(no));
                self.turn.inject(message);
            }
        }
        Ok(())
    }

    /// Put what entered the transcript into the view and the journal, and tell readers.
    fn tell(&mut self) {
        for fresh in self.turn.take_fresh() {
            self.enter_fresh(fresh);
        }
        // What is no longer with the turn was delivered, oldest first.
        while self.queued.len() > self.turn.injected() {
            if let Some(Some(no)) = self.queued.pop_front() {
                self.recorder.deliver(no);
            }
        }
    }

    /// Put one thing that entered the transcript into the view and the journal.
    fn enter_fresh(&mut self, fresh: Fresh) {
        let message = match fresh {
            Fresh::Said(mut message) => {
                message.created = Some(self.agent.clock.now());
                self.recorder.say(&message);
                self.trailing = false;
                message
            }
            Fresh::Results(mut message) => {
                message.created = self.round.at;
                self.note_results(&message);
                self.trailing = true;
                message
            }
        };
        self.enter(Arc::new(message));
    }

    /// A message is in the transcript.
    fn enter(&mut self, message: Arc<Message>) {
        let publisher = &mut self.publisher;
        publisher.say(&mut self.recorder, || RunEvent::Message((*message).clone()));
        // A service that keeps the conversation has what it said itself.
        if !self.prompt.is_incremental() || !model::is_models(&message) {
            self.prompt.push(Arc::clone(&message));
        }
        self.said.push(message);
    }

    /// Store the events that are held, and tell them.
    async fn pump(&mut self) -> Result<(), DriverError> {
        let begun = Instant::now();
        if !crate::trials::planted("server-events-unstored") {
            self.recorder.flush().await?;
        }
        self.publisher.took(begun.elapsed());
        self.publisher.stored();
        Ok(())
    }
}
