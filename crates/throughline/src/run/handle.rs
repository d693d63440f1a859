//! The handle of a run: awaited for its outcome, or read as a stream of events.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::panic;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use throughline_model::{CallId, Output, Settings, ToolChoice};
use throughline_store::{CallRef, CallState, EventNo, Idempotency};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::TypedRun;
use super::driver::{self, Caller, EventBatch, NumberedEvent, RunContext};
use super::event::RunEvent;
use super::input::Input;
use super::limits::{Calling, Limits};
use super::options::RunOptions;
use super::order::{self, Answering, Order, Working};
use super::outcome::{Outcome, RunError, RunFailed};
use super::setup::AgentSetup;
use crate::run::ContextProvider;
use crate::thread::Pending;
use crate::thread::{OnBusy, OnInterrupt, OnOpenCalls, Persistence, Thread};
use crate::tool::Tool;

/// The caller's reply about a call that waits.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Approve,
    Reject(Option<String>),
    Expire,
    Result(throughline_model::Outcome, Output),
}

/// A reply, and the call that it is for.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) at: CallRef,
    /// Its id, for error messages.
    pub(crate) call: CallId,
    pub(crate) reply: Reply,
}

impl Answered {
    /// The error about a call that does not wait for this reply.
    pub(crate) fn not_pending(&self, pending: Vec<String>) -> RunError {
        RunError::NotPending {
            call: self.call.to_string(),
            pending,
        }
    }

    /// Whether a call in a state takes this reply.
    pub(crate) fn fits(&self, state: CallState) -> bool {
        match (&self.reply, state) {
            (Reply::Expire, _) | (_, CallState::Taken) => true,
            (Reply::Approve | Reply::Reject(_), state) => state == CallState::Approval,
            (Reply::Result(..), state) => matches!(state, CallState::Client | CallState::Intent),
        }
    }
}

/// What the driver executes.
pub(crate) enum Command {
    /// Start a run with input.
    Start(Input),
    /// Start a run at an open node, with replies for the calls that the node waits for.
    Reply(Input, Vec<Answered>),
    /// Resume this run, which no worker has.
    TakeOver(Box<throughline_store::Run>, Vec<Answered>),
    /// Resume the run on the thread that is parked, interrupted or failed.
    Resume(Vec<Answered>),
    /// Cancel the run on the thread.
    Cancel,
}

impl Command {
    fn input(&self) -> Option<&Input> {
        match self {
            Self::Start(input) | Self::Reply(input, _) => Some(input),
            Self::TakeOver(..) | Self::Resume(_) | Self::Cancel => None,
        }
    }
}

pub(super) mod sealed {
    use crate::run::order::{Cancel, Reply, Resume, Start};

    /// Keeps the orders of a run a closed set.
    pub trait Sealed: Send + 'static {}

    impl Sealed for Start {}
    impl Sealed for Resume {}
    impl Sealed for Reply {}
    impl Sealed for Cancel {}
}

/// A run. It begins when it is awaited or streamed. Dropping it while it works cancels it: what had
/// finished is kept, open calls are closed, and the thread can be used again.
///
/// The type parameter says what the run is for and so which methods it has; see [`order`](crate::agent::order).
#[must_use = "a run begins when it is awaited or streamed"]
pub struct Run<O: Order = order::Start> {
    context: RunContext,
    options: RunOptions,
    command: Command,
    in_place: bool,
    order: PhantomData<fn() -> O>,
}

impl Run<order::Start> {
    pub(crate) fn begin(agent: &Arc<AgentSetup>, thread: &Thread, input: Input) -> Self {
        Self::new(agent, thread, Command::Start(input.with_caller_source()))
    }
}

impl Run<order::Reply> {
    pub(crate) fn reply(agent: &Arc<AgentSetup>, thread: &Thread, input: Input) -> Self {
        let command = Command::Reply(input.with_caller_source(), Vec::new());
        Self::new(agent, thread, command)
    }
}

impl Run<order::Resume> {
    /// The agent and the options of the run.
    pub(crate) fn into_setup(self) -> (Arc<AgentSetup>, RunOptions) {
        (self.context.agent, self.options)
    }

    pub(crate) fn take_over(
        agent: &Arc<AgentSetup>,
        thread: &Thread,
        run: throughline_store::Run,
    ) -> Self {
        Self::new(agent, thread, Command::TakeOver(Box::new(run), Vec::new()))
    }

    pub(crate) fn resume(agent: &Arc<AgentSetup>, thread: &Thread) -> Self {
        Self::new(agent, thread, Command::Resume(Vec::new()))
    }
}

impl Run<order::Cancel> {
    pub(crate) fn cancel(agent: &Arc<AgentSetup>, thread: &Thread) -> Self {
        Self::new(agent, thread, Command::Cancel)
    }
}

impl<O: Working> Run<O> {
    /// With options. A run that is resumed keeps those that it began with.
    pub fn options(mut self, options: &RunOptions) -> Self {
        self.options = options.clone();
        self
    }

