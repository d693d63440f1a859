mod failed;

use throughline_compact::{BudgetUnreachable, Report};
use throughline_model::{Body, CallId, Message, Outcome as Ending, Role, Stop, Usage};
use throughline_store::{ApprovalId, NodeId, RunId, ThreadId};
use throughline_wire::Loss;

use super::limits::BadLimit;
use super::setup::BuildError;
use super::usage::RunUsage;
use crate::client::ClientError;
use crate::run::ProviderError;
use crate::telemetry::{RunReport, Tokens};
use crate::thread::MessageStoreError;
use crate::thread::Pending;
use crate::thread::StopReason;
use crate::tool::SetError;

pub(super) use failed::Left;
pub use failed::{Remedy, RunFailed};

/// What a run leaves: its whole transcript, and why it stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The run.
    pub run: RunId,
    /// The thread.
    pub thread: ThreadId,
    /// Why it stopped.
    pub stop: StopReason,
    /// The messages of this run, its input included, oldest first.
    pub messages: Vec<Message>,
    /// Tokens of all its model calls.
    pub usage: RunUsage,
    /// Calls that wait for an approval or for a result from outside.
    pub pending: Vec<Pending>,
    /// Why the model stopped in its last answer.
    pub finish: Option<Stop>,
    /// What compaction did before the last model call, and why; `None` while the conversation was too
    /// short for it, and with [`Compaction::Off`](crate::agent::Compaction::Off).
    pub compaction: Option<Report>,
    /// What the services did not take in the model calls of this run, each once: settings that they do
    /// not have, contents that they do not accept.
    pub losses: Vec<Loss>,
    /// Model calls and tool calls in the order in which they ended.
    pub steps: Vec<Step>,
    /// What was received of an answer that was cut off, if it is no part of the history because that
    /// is to equal what a service stores ([`Parity::Service`](crate::thread::Parity::Service)).
    pub cut_off: Vec<Message>,
}

/// A model call or a tool call of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A model call was answered.
    Model {
        /// Which model call, from 0.
        step: u32,
        /// The vendor's id of the response.
        response: Option<String>,
        /// The model that answered.
        model: Option<String>,
        /// Why it stopped.
        finish: Stop,
        /// What the vendor reported.
        usage: Option<Usage>,
        /// What the service did not take, and why.
        losses: Vec<Loss>,
    },
    /// A tool call ended.
    Tool {
        /// Which model call asked for it.
        step: u32,
        /// Its position among the calls of its response.
        position: u32,
        /// Its id.
        call: CallId,
        /// The tool.
        tool: String,
        /// How it ended.
        outcome: Ending,
        /// The whole error, whatever the model was shown of it.
        error: Option<String>,
    },
}

impl Outcome {
    /// The answer: the text of the last message, if that is the model's. Empty if the run ended
    /// without one.
    pub fn text(&self) -> String {
        self.answer().map(Message::text).unwrap_or_default()
    }

    /// Whether the run ended by itself, as opposed to cancelled, failed or parked. A cancel that comes
    /// after the commit changes nothing and returns the committed outcome, for which this is `true`.
    ///
    /// ```
    /// use throughline::{Agent, Demo, StopReason, Thread};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(Demo::new()).build()?;
    /// let thread = Thread::new();
    /// let answer = agent.run_on(&thread, "hello").await?;
    /// let late = agent.cancel(&thread).await?;
    /// assert!(late.had_finished());
    /// assert_eq!((late.run, late.stop), (answer.run, StopReason::Done));
    /// # Ok(())
    /// # }
    /// ```
    pub fn had_finished(&self) -> bool {
        match self.stop {
            StopReason::Done
            | StopReason::RoundLimit
            | StopReason::ErrorLimit
            | StopReason::Budget
            | StopReason::Terminated => true,
            StopReason::Parked | StopReason::Cancelled | StopReason::Failed => false,
        }
    }

