//! Carries out the orders of the turn machine: calls models, runs tools, writes the journal, keeps
//! time, and publishes events.

mod approvals;
mod cancel_poll;
mod context;
mod cutoff;
mod finish;
mod inbox;
mod model;
mod publisher;
mod recover;
mod run_memory;
mod start;
mod thread_state;
mod tools;
mod transcript;

use std::pin::Pin;
use std::sync::Arc;

use throughline_model::Message;
use throughline_store::RunId;

use super::handle::Command;
use super::options::RunOptions;
use super::outcome::{self, Outcome, RunError, RunFailed};
use crate::client::ClientError;
use crate::run::event::RunEvent;
use crate::run::machine::{ModelCall, NewMessage, Order, Turn};
use crate::thread::{RunningRun, StopReason};
pub(crate) use context::{Caller, RunContext};
use cutoff::Cutoff;
use finish::OutcomeDetails;
use inbox::Inbox;
use model::{CallEnd, ModelInput};
use publisher::RunLog;
pub(crate) use publisher::{EventBatch, NumberedEvent};
use run_memory::RunMemory;
use start::Plan;
use thread_state::ThreadState;
use tools::ToolExecution;
use transcript::Transcript;

/// A run in progress: the turn machine, and the parts that carry out its orders.
pub(crate) struct Driver {
    context: RunContext,
    run: RunId,
    plan: Plan,
    turn: Turn,
    log: RunLog,
    transcript: Transcript,
    state: ThreadState,
    inbox: Inbox,
    model: ModelInput,
    tools: ToolExecution,
    details: OutcomeDetails,
    cutoff: Cutoff,
    memory: RunMemory,
    /// Whether a model call was cut off that leaves nothing in the history.
    was_cut: bool,
    /// Registers the run with this process. It is dropped last.
    _at_work: RunningRun,
}

/// Why a run cannot go on.
pub(crate) enum DriverError {
    /// The model call failed, and the run with it.
    Client(ClientError),
    /// Something else failed, and the run with it.
    Run(RunError),
    /// Something failed that can be tried again: the run is parked until then.
    Wait(RunError),
    /// The journal cannot be written, or another worker owns the run. Nothing more is done.
    Journal(throughline_store::Error),
}

impl From<throughline_store::Error> for DriverError {
    fn from(error: throughline_store::Error) -> Self {
        Self::Journal(error)
    }
}

impl From<RunError> for DriverError {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

/// Execute a command on a thread. The current span becomes the parent of the run's span, so this is
/// no `async fn`, whose body would begin in the task of the run.
pub(crate) fn drive(
    context: RunContext,
    options: RunOptions,
    command: Command,
) -> Pin<Box<dyn Future<Output = Result<Outcome, RunFailed>> + Send>> {
    let agent = Arc::clone(&context.agent);
    let watch = agent
        .telemetry
        .run(agent.client.abilities(), context.thread_id());
    // Boxed, because the future is large and the wrapper would move it.
    let run = Box::pin(start::execute(context, options, command));
    Box::pin(watch.over(run, outcome::report))
}

impl Driver {
    /// Follow orders until the last, or until the run is cancelled by another process.
    async fn work(&mut self, order: Order) -> Result<StopReason, DriverError> {
        let polls = cancel_poll::cancel_when_asked(
            self.run,
            self.log.recorder.home(),
            &self.context.cancel,
        );
        tokio::select! {
            biased;
            worked = self.follow(order) => worked,
            never = polls => match never {},
        }
    }

    /// Follow orders until the last.
    async fn follow(&mut self, mut order: Order) -> Result<StopReason, DriverError> {
        loop {
            self.record_new_messages();
            order = match order {
                Order::CallModel(call) => self.call_model(call).await?,
                Order::Dispatch(positions) => {
                    self.dispatch(&positions).await?;
                    self.wait().await?
                }
                Order::Wait => self.wait().await?,
                Order::End(stop) => return Ok(stop),
            };
        }
    }

    /// Make a model call with everything that must go out before and with it.
    async fn call_model(&mut self, call: ModelCall) -> Result<Order, DriverError> {
        self.store_results().await?;
        // An answer that is asked for was made without what was queued since.
        if call != ModelCall::First && self.model.accepted.is_none() {
            self.deliver_queued().await?;
        }
        let (end, mark) = self.send_model_call(call).await?;
        match end {
            CallEnd::Answered(response) => self.answered(response, &mark).await,
            CallEnd::Failed(error) => {
                self.turn.model_failed();
                Err(DriverError::Client(error))
            }
            CallEnd::Cut(stop, partial) => {
                let partial = self.cut(partial);
                self.begin_round(&mark);
                let order = self.turn.cut(stop, partial);
                self.record_new_messages();
                self.record_closed().await?;
                Ok(order)
            }
        }
    }

    /// Hand the turn what was queued on the thread through this handle.
    async fn read_own_queue(&mut self) -> Result<(), DriverError> {
        match self.inbox.has_new(&self.context.thread) {
            true => self.read_queue().await,
            false => Ok(()),
        }
    }

    /// Bring everything that was queued on the thread to the model call that comes next.
    async fn deliver_queued(&mut self) -> Result<(), DriverError> {
        match self.context.thread.is_private() {
            true => self.read_own_queue().await?,
            false => self.read_queue().await?,
        }
        self.turn.deliver_now();
        self.record_new_messages();
        Ok(())
    }

    async fn read_queue(&mut self) -> Result<(), DriverError> {
        if crate::trials::planted("loop-queue-forgotten") {
            return Ok(());
        }
        for (no, message) in self.context.thread.queued().await? {
            self.inbox.inject_queued(&mut self.turn, no, message);
        }
        Ok(())
    }

    /// Record the messages that the turn has added to the transcript.
    fn record_new_messages(&mut self) {
        for message in self.turn.take_new() {
            self.record_message(message);
        }
        self.inbox
            .note_delivered(&self.turn, &mut self.log.recorder);
    }

    /// Note a new message for the journal, and add it to the transcript.
    fn record_message(&mut self, message: NewMessage) {
        match message {
            NewMessage::Message(mut message) => {
                message.created = Some(self.context.agent.clock.now());
                self.log.recorder.say(&message);
                self.add_message(message);
            }
            NewMessage::Results(mut message) => {
                message.created = self.tools.round.answered_at;
                self.note_results(&message);
                self.memory.results(&message.contents);
                self.add_message(message);
                self.transcript.results_are_unsent();
            }
        }
    }

    /// Add a message to the transcript and to what the model is shown, and publish it.
    fn add_message(&mut self, message: Message) {
        let message = Arc::new(message);
        self.log.publish(|| RunEvent::Message((*message).clone()));
        self.model.push(&message);
        self.transcript.push(message);
    }
}
