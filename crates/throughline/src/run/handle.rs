//! A run that was ordered: awaited for its outcome, or read as a stream of events.

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
use super::driver::{self, EventBatch, Job, NumberedEvent, Starter};
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

/// What is said about a call that waits.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Approve,
    Reject(Option<String>),
    Expire,
    Result(throughline_model::Outcome, Output),
}

/// An answer to the call at a place.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) at: CallRef,
    /// Its id, for people to read.
    pub(crate) call: CallId,
    pub(crate) reply: Reply,
}

impl Answered {
    /// The call does not wait for this.
    pub(crate) fn not_pending(&self, pending: Vec<String>) -> RunError {
        RunError::NotPending {
            call: self.call.to_string(),
            pending,
        }
    }

    /// Whether a call in a state takes such an answer.
    pub(crate) fn fits(&self, state: CallState) -> bool {
        match (&self.reply, state) {
            (Reply::Expire, _) | (_, CallState::Taken) => true,
            (Reply::Approve | Reply::Reject(_), state) => state == CallState::Approval,
            (Reply::Result(..), state) => matches!(state, CallState::Client | CallState::Intent),
        }
    }
}

/// What the driver is to do.
pub(crate) enum Command {
    /// Start a run with input.
    Start(Input),
    /// Start a run at an open node, with answers to the calls for which it waits.
    Reply(Input, Vec<Answered>),
    /// Go on with the run of this id, which no worker has.
    TakeOver(Box<throughline_store::Run>, Vec<Answered>),
    /// Go on with the run that is parked, died or failed on the thread.
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

/// A run that was ordered. It begins when it is awaited or streamed; dropping it while it goes
/// on cancels it: what had finished is kept, what was open is closed, and the thread can go on.
///
/// Its parameter says what it is for and so which methods it has; see [`order`](crate::agent::order).
#[must_use = "a run begins when it is awaited or streamed"]
pub struct Run<O: Order = order::Start> {
    agent: Arc<AgentSetup>,
    job: Job,
    options: RunOptions,
    command: Command,
    in_place: bool,
    order: PhantomData<fn() -> O>,
}

impl Run<order::Start> {
    pub(crate) fn begin(agent: &Arc<AgentSetup>, thread: &Thread, input: Input) -> Self {
        Self::new(agent, thread, Command::Start(input.from_caller()))
    }
}

impl Run<order::Reply> {
    pub(crate) fn reply(agent: &Arc<AgentSetup>, thread: &Thread, input: Input) -> Self {
        let command = Command::Reply(input.from_caller(), Vec::new());
        Self::new(agent, thread, command)
    }
}

impl Run<order::Resume> {
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
    /// With options, which stay the caller's. A run that is gone on with keeps those that it began
    /// with.
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

    /// With a choice about a run that died on the thread.
    pub fn on_interrupt(mut self, on_interrupt: OnInterrupt) -> Self {
        self.options.on_interrupt = Some(on_interrupt);
        self
    }

    /// With a choice about calls that wait on the thread.
    pub fn on_open_calls(mut self, on_open_calls: OnOpenCalls) -> Self {
        self.options.on_open_calls = Some(on_open_calls);
        self
    }

    /// Once: the same key and input again give this run's answer, and another input is refused. A
    /// run that is resumed has no input and no key.
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
        let agent = &self.agent;
        self.options
            .settings
            .get_or_insert_with(|| agent.settings.clone())
    }
}

impl<O: Answering> Run<O> {
    /// Let a pending call run.
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

    /// Do not let a pending call run. The model reads the reason.
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
            // Orders of these kinds have no such method.
            Command::Start(_) | Command::Cancel => {}
        }
        self
    }
}

impl<O: Order> Run<O> {
    fn new(agent: &Arc<AgentSetup>, thread: &Thread, command: Command) -> Self {
        Self {
            agent: Arc::clone(agent),
            job: Job::on(thread),
            options: RunOptions::default(),
            command,
            in_place: false,
            order: PhantomData,
        }
    }

