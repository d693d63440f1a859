//! A process whose runs wait for a thread, until it is killed or its input ends.
//!
//! `worker queue-worker URL CLOCK` opens the store with a manual clock, and reads commands, one per
//! line:
//!
//! - `say N THREAD KIND`: a run that waits its turn, under the id that is made of N. KIND says what
//!   the model does: `plain` answers, `fail` fails, `hold` answers on command.
//! - `resume N THREAD`: resumes the unsettled run of the thread, in its turn.
//! - `try N THREAD`: a run that does not wait, repeated until it has begun.
//! - `go N`: lets the model answer.
//! - `drop N`: drops the future of a run.
//! - `tick MS`: advances the clock, and renews the lease.
//!
//! It prints `asked N` when a model that holds is called, `done N STOP`, `failed N WHY`, `tried N
//! COUNT`, `dropped N`, `ticked`.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use throughline::agent::{Run, RunError, RunOptions};
use throughline::client::{Abilities, ChatRequest, ClientError, ErrorKind, EventStream};
use throughline::model::{Response, Role};
use throughline::store::{
    Error, Heartbeat, ManualClock, NewThread, Options, RunId, Store, ThreadId,
};
use throughline::thread::OnBusy;
use throughline::{Agent, ChatClient, Demo, Thread, Threads};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// How long a process counts as alive after a heartbeat.
const LEASE: Duration = Duration::from_secs(10);

/// One write per line, so that a kill cannot tear it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs of this process whose model waits for a command.
type Holds = Arc<Mutex<HashMap<u8, Arc<Semaphore>>>>;

/// A model that follows the last input.
struct Model {
    inner: Demo,
    holds: Holds,
}

impl Model {
    async fn decide(&self, request: &ChatRequest<'_>) -> Result<(), ClientError> {
        let messages = request.view.messages();
        let mut questions = messages.iter().rev();
        let asked = questions.find(|message| message.role == Role::User);
        let text = asked.map(|message| message.text()).unwrap_or_default();
        let (no, kind) = text.split_once(' ').unwrap_or_default();
        if kind == "fail" {
            let kind = ErrorKind::Unavailable;
            return Err(ClientError::new(kind, "scripted", "it was told to fail"));
        }
        // A model that was held in another process answers here.
        let held = no
            .parse()
            .ok()
            .and_then(|no: u8| lock(&self.holds).remove(&no));
        if let Some(held) = held {
            say(&format!("asked {no}"));
            if let Ok(answers) = held.acquire().await {
                answers.forget();
            }
        }
        Ok(())
    }
}

#[async_trait]
impl ChatClient for Model {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        self.decide(request).await?;
        self.inner.respond(request).await
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        self.decide(request).await?;
        self.inner.stream(request).await
    }
}

struct Worker {
    agent: Agent,
    threads: Threads,
    holds: Holds,
    /// The commands to models that hold.
    answers: Mutex<HashMap<u8, Arc<Semaphore>>>,
    tasks: Mutex<HashMap<u8, AbortHandle>>,
    clock: Arc<ManualClock>,
}

impl Worker {
    async fn thread(&self, name: &str) -> Result<Thread, String> {
        let id = ThreadId::new(name).map_err(|error| error.to_string())?;
        match self.threads.open(id.clone()).await {
            Ok(thread) => Ok(thread),
            Err(Error::NotFound { .. }) => Ok(self.threads.make(NewThread::new(id))),
            Err(error) => Err(error.to_string()),
        }
    }

    fn run(&self, no: u8, thread: &Thread, text: String, on_busy: OnBusy) -> Run {
        let options = RunOptions {
            run: Some(RunId::from_bytes([no; 16])),
            on_busy: Some(on_busy),
            ..RunOptions::default()
        };
        self.agent.run_on(thread, text).options(&options)
    }

