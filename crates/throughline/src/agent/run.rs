//! A run that is asked for: awaited for its outcome, or read as a stream of events.

use std::future::IntoFuture;
use std::panic;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use throughline_model::{CallId, Output, Settings, ToolChoice};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::driver::{self, Job};
use super::event::RunEvent;
use super::inner::Inner;
use super::input::Input;
use super::limits::{Calling, Limits};
use super::options::RunOptions;
use super::outcome::{Outcome, RunFailed};
use super::{Agent, TypedRun};
use crate::history::Thread;
use crate::tool::Tool;

/// What is said about a call that waits.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Approve,
    Reject(Option<String>),
    Expire,
    Result(throughline_model::Outcome, Output),
}

/// What a run starts from.
pub(crate) enum Start {
    Input(Input),
    Unsettled(Vec<(CallId, Reply)>),
}

/// A run that was asked for. It begins when it is awaited or streamed; dropping it while it goes
/// on cancels it: what had finished is kept, what was open is closed, and the thread can go on.
#[must_use = "a run begins when it is awaited or streamed"]
pub struct Run {
    agent: Arc<Inner>,
    job: Job,
    options: RunOptions,
    start: Start,
}

impl Run {
    fn new(agent: &Agent, thread: &Thread, start: Start) -> Self {
        Self {
            agent: Arc::clone(agent.inner()),
            job: Job::on(thread),
            options: RunOptions::default(),
            start,
        }
    }

    pub(super) fn begin(agent: &Agent, thread: &Thread, input: Input) -> Self {
        Self::new(agent, thread, Start::Input(input))
    }

    pub(super) fn resume(agent: &Agent, thread: &Thread) -> Self {
        Self::new(agent, thread, Start::Unsettled(Vec::new()))
    }

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

    /// Cancelled by a token of the caller's.
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.job.cancel = token;
        self
    }

    /// Let a call run that waits for approval.
    pub fn approve(self, call: &CallId) -> Self {
        self.reply(call, Reply::Approve)
    }

    /// Do not let a call run that waits for approval. The model reads the reason.
    pub fn reject(self, call: &CallId, reason: Option<&str>) -> Self {
        self.reply(call, Reply::Reject(reason.map(str::to_owned)))
    }

    /// Close a call for which nobody answered in time.
    pub fn expire(self, call: &CallId) -> Self {
        self.reply(call, Reply::Expire)
    }

    /// Hand in the result of a call that was run outside.
    pub fn answer(self, call: &CallId, output: impl Into<Output>) -> Self {
        let reply = Reply::Result(throughline_model::Outcome::Ok, output.into());
        self.reply(call, reply)
    }

    /// Hand in that a call which was run outside failed.
    pub fn answer_error(self, call: &CallId, text: impl Into<String>) -> Self {
        let output = Output::Text(text.into());
        self.reply(
            call,
            Reply::Result(throughline_model::Outcome::Error, output),
        )
    }

    fn reply(mut self, call: &CallId, reply: Reply) -> Self {
        match &mut self.start {
            Start::Unsettled(replies) => replies.push((call.clone(), reply)),
            // An answer where nothing waits is refused when the run begins.
            Start::Input(_) => self.start = Start::Unsettled(vec![(call.clone(), reply)]),
        }
        self
    }

    /// Read the final answer as a value of a type.
    pub fn typed<T>(self) -> TypedRun<T>
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

    fn spawn(self, events: Option<mpsc::UnboundedSender<RunEvent>>) -> Running {
        let cancel = self.job.cancel.child_token();
        let mut job = self.job;
        job.cancel = cancel.clone();
        job.events = events;
        let agent = Arc::clone(&self.agent);
        let task = driver::drive(self.agent, job, self.options, self.start);
        Running {
            task: agent.tasks.spawn(task),
            _guard: cancel.drop_guard(),
        }
    }

    /// Begin, and read events as they come.
    pub fn stream(self) -> RunStream {
        // The channel holds what a reader has not read: at most what the run says. A bound would
        // let a reader that stops hold up the run.
        let (sender, receiver) = mpsc::unbounded_channel();
        RunStream {
            running: self.spawn(Some(sender)),
            receiver,
        }
    }
}

impl IntoFuture for Run {
    type Output = Result<Outcome, RunFailed>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.spawn(None).finish().await })
    }
}

/// A run at work. Dropping it cancels the run, which then puts its thread in order by itself.
struct Running {
    task: JoinHandle<Result<Outcome, RunFailed>>,
    _guard: DropGuard,
}

impl Running {
    async fn finish(&mut self) -> Result<Outcome, RunFailed> {
        match (&mut self.task).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(payload) => panic::resume_unwind(payload),
                // The runtime is being shut down, and whoever waits with it.
                Err(_) => std::future::pending().await,
            },
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
    receiver: mpsc::UnboundedReceiver<RunEvent>,
}

impl RunStream {
    /// Wait for the end of the run; events that were not read are passed over.
    pub async fn outcome(mut self) -> Result<Outcome, RunFailed> {
        self.running.finish().await
    }
}

impl Stream for RunStream {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        self.receiver.poll_recv(cx)
    }
}