    /// With one more tool, for this run only.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.options.tools.push(Arc::new(tool));
        self
    }

    /// With a choice of tools for the first model call.
    pub fn choice(mut self, choice: ToolChoice) -> Self {
        self.options.choice = choice;
        self
    }

    /// With settings of its own.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.options.settings = Some(settings);
        self
    }

    /// With limits of its own.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = Some(limits);
        self
    }

    /// With the calls of a round one after the other.
    pub fn serial_calls(mut self) -> Self {
        self.options.calling = Some(Calling::Serial);
        self
    }

    /// With a context provider, for this run only.
    pub fn provider(mut self, provider: impl ContextProvider + 'static) -> Self {
        self.options.providers.push(Arc::new(provider));
        self
    }

    /// With a persistence of its own.
    pub fn persistence(mut self, persistence: Persistence) -> Self {
        self.options.persistence = Some(persistence);
        self
    }

    /// With a choice about a thread that is busy.
    pub fn on_busy(mut self, on_busy: OnBusy) -> Self {
        self.options.on_busy = Some(on_busy);
        self
    }

    /// With a choice about an interrupted run on the thread.
    pub fn on_interrupt(mut self, on_interrupt: OnInterrupt) -> Self {
        self.options.on_interrupt = Some(on_interrupt);
        self
    }

    /// With a choice about calls that wait on the thread.
    pub fn on_open_calls(mut self, on_open_calls: OnOpenCalls) -> Self {
        self.options.on_open_calls = Some(on_open_calls);
        self
    }

    /// With an idempotency key: the same key and input again get the outcome of this run, and the key
    /// with another input is refused. It has no effect on a run that is resumed, which has no input.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.options.key = self.command.input().map(|input| Idempotency {
            key: key.into(),
            request: input.digest(),
        });
        self
    }

    /// Read the final answer as a value of a type.
    pub fn typed<T>(self) -> TypedRun<T, O>
    where
        T: serde::de::DeserializeOwned + schemars::JsonSchema,
    {
        TypedRun::new(self)
    }

    pub(super) fn settings_mut(&mut self) -> &mut Settings {
        let agent = &self.context.agent;
        self.options
            .settings
            .get_or_insert_with(|| agent.settings.clone())
    }
}

impl<O: Answering> Run<O> {
    /// Approve a pending call, so that it runs.
    ///
    /// ```
    /// use throughline::{Agent, Demo, Thread, tool};
    ///
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Berth { port: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let book = tool("book_berth", "Books a berth.", |berth: Berth| async move {
    ///     format!("booked in {}", berth.port)
    /// });
    /// let agent = Agent::builder(Demo::new()).tool(book.needs_approval()).build()?;
    /// let thread = Thread::new();
    /// let parked = agent.run_on(&thread, "use book_berth with port=Hull").await?;
    /// let outcome = agent.resume(&thread).approve(&parked.pending[0]).await?;
    /// assert!(outcome.text().contains("booked in Hull"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn approve(self, pending: &Pending) -> Self {
        self.answered(pending, Reply::Approve)
    }

    /// Reject a pending call. The model reads the reason.
    pub fn reject(self, pending: &Pending, reason: Option<&str>) -> Self {
        self.answered(pending, Reply::Reject(reason.map(str::to_owned)))
    }

    /// Close a pending call that got no answer in time.
    pub fn expire(self, pending: &Pending) -> Self {
        self.answered(pending, Reply::Expire)
    }

    /// Hand in the result of a pending call that was run outside.
    pub fn answer(self, pending: &Pending, output: impl Into<Output>) -> Self {
        let reply = Reply::Result(throughline_model::Outcome::Ok, output.into());
        self.answered(pending, reply)
    }

    /// Hand in that a pending call which was run outside failed.
    pub fn answer_error(self, pending: &Pending, text: impl Into<String>) -> Self {
        let output = Output::Text(text.into());
        self.answered(
            pending,
            Reply::Result(throughline_model::Outcome::Error, output),
        )
    }

    fn answered(mut self, pending: &Pending, reply: Reply) -> Self {
        let answered = Answered {
            at: pending.at,
            call: pending.call.clone(),
            reply,
        };
        match &mut self.command {
            Command::Reply(_, answers)
            | Command::TakeOver(_, answers)
            | Command::Resume(answers) => answers.push(answered),
            // Runs of these kinds have no such method.
            Command::Start(_) | Command::Cancel => {}
        }
        self
    }
}

impl<O: Order> Run<O> {
    fn new(agent: &Arc<AgentSetup>, thread: &Thread, command: Command) -> Self {
        Self {
            context: RunContext::new(agent, thread),
            options: RunOptions::default(),
            command,
            in_place: false,
            order: PhantomData,
        }
    }

    /// Cancelled by a token of the caller's.
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.context.cancel = token;
        self
    }

    /// Begin, and read the events without storing them, for hosts that answer in one piece. Readers that
    /// attach later get the events of a run without a reader.
    pub fn unstored(mut self) -> RunStream {
        self.context.stores_events = false;
        self.stream()
    }

    /// Work on the run in the task that polls it, without a task of its own, for hosts whose task is not
    /// dropped before the end. If it is dropped all the same, the run is left like that of a process
    /// that died, and is resumed like one.
    ///
    /// ```
    /// use futures_util::StreamExt;
    /// use throughline::{Agent, Demo};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(Demo::new()).build()?;
    /// let work = tokio::spawn(async move {
    ///     let mut stream = agent.run("hello").in_place().stream();
    ///     while stream.next().await.is_some() {}
    ///     stream.outcome().await
    /// });
    /// assert!(!work.await??.text().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_place(mut self) -> Self {
        self.in_place = true;
        self
    }