    /// Executes a command about a run, and prints its result.
    async fn follow(&self, verb: &str, no: u8, thread: &str, kind: &str) -> Result<(), String> {
        let thread = self.thread(thread).await?;
        let ended = match verb {
            "say" => {
                let text = format!("{no} {kind}");
                self.run(no, &thread, text, OnBusy::Queue).await
            }
            "resume" => self.agent.resume(&thread).on_busy(OnBusy::Queue).await,
            "try" => return self.insist(no, &thread).await,
            _ => return Err(format!("no order: {verb}")),
        };
        match ended {
            Ok(outcome) => say(&format!("done {no} {}", outcome.stop)),
            Err(failed) => say(&format!("failed {no} {:?}", failed.source)),
        }
        Ok(())
    }

    /// Retries until no other run is in the way.
    async fn insist(&self, no: u8, thread: &Thread) -> Result<(), String> {
        let mut tries = 0;
        loop {
            let run = self.run(no, thread, format!("{no} plain"), OnBusy::Reject);
            match run.await {
                Ok(_) => break,
                Err(failed) => match failed.source {
                    RunError::Store(Error::Busy { .. }) => tries += 1,
                    // An unfinished run of another process is settled first, and may fail.
                    RunError::Client(_) => {}
                    other => return Err(format!("{other:?}")),
                },
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        say(&format!("tried {no} {tries}"));
        Ok(())
    }

    fn obey(self: &Arc<Self>, line: &str, runtime: &tokio::runtime::Runtime) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        let word = |place: usize| words.get(place).copied().unwrap_or_default();
        if word(0) == "tick" {
            let millis = word(1).parse().map_err(|_| format!("no time: {line}"))?;
            self.clock.advance(Duration::from_millis(millis));
            let renewed = runtime.block_on(self.threads.store().renew());
            renewed.map_err(|error| error.to_string())?;
            say("ticked");
            return Ok(());
        }
        let no: u8 = word(1).parse().map_err(|_| format!("no number: {line}"))?;
        match word(0) {
            "go" => {
                if let Some(answers) = lock(&self.answers).get(&no) {
                    answers.add_permits(1);
                }
            }
            "drop" => {
                if let Some(task) = lock(&self.tasks).remove(&no) {
                    task.abort();
                }
                say(&format!("dropped {no}"));
            }
            verb => {
                if word(3) == "hold" {
                    let answers = Arc::new(Semaphore::new(0));
                    lock(&self.holds).insert(no, Arc::clone(&answers));
                    lock(&self.answers).insert(no, answers);
                }
                let (verb, thread, kind) =
                    (verb.to_owned(), word(2).to_owned(), word(3).to_owned());
                let worker = Arc::clone(self);
                let work = async move {
                    if let Err(why) = worker.follow(&verb, no, &thread, &kind).await {
                        say(&format!("trouble {no} {why}"));
                    }
                };
                let task = runtime.handle().spawn(work);
                lock(&self.tasks).insert(no, task.abort_handle());
            }
        }
        Ok(())
    }
}

pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            say(&format!("trouble {what}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments = crate::arguments();
    let usage = "usage: worker queue-worker URL CLOCK";
    let url = arguments.next().ok_or(usage)?;
    let now = arguments.next().ok_or(usage)?;
    let now = now.parse().map_err(|_| usage)?;
    let clock = Arc::new(ManualClock::at(now));
    let options = Options {
        clock: Arc::<ManualClock>::clone(&clock),
        heartbeat: Heartbeat::Manual,
        lease: LEASE,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let store = runtime.block_on(Store::open_with(&url, options));
    let store = store.map_err(|error| error.to_string())?;
    let holds = Holds::default();
    let model = Model {
        inner: Demo::new(),
        holds: Arc::clone(&holds),
    };
    let threads = Threads::of(&store);
    let agent = Agent::builder(model).threads(&threads).build();
    let worker = Arc::new(Worker {
        agent: agent.map_err(|error| error.to_string())?,
        threads,
        holds,
        answers: Mutex::default(),
        tasks: Mutex::default(),
        clock,
    });
    runtime
        .block_on(store.renew())
        .map_err(|error| error.to_string())?;
    say("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        worker.obey(&line, &runtime)?;
    }
    runtime.block_on(async {
        worker.agent.settled().await;
        store.close().await.map_err(|error| error.to_string())
    })
}