    /// Cancelled by a token of the caller's.
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.job.cancel = token;
        self
    }

    /// Begin, and read its events without having them stored: for hosts that answer whole. Whoever
    /// reads the run later hears of it as if it had had no reader.
    pub fn unstored(mut self) -> RunStream {
        self.job.stores = false;
        self.stream()
    }

    /// Have it worked on by whoever reads its events, without a task of its own: for hosts that read
    /// it in a task which nobody drops. Where that is dropped all the same, the run is left as by a
    /// process that died, and is gone on with like one.
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
        let mut job = self.job;
        let asked = job.cancel;
        let left = asked.child_token();
        let guard = left.clone().drop_guard();
        job.cancel = left.child_token();
        job.starter = Starter { left, asked };
        job.events = events;
        let agent = Arc::clone(&self.agent);
        let work = driver::drive(self.agent, job, self.options, self.command);
        Running {
            work: match self.in_place {
                true => Work::Here(work),
                false => Work::Elsewhere(agent.tasks.spawn(work)),
            },
            _guard: guard,
        }
    }

    /// Begin, and read events as they come.
    pub fn stream(self) -> RunStream {
        // The channel holds what a reader has not read: at most what the run says. A bound would
        // let a reader that stops hold up the run.
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

/// A run at work. Dropping it cancels the run, which then puts its thread in order by itself.
struct Running {
    work: Work,
    _guard: DropGuard,
}

type StreamEnd = Result<Outcome, RunFailed>;

/// Who works on a run.
enum Work {
    /// A task of its own.
    Elsewhere(JoinHandle<StreamEnd>),
    /// Whoever reads its events.
    Here(Pin<Box<dyn Future<Output = StreamEnd> + Send>>),
    /// Nobody any more.
    Over(Box<StreamEnd>),
}

impl Running {
    async fn finish(self) -> StreamEnd {
        match self.work {
            Work::Elsewhere(task) => match task.await {
                Ok(result) => result,
                Err(error) => match error.try_into_panic() {
                    Ok(payload) => panic::resume_unwind(payload),
                    // The runtime is being shut down, and whoever waits with it.
                    Err(_) => std::future::pending().await,
                },
            },
            Work::Here(work) => work.await,
            Work::Over(ended) => *ended,
        }
    }

    /// Work on the run, if that is done here.
    fn poll(&mut self, cx: &mut Context<'_>) {
        if let Work::Here(work) = &mut self.work
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
/// let mut heard = String::new();
/// while let Some(event) = stream.next().await {
///     heard.push_str(event.text().unwrap_or_default());
/// }
/// assert_eq!(stream.outcome().await?.text(), heard);
/// # Ok(())
/// # }
/// ```
pub struct RunStream {
    running: Running,
    receiver: mpsc::UnboundedReceiver<EventBatch>,
    /// Events that came together.
    ready: std::vec::IntoIter<NumberedEvent>,
    last: Option<EventNo>,
}

impl RunStream {
    /// The number of the last event that was read: [`Threads::attach`](crate::Threads::attach)
    /// goes on from there. Events rise by 1 from 0.
    pub fn last_no(&self) -> Option<EventNo> {
        self.last
    }

    /// What comes of working on the run here.
    fn heard_here(&mut self, cx: &mut Context<'_>) -> Poll<Option<EventBatch>> {
        if let Ok(heard) = self.receiver.try_recv() {
            return Poll::Ready(Some(heard));
        }
        self.running.poll(cx);
        match self.receiver.try_recv() {
            Ok(heard) => Poll::Ready(Some(heard)),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
        }
    }

    /// Wait for the end of the run; events that were not read are passed over.
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
                // Nobody else sends anything, so there is nobody to be woken by.
                Work::Here(_) | Work::Over(_) => self.heard_here(cx),
                Work::Elsewhere(_) => self.receiver.poll_recv(cx),
            };
            match next {
                Poll::Ready(Some(told)) => self.ready = told.heard.into_iter(),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
