//! The measured work: runs of an agent over the real client of a vendor, and their baselines.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use throughline::tool::Effect;
use throughline::{
    Agent, Anthropic, ChatClient, Foundry, Gemini, OpenAi, StopReason, Thread, tool,
};
use throughline_testkit::bench::black_box;
use throughline_wire::Wire;
use tokio::runtime::Runtime;

use super::sample;
use super::service::Service;

/// The kinds of work, as on the command line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Runs; the model first makes this many calls in one round, if any.
    Run { calls: usize, how: How },
    /// `serde_json` parses the answer of such a run's first model call.
    Parse { calls: usize },
    /// Copies bytes into a string.
    Copy { bytes: usize },
}

/// How answers arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Whole,
    Streamed,
}

impl Work {
    pub(super) fn words(self) -> [String; 2] {
        let (word, number) = match self {
            Self::Run {
                calls,
                how: How::Whole,
            } => ("run", calls),
            Self::Run {
                calls,
                how: How::Streamed,
            } => ("stream", calls),
            Self::Parse { calls } => ("parse", calls),
            Self::Copy { bytes } => ("copy", bytes),
        };
        [word.to_owned(), number.to_string()]
    }

    pub(super) fn named(word: &str, number: &str) -> Option<Self> {
        let number = number.parse().ok()?;
        Some(match word {
            "run" => Self::Run {
                calls: number,
                how: How::Whole,
            },
            "stream" => Self::Run {
                calls: number,
                how: How::Streamed,
            },
            "parse" => Self::Parse { calls: number },
            "copy" => Self::Copy { bytes: number },
            _ => return None,
        })
    }

    /// Repeats the work where callgrind counts it.
    pub(super) fn times(self, wire: &Wire, messages: usize, times: usize) -> ExitCode {
        match self {
            Self::Run { calls, how } => {
                let Some(mut runs) = Runs::new(wire, calls, how, messages, times) else {
                    return ExitCode::FAILURE;
                };
                counted_by_callgrind(&mut runs);
                let sent = runs.service.sent();
                let written = writeln!(io::stdout(), "{sent}");
                ExitCode::from(u8::from(runs.failed || written.is_err()))
            }
            Self::Parse { calls } => {
                let body = sample::answer(wire, calls);
                counted_by_callgrind(&mut Parses { body, times });
                ExitCode::SUCCESS
            }
            Self::Copy { bytes } => {
                let text = "x".repeat(bytes);
                counted_by_callgrind(&mut Copies { text, times });
                ExitCode::SUCCESS
            }
        }
    }
}

/// Only instructions in here are counted.
#[inline(never)]
fn counted_by_callgrind(work: &mut dyn Counted) {
    work.go();
}

trait Counted {
    fn go(&mut self);
}

struct Parses {
    body: String,
    times: usize,
}

impl Counted for Parses {
    fn go(&mut self) {
        for _ in 0..self.times {
            black_box(serde_json::from_str::<serde_json::Value>(black_box(&self.body)).is_ok());
        }
    }
}

struct Copies {
    text: String,
    times: usize,
}

impl Counted for Copies {
    fn go(&mut self) {
        for _ in 0..self.times {
            // After the start of a body, as in a request: the cost of a copy depends on how far
            // apart the two places are within a page.
            let mut copy = String::with_capacity(self.text.len() + 64);
            copy.push_str(black_box(r#"{"model":"some-model","messages":"#));
            copy.push_str(black_box(&self.text));
            black_box(copy);
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct TideArgs {
    /// Name of the port.
    port: String,
    /// The day, as a date.
    day: String,
}

fn agent(client: Arc<dyn ChatClient>) -> Option<Agent> {
    let tide = |args: TideArgs| async move { format!("{} on {}: 04:12", args.port, args.day) };
    Agent::builder(client)
        .instructions("You know the harbour. Answer briefly, and say where you know it from.")
        .tool(tool("get_tide", "When is high water?", tide).effect(Effect::ReadOnly))
        .tool(tool("get_wind", "How does the wind blow?", || async {
            "south"
        }))
        .tool(tool("list_ports", "Which ports are there?", || async {
            "none"
        }))
        .build()
        .ok()
}

fn client(wire: &Wire, service: &Arc<Service>) -> Option<Arc<dyn ChatClient>> {
    let builder = match wire {
        Wire::OpenAiResponses => OpenAi::responses("some-model"),
        Wire::OpenAiChat => OpenAi::chat("some-model"),
        Wire::Anthropic => Anthropic::new("some-model"),
        Wire::Gemini => Gemini::new("some-model"),
        Wire::Foundry => Foundry::new("https://r.services.ai.azure.com/api/projects/p", "d"),
        Wire::GeminiInteractions | Wire::Other(_) => return None,
    };
    let service = Arc::clone(service);
    builder.api_key("key").transport(service).build().ok()
}

/// Runs on prepared threads, each on its own.
struct Runs {
    runtime: Runtime,
    agent: Agent,
    service: Arc<Service>,
    threads: Vec<Thread>,
    how: How,
    failed: bool,
}

impl Runs {
    fn new(wire: &Wire, calls: usize, how: How, messages: usize, times: usize) -> Option<Self> {
        let mut bodies = vec![sample::answer(wire, 0)];
        if calls > 0 {
            bodies.insert(0, sample::answer(wire, calls));
        }
        let service = match how {
            How::Whole => Service::whole(bodies),
            How::Streamed => {
                let streamed = bodies.iter().map(|body| sample::streamed(wire, body));
                Service::streamed(streamed.collect::<Option<_>>()?)
            }
        };
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let mut runs = Self {
            runtime: builder.enable_time().build().ok()?,
            agent: agent(client(wire, &service)?)?,
            service,
            threads: Vec::new(),
            how,
            failed: false,
        };
        // A turn of another agent, with ids of its own, brings each thread to its length and leaves
        // it rendered.
        let earlier = sample::answer(wire, 0).replace("68a1", "57f0");
        let earlier = agent(client(wire, &Service::whole(vec![earlier]))?)?;
        for _ in 0..times {
            let history = sample::history(wire, messages.saturating_sub(2));
            let thread = Thread::of(Thread::new().id().clone(), history);
            let run = earlier.run_on(&thread, "And before?");
            runs.runtime.block_on(async { run.await.ok() })?;
            runs.threads.push(thread);
        }
        // One-time work of the agent happens on another thread; and the allocator consolidates
        // freed memory here instead of at the next large allocation.
        runs.run(&Thread::new());
        runs.run(&Thread::new());
        Some(runs)
    }

    fn run(&mut self, thread: &Thread) {
        let run = self.agent.run_on(thread, "When is high water tomorrow?");
        let outcome = match self.how {
            How::Whole => self.runtime.block_on(async { run.await }),
            How::Streamed => self.runtime.block_on(async {
                let mut stream = run.stream();
                while let Some(event) = stream.next().await {
                    black_box(event);
                }
                stream.outcome().await
            }),
        };
        let done = outcome.is_ok_and(|outcome| outcome.stop == StopReason::Done);
        self.failed |= !done;
    }
}

impl Counted for Runs {
    fn go(&mut self) {
        for thread in std::mem::take(&mut self.threads) {
            self.run(&thread);
            // Dropping a thread is not part of a run.
            std::mem::forget(thread);
        }
    }
}