    fn start(self, events: Option<mpsc::UnboundedSender<EventBatch>>) -> Running {
        let mut context = self.context;
        let cancelled = context.cancel;
        let dropped = cancelled.child_token();
        let guard = dropped.clone().drop_guard();
        context.cancel = dropped.child_token();
        context.caller = Caller { dropped, cancelled };
        context.events = events;
        let tasks = context.agent.tasks.clone();
        let work = driver::drive(context, self.options, self.command);
        Running {
            work: match self.in_place {
                true => Work::InPlace(work),
                false => Work::Task(tasks.spawn(work)),
            },
            _guard: guard,
        }
    }

    /// Begin, and read the events.
    pub fn stream(self) -> RunStream {
        // Unbounded, because a reader that stops must not stop the run. The channel holds at most the
        // events of the run.
        let (sender, receiver) = mpsc::unbounded_channel();
        RunStream {
            running: self.start(Some(sender)),
            receiver,
            ready: Vec::new().into_iter(),
            last: None,
        }
    }
}

impl<O: Order> IntoFuture for Run<O> {
    type Output = Result<Outcome, RunFailed>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.start(None).finish().await })
    }
}

/// A run that has begun. Dropping it cancels the run, whose task then leaves the thread in order.
struct Running {
    work: Work,
    _guard: DropGuard,
}

type StreamEnd = Result<Outcome, RunFailed>;

/// Where a run is worked on.
enum Work {
    /// In a task of its own.
    Task(JoinHandle<StreamEnd>),
    /// In the task that polls it.
    InPlace(Pin<Box<dyn Future<Output = StreamEnd> + Send>>),
    /// It has ended in place.
    Over(Box<StreamEnd>),
}

impl Running {
    async fn finish(self) -> StreamEnd {
        match self.work {
            Work::Task(task) => match task.await {
                Ok(result) => result,
                Err(error) => match error.try_into_panic() {
                    Ok(payload) => panic::resume_unwind(payload),
                    // The runtime is shutting down, and the task that waits here with it.
                    Err(_) => std::future::pending().await,
                },
            },
            Work::InPlace(work) => work.await,
            Work::Over(ended) => *ended,
        }
    }

    /// Work on the run, if it is worked on in place.
    fn poll(&mut self, cx: &mut Context<'_>) {
        if let Work::InPlace(work) = &mut self.work
            && let Poll::Ready(ended) = work.as_mut().poll(cx)
        {
            self.work = Work::Over(Box::new(ended));
        }
    }
}

/// The events of a run, and behind them its outcome. Dropping it cancels the run.
///
/// ```
/// use futures_util::StreamExt;
/// use throughline::{Agent, Demo};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder(Demo::new()).build()?;
/// let mut stream = agent.run("hello").stream();
/// let mut text = String::new();
/// while let Some(event) = stream.next().await {
///     text.push_str(event.text().unwrap_or_default());
/// }
/// assert_eq!(stream.outcome().await?.text(), text);
/// # Ok(())
/// # }
/// ```
pub struct RunStream {
    running: Running,
    receiver: mpsc::UnboundedReceiver<EventBatch>,
    /// The rest of the last batch.
    ready: std::vec::IntoIter<NumberedEvent>,
    last: Option<EventNo>,
}

impl RunStream {
    /// The number of the last event that was read, from which [`Threads::attach`](crate::Threads::attach)
    /// continues. Events are numbered from 0.
    pub fn last_no(&self) -> Option<EventNo> {
        self.last
    }

    /// Work on the run in place until it has a batch.
    fn poll_in_place(&mut self, cx: &mut Context<'_>) -> Poll<Option<EventBatch>> {
        if let Ok(batch) = self.receiver.try_recv() {
            return Poll::Ready(Some(batch));
        }
        self.running.poll(cx);
        match self.receiver.try_recv() {
            Ok(batch) => Poll::Ready(Some(batch)),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
        }
    }

    /// Wait for the end of the run. Events that were not read are dropped.
    pub async fn outcome(self) -> Result<Outcome, RunFailed> {
        self.running.finish().await
    }
}

impl Stream for RunStream {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        loop {
            if let Some((no, event)) = self.ready.next() {
                self.last = no.or(self.last);
                return Poll::Ready(Some(event));
            }
            let next = match &self.running.work {
                // Only the work itself sends events, so that no waker is needed.
                Work::InPlace(_) | Work::Over(_) => self.poll_in_place(cx),
                Work::Task(_) => self.receiver.poll_recv(cx),
            };
            match next {
                Poll::Ready(Some(batch)) => self.ready = batch.events.into_iter(),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