    /// The refusal of the model, if it refused to answer.
    pub fn refusal(&self) -> Option<String> {
        let texts: Vec<&str> = self
            .answer()?
            .contents
            .iter()
            .filter_map(|content| match &content.body {
                Body::Refusal(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        (!texts.is_empty()).then(|| texts.concat())
    }

    /// The model's last message, unless something other than the results of calls that a limit
    /// refused came after it.
    pub(crate) fn answer(&self) -> Option<&Message> {
        self.messages
            .iter()
            .rev()
            .find(|message| message.role != Role::Tool || !only_refused(message))
            .filter(|message| message.role == Role::Assistant)
    }
}

/// Whether all results say that a limit was reached.
fn only_refused(message: &Message) -> bool {
    message
        .contents
        .iter()
        .filter_map(|content| content.as_tool_result())
        .all(|result| result.outcome == Ending::Limit)
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The model could not be called.
    #[error("the model call failed")]
    Client(#[source] ClientError),
    /// The tools of the run do not fit together.
    #[error("the tools of this run cannot be used together")]
    Tools(#[source] SetError),
    /// The context providers of the run do not fit together.
    #[error("the context providers of this run cannot be used together")]
    Providers(#[source] BuildError),
    /// A limit of the run allows nothing.
    #[error("a limit of this run cannot be used")]
    Limits(#[source] BadLimit),
    /// The store refused or failed. What the journal has stays, and a run that could not be ended can
    /// be resumed.
    #[error("the store did not take it")]
    Store(#[from] throughline_store::Error),
    /// The journal cannot be read.
    #[error("the journal cannot be read: {why}")]
    Journal {
        /// Why.
        why: String,
    },
    /// A run on the thread was interrupted, and this one may not settle it.
    #[error("{run} on this thread was interrupted; resume it first")]
    Interrupted {
        /// The run.
        run: RunId,
    },
    /// Calls wait, and this run may not withdraw them.
    #[error("{run} waits for {}; answer these calls first", pending.join(", "))]
    OpenCalls {
        /// The run.
        run: RunId,
        /// The calls that wait.
        pending: Vec<String>,
        /// The approvals that those of them wait for which need one.
        approvals: Vec<ApprovalId>,
    },
    /// The input came with answers, and a parked run waits for answers alone.
    #[error(
        "{run} on this thread is parked; answer its calls with resume, and say the rest in a run after it"
    )]
    Parked {
        /// The run.
        run: RunId,
    },
    /// The idempotency key has a run already, and the caller asked to be told at once.
    #[error("this was asked before; {run} answers it")]
    Repeated {
        /// The run of the key.
        run: RunId,
    },
    /// The part of the conversation that the model must be shown exceeds the token budget.
    #[error("the conversation does not fit into what the model may be shown")]
    Budget(#[source] BudgetUnreachable),
    /// The run was cancelled before it began.
    #[error("the run was cancelled before it began")]
    Cancelled,
    /// The input answers an approval request that the record does not have.
    #[error(
        "the input answers {request}, which is no question of the record; answer approvals with resume"
    )]
    Unasked {
        /// The id of the request.
        request: String,
    },
    /// A call has a different answer, which came first.
    #[error("call {call} has another answer, which stands")]
    AlreadyAnswered {
        /// The call.
        call: String,
    },
    /// The service keeps the conversation although its history is local.
    #[error(
        "{upstream} keeps this conversation itself, and its history is local; make the thread the service's, or choose another on_service_id"
    )]
    ServiceKeepsHistory {
        /// The upstream.
        upstream: String,
    },
    /// The head of the thread is not what the options expect.
    #[error("the head of the thread is {}, and the options expect another; read the thread and decide anew", head.map_or_else(|| "empty".to_owned(), |head| head.to_string()))]
    HeadMoved {
        /// The head now.
        head: Option<NodeId>,
    },
    /// The history is a service's, and no id came back.
    #[error("{upstream} keeps this conversation and gave no id for it")]
    NoServiceId {
        /// The upstream.
        upstream: String,
    },
    /// The options name another service id than the thread has.
    #[error("the options name {named:?}, the thread has {}", known.as_deref().unwrap_or("no service id"))]
    OtherServiceId {
        /// The one in the options.
        named: String,
        /// The one of the thread.
        known: Option<String>,
    },
    /// The history is with other upstreams.
    #[error(
        "the history of this thread is kept by {owner}; add {upstream} with add_service, hand the thread over with hand_over, or set on_other_upstream to hand_over"
    )]
    KeptElsewhere {
        /// The upstreams that keep it.
        owner: String,
        /// The upstream that was to be called.
        upstream: String,
    },
    /// The thread's history is in a message store that the agent does not know.
    #[error(
        "the history of this thread is in the message store {name:?}; the agent knows {known:?}"
    )]
    UnknownMessageStore {
        /// The store.
        name: String,
        /// Those that the agent knows.
        known: Vec<String>,
    },
    /// A message store of the application failed. The run is parked and can be resumed.
    #[error("the message store failed")]
    MessageStore {
        /// Why.
        #[source]
        source: MessageStoreError,
    },
    /// A context provider failed.
    #[error("the context provider {name} failed")]
    Provider {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: ProviderError,
    },
    /// The thread has no run to resume.
    #[error("no run on thread {thread} is parked or failed; start one with run_on")]
    NothingToResume {
        /// The thread.
        thread: ThreadId,
    },
    /// A reply names a call that does not wait for it.
    #[error("call {call} does not wait for this; pending: {}", pending.join(", "))]
    NotPending {
        /// The call.
        call: String,
        /// The calls that wait.
        pending: Vec<String>,
    },
}

/// The report of an ended run for telemetry.
pub(crate) fn report(result: &Result<Outcome, RunFailed>) -> RunReport<'_> {
    let (outcome, error) = match result {
        Ok(outcome) => (outcome, None),
        Err(failed) => (failed.outcome(), Some(&failed.source)),
    };
    let usage = &outcome.usage;
    RunReport {
        run: outcome.run,
        stop: outcome.stop.as_str(),
        tokens: Tokens {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            reasoning: usage.reasoning,
        },
        error: error.map(|error| (error.label(), error as &(dyn std::error::Error + 'static))),
        messages: &outcome.messages,
        answer: outcome.answer(),
        finish: outcome.finish.as_ref(),
    }
}
