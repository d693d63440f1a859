//! The reports of an agent, one per line.

use std::fmt;
use std::str::FromStr;

use throughline_store::{Effect, Mode, RunId};

/// A report of an agent. Unless its documentation says otherwise, the store has acknowledged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// The process has started.
    Ready,
    /// A run is about to be begun under a key.
    Trying {
        /// The key.
        key: String,
        /// The run.
        run: RunId,
    },
    /// The run began.
    Begun {
        /// The run.
        run: RunId,
        /// Its thread.
        thread: String,
        /// When it is published.
        mode: Mode,
    },
    /// A run was taken over.
    Claimed {
        /// The run.
        run: RunId,
    },
    /// The model is about to be called.
    Model {
        /// The run.
        run: RunId,
        /// For which step.
        step: u32,
    },
    /// The remote call of a step is recorded.
    RemoteCall {
        /// The run.
        run: RunId,
        /// For which step.
        step: u32,
    },
    /// A step is recorded.
    Step {
        /// The run.
        run: RunId,
        /// Which.
        step: u32,
    },
    /// A tool is about to be called.
    Tool {
        /// The run.
        run: RunId,
        /// The step.
        step: u32,
        /// The index of the call in its step.
        position: u32,
        /// The declared effect of the tool.
        effect: Effect,
        /// The idempotency key of the call.
        key: String,
    },
    /// A result is recorded.
    Result {
        /// The run.
        run: RunId,
        /// The step.
        step: u32,
        /// The index of the call in its step.
        position: u32,
    },
    /// Events are stored up to this number.
    Events {
        /// The run.
        run: RunId,
        /// The number after the last one.
        end: u64,
    },
    /// A run is parked.
    Parked {
        /// The run.
        run: RunId,
    },
    /// A run is published.
    Done {
        /// The run.
        run: RunId,
    },
    /// A run was closed after it was cancelled.
    Closed {
        /// The run.
        run: RunId,
    },
    /// A run ended without being published.
    Failed {
        /// The run.
        run: RunId,
    },
    /// A thread is about to be deleted.
    Deleting {
        /// The thread.
        thread: String,
    },
    /// The thread was deleted.
    Deleted {
        /// The thread.
        thread: String,
    },
    /// How many operations were done, refused as documented, and failed because of the storage.
    Count {
        /// Done.
        done: u64,
        /// Refused.
        refused: u64,
        /// Failed.
        failed: u64,
    },
    /// An error that no agent should get.
    Trouble {
        /// The error.
        what: String,
    },
}

impl fmt::Display for AgentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Trying { key, run } => write!(f, "trying {key} {run}"),
            Self::Begun { run, thread, mode } => {
                write!(f, "begun {run} {thread} {}", mode.as_str())
            }
            Self::Claimed { run } => write!(f, "claimed {run}"),
            Self::Model { run, step } => write!(f, "model {run} {step}"),
            Self::RemoteCall { run, step } => write!(f, "remote_call {run} {step}"),
            Self::Step { run, step } => write!(f, "step {run} {step}"),
            Self::Tool {
                run,
                step,
                position,
                effect,
                key,
            } => write!(f, "tool {run} {step} {position} {} {key}", effect.as_str()),
            Self::Result {
                run,
                step,
                position,
            } => write!(f, "result {run} {step} {position}"),
            Self::Events { run, end } => write!(f, "events {run} {end}"),
            Self::Parked { run } => write!(f, "parked {run}"),
            Self::Done { run } => write!(f, "done {run}"),
            Self::Closed { run } => write!(f, "closed {run}"),
            Self::Failed { run } => write!(f, "failed {run}"),
            Self::Deleting { thread } => write!(f, "deleting {thread}"),
            Self::Deleted { thread } => write!(f, "deleted {thread}"),
            Self::Count {
                done,
                refused,
                failed,
            } => write!(f, "count {done} {refused} {failed}"),
            Self::Trouble { what } => write!(f, "trouble {what}"),
        }
    }
}

impl FromStr for AgentEvent {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        read(line).ok_or_else(|| format!("not an event of an agent: {line}"))
    }
}

fn read(line: &str) -> Option<AgentEvent> {
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    let words: Vec<&str> = rest.split(' ').collect();
    let run = || words.first()?.parse::<RunId>().ok();
    let number = |at: usize| words.get(at)?.parse::<u32>().ok();
    let count = |at: usize| words.get(at)?.parse::<u64>().ok();
    let thread = || Some((*words.first()?).to_owned());
    Some(match kind {
        "ready" => AgentEvent::Ready,
        "trying" => AgentEvent::Trying {
            key: (*words.first()?).to_owned(),
            run: words.get(1)?.parse().ok()?,
        },
        "begun" => AgentEvent::Begun {
            run: run()?,
            thread: (*words.get(1)?).to_owned(),
            mode: match *words.get(2)? {
                "per_run" => Mode::PerRun,
                "per_call" => Mode::PerCall,
                _ => return None,
            },
        },
        "claimed" => AgentEvent::Claimed { run: run()? },
        "model" => AgentEvent::Model {
            run: run()?,
            step: number(1)?,
        },
        "remote_call" => AgentEvent::RemoteCall {
            run: run()?,
            step: number(1)?,
        },
        "step" => AgentEvent::Step {
            run: run()?,
            step: number(1)?,
        },
        "tool" => AgentEvent::Tool {
            run: run()?,
            step: number(1)?,
            position: number(2)?,
            effect: Effect::named(words.get(3)?)?,
            key: (*words.get(4)?).to_owned(),
        },
        "result" => AgentEvent::Result {
            run: run()?,
            step: number(1)?,
            position: number(2)?,
        },
        "events" => AgentEvent::Events {
            run: run()?,
            end: count(1)?,
        },
        "parked" => AgentEvent::Parked { run: run()? },
        "done" => AgentEvent::Done { run: run()? },
        "closed" => AgentEvent::Closed { run: run()? },
        "failed" => AgentEvent::Failed { run: run()? },
        "deleting" => AgentEvent::Deleting { thread: thread()? },
        "deleted" => AgentEvent::Deleted { thread: thread()? },
        "count" => AgentEvent::Count {
            done: count(0)?,
            refused: count(1)?,
            failed: count(2)?,
        },
        "trouble" => AgentEvent::Trouble {
            what: rest.to_owned(),
        },
        _ => return None,
    })
}
