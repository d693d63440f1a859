//! The commands of the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use throughline::agent::{Limits, Run};
use throughline::model::json::RawJson;
use throughline::model::{Message, Settings as ModelSettings, Wire};
use throughline::store::{
    Approval, ApprovalFilter, Authority, Clock, Decision, Error, NewThread, Store, Tenant, ThreadId,
};
use throughline::thread::{
    Awaits, HistoryPolicy, OnInterrupt, Owner, Parity, Pending, Persistence, Services,
};
use throughline::{Agent, RunEvent, StopReason, Thread, Threads};
use throughline_testkit::loopkill::{
    BUDGET, Code, Keeping, KeptBy, Kind, SERVICES, TOOLS, ask, ask_service, fold,
};

use super::remote_store::RemoteStore;
use super::remote_tool::RemoteTool;
use super::{WorkerSettings, say};

/// The state that commands use.
pub(crate) struct Orders {
    threads: Threads,
    clock: Arc<dyn Clock>,
    settings: WorkerSettings,
    agents: Mutex<HashMap<AgentKind, Agent>>,
    open: Mutex<HashMap<String, Thread>>,
}

/// What distinguishes the agents of a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct AgentKind {
    /// A wire, or a storing service.
    upstream: String,
    streamed: bool,
    parity: bool,
}

/// The name of the application's store of messages.
const SHELF: &str = "shelf";

/// A command, split into words.
struct Order<'l> {
    no: &'l str,
    thread: &'l str,
    words: Vec<&'l str>,
}

impl<'l> Order<'l> {
    /// The agent for its thread.
    fn agent(&self, upstream: &str, streamed: bool) -> AgentKind {
        AgentKind {
            upstream: upstream.to_owned(),
            streamed,
            parity: Keeping::of(self.thread).parity,
        }
    }

    fn word(&self, place: usize) -> Result<&'l str, String> {
        let found = self.words.get(place).copied();
        found.ok_or_else(|| format!("a word is missing at {place}"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Orders {
    pub(crate) fn new(store: &Store, clock: Arc<dyn Clock>, settings: WorkerSettings) -> Self {
        Self {
            threads: Threads::of(store),
            clock,
            settings,
            agents: Mutex::default(),
            open: Mutex::default(),
        }
    }

    /// Waits until every run has released its thread.
    pub(crate) async fn settled(&self) {
        let agents: Vec<Agent> = lock(&self.agents).values().cloned().collect();
        for agent in agents {
            agent.settled().await;
        }
    }

    fn agent(&self, kind: AgentKind) -> Result<Agent, String> {
        let mut agents = lock(&self.agents);
        if let Some(agent) = agents.get(&kind) {
            return Ok(agent.clone());
        }
        let said = |error: &dyn std::error::Error| error.to_string();
        let name = kind.upstream.as_str();
        let url = self.settings.text(name)?;
        let client = match SERVICES.contains(&name) {
            true => ask_service(name, url),
            false => ask(&Wire::named(name), url),
        };
        let mut builder = Agent::builder(client.map_err(|e| said(&e))?)
            .threads(&self.threads)
            .clock(Arc::clone(&self.clock))
            .instructions("You are the harbour master.")
            .history(HistoryPolicy {
                parity: match kind.parity {
                    true => Parity::Service,
                    false => Parity::None,
                },
                ..HistoryPolicy::default()
            })
            .settings(ModelSettings {
                max_output_tokens: Some(4096),
                ..ModelSettings::default()
            });
        if !SERVICES.contains(&name) {
            // A service is to have the conversation as it was.
            builder = builder.compaction(fold::policy());
        }
        if let Ok(address) = self.settings.text("messages") {
            let dies = self.settings.text("dies").ok();
            builder = builder.message_store(SHELF, RemoteStore::new(address, dies)?);
        }
        for kind in TOOLS {
            let hand = RemoteTool::new(kind, self.settings.text("tools")?).map_err(|e| said(&e))?;
            builder = builder.tool(hand);
        }
        if !kind.streamed {
            builder = builder.whole_answers();
        }
        let agent = builder.build().map_err(|e| said(&e))?;
        agents.insert(kind, agent.clone());
        Ok(agent)
    }

    /// Executes a command, and prints its result.
    pub(crate) async fn follow(&self, line: &str) {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap_or_default();
        let (no, verb, thread) = (next(), next(), next());
        let order = Order {
            no,
            thread,
            words: words.collect(),
        };
        if let Err(why) = self.carry_out(verb, &order).await {
            say(&format!("failed {no} {}", why.replace('\n', " ")));
        }
    }

    async fn thread(&self, name: &str) -> Result<Thread, String> {
        if let Some(thread) = lock(&self.open).remove(name) {
            return Ok(thread);
        }
        let id = ThreadId::new(name).map_err(|error| error.to_string())?;
        match self.threads.open(id.clone()).await {
            Ok(thread) => Ok(thread),
            Err(Error::NotFound { .. }) => {
                let thread = self.threads.make(NewThread::new(id));
                if let Some(owner) = owner_of(name)? {
                    let set = thread.set_owner(owner).await;
                    set.map_err(|error| words_of(&error))?;
                }
                Ok(thread)
            }
            Err(error) => Err(words_of(&error)),
        }
    }

    async fn carry_out(&self, verb: &str, order: &Order<'_>) -> Result<(), String> {
        let thread = self.thread(order.thread).await?;
        let done = match verb {
            "turn" => self.turn(&thread, order).await,
            "resume" => self.resume(&thread, order).await,
            "reply" => self.reply(&thread, order).await,
            "cancel" => {
                let agent = self.agent(order.agent(order.word(0)?, true))?;
                self.hear(agent.cancel(&thread), order, Hearing::WHOLE)
                    .await
            }
            "decide" => self.decide(order).await,
            "own" => self.own(&thread, order).await,
            "leave" => {
                let note = format!("[[note {}]] Left on the table.", order.word(0)?);
                let mailbox = thread.mailbox();
                match mailbox.leave(Message::user(note)).await {
                    Ok(()) => {
                        say(&format!("ok {}", order.no));
                        Ok(())
                    }
                    Err(error) => Err(words_of(&error)),
                }
            }
            other => Err(format!("there is no order {other}")),
        };
        lock(&self.open).insert(order.thread.to_owned(), thread);
        done
    }

    /// `turn THREAD CODE WIRE per_run|per_call whole|events whole|streamed resume|close`
    async fn turn(&self, thread: &Thread, order: &Order<'_>) -> Result<(), String> {
        let code: Code = order.word(0)?.parse()?;
        let streamed = order.word(4)? == "streamed";
        let agent = self.agent(order.agent(order.word(1)?, streamed))?;
        let persistence = match order.word(2)? {
            "per_call" => Persistence::PerCall,
            _ => Persistence::PerRun,
        };
        let on_interrupt = match order.word(5)? {
            "close" => OnInterrupt::Close,
            _ => OnInterrupt::Resume,
        };
        let mut run = agent
            .run_on(thread, code.text())
            .persistence(persistence)
            .on_interrupt(on_interrupt);
        if code.kind == Kind::Budget {
            run = run.limits(Limits {
                rounds: BUDGET,
                ..Limits::default()
            });
        }
        let how = Hearing::of(order.thread, order.word(3)?, streamed);
        self.hear(run, order, how).await
    }

    /// `resume THREAD WIRE whole|events whole|streamed`
    async fn resume(&self, thread: &Thread, order: &Order<'_>) -> Result<(), String> {
        let streamed = order.word(2)? == "streamed";
        let agent = self.agent(order.agent(order.word(0)?, streamed))?;
        let how = Hearing::of(order.thread, order.word(1)?, streamed);
        self.hear(agent.resume(thread), order, how).await
    }

    /// `reply THREAD WIRE whole|events yes|no`: answers the waiting calls, and resumes.
    async fn reply(&self, thread: &Thread, order: &Order<'_>) -> Result<(), String> {
        let agent = self.agent(order.agent(order.word(0)?, true))?;
        thread.refresh().await.map_err(|error| words_of(&error))?;
        let waiting: Vec<Pending> = thread
            .pending()
            .into_iter()
            .filter(|one| one.awaits == Awaits::Approval)
            .collect();
        let mut run = agent.resume(thread);
        for call in &waiting {
            run = match order.word(2)? {
                "yes" => run.approve(call),
                _ => run.reject(call, Some("not today")),
            };
        }
        let how = Hearing::of(order.thread, order.word(1)?, true);
        self.hear(run, order, how).await
    }

    /// `decide THREAD yes|no|forged|foreign`: answers the waiting approvals without resuming.
    async fn decide(&self, order: &Order<'_>) -> Result<(), String> {
        let id = ThreadId::new(order.thread).map_err(|error| error.to_string())?;
        let filter = ApprovalFilter {
            thread: Some(id),
            waiting: true,
        };
        let page = self.threads.approvals(&filter, None).await;
        let page = page.map_err(|error| words_of(&error))?;
        let mut answers = Vec::new();
        for approval in &page.found {
            let answer = self.decided(approval, order.word(0)?).await;
            answers.push(match answer {
                Ok(approval) => approval.state.as_str().to_owned(),
                Err(error) => format!("refused:{:?}", error.kind()),
            });
        }
        say(&format!("ok {} {}", order.no, answers.join(" ")));
        Ok(())
    }

    async fn decided(&self, approval: &Approval, how: &str) -> Result<Approval, Error> {
        let by = "harbour-master";
        match how {
            "yes" => {
                self.threads
                    .decide(approval, Decision::Approved, by, None)
                    .await
            }
            "forged" => {
                // The approver was shown other arguments.
                let mut shown = approval.clone();
                shown.shown[0] ^= 1;
                self.threads
                    .decide(&shown, Decision::Approved, by, None)
                    .await
            }
            "foreign" => {
                let tenant = Tenant::new("elsewhere").map_err(|error| Error::Invalid {
                    what: "tenant",
                    why: error.to_string(),
                })?;
                let scope = Authority::assume().scope(tenant);
                let theirs = Threads::scoped(self.threads.store(), scope);
                theirs.decide(approval, Decision::Approved, by, None).await
            }
            _ => {
                let reason = Some("not today");
                self.threads
                    .decide(approval, Decision::Denied, by, reason)
                    .await
            }
        }
    }

    /// `own THREAD service|local`
    async fn own(&self, thread: &Thread, order: &Order<'_>) -> Result<(), String> {
        let owner = match order.word(0)? {
            "service" => Owner::service(order.word(1)?),
            _ => Owner::Local,
        };
        let set = thread.set_owner(owner).await;
        set.map_err(|error| words_of(&error))?;
        say(&format!("ok {}", order.no));
        Ok(())
    }

    /// Reads a run to its end.
    async fn hear(
        &self,
        run: Run<impl throughline::agent::order::Order>,
        order: &Order<'_>,
        how: Hearing,
    ) -> Result<(), String> {
        let no = order.no;
        let outcome = match how.events {
            true => {
                let mut stream = run.stream();
                let (mut of, mut shown) = (None, None);
                while let Some(event) = stream.next().await {
                    match &event {
                        RunEvent::Started { run, .. } => (of, shown) = (Some(*run), None),
                        RunEvent::Ended { stop } => say(&format!("ended {no} {stop}")),
                        event => {
                            let step = shown_step(event).filter(|_| how.parts);
                            if let (Some(run), Some(step)) = (of, step)
                                && shown != Some(step)
                            {
                                shown = Some(step);
                                say(&format!("shown {no} {run} {step}"));
                            }
                        }
                    }
                }
                stream.outcome().await
            }
            false => run.await,
        };
        let outcome = outcome.map_err(|failed| words_of(&failed))?;
        if outcome.stop == StopReason::Parked {
            say(&format!("parked {no}"));
            return Ok(());
        }
        let messages = outcome.messages.iter();
        let messages: Vec<String> = messages.map(Message::to_json).collect();
        let stop = outcome.stop;
        say(&format!("done {no} {stop} [{}]", messages.join(",")));
        Ok(())
    }
}

/// How a run is read.
#[derive(Clone, Copy)]
struct Hearing {
    /// Event by event.
    events: bool,
    /// Whether the first part of each answer is printed.
    parts: bool,
}

impl Hearing {
    const WHOLE: Self = Self {
        events: false,
        parts: false,
    };

    fn of(thread: &str, how: &str, streamed: bool) -> Self {
        Self {
            events: how == "events",
            parts: streamed && !Keeping::of(thread).services().is_empty(),
        }
    }
}

/// The model call of which an event shows a part.
fn shown_step(event: &RunEvent) -> Option<u32> {
    match event {
        RunEvent::Text { step, .. }
        | RunEvent::Summary { step, .. }
        | RunEvent::Reasoning { step, .. } => Some(*step),
        _ => None,
    }
}

/// The owner of a new thread; none if that is our store.
fn owner_of(name: &str) -> Result<Option<Owner>, String> {
    Ok(match Keeping::of(name).by {
        KeptBy::Us => None,
        KeptBy::Services(names) => {
            let mut names = names.iter().copied();
            let first = names.next().map(Services::new);
            first.map(|first| Owner::Services(names.fold(first, Services::with)))
        }
        KeptBy::Application { .. } => Some(Owner::External {
            store: SHELF.to_owned(),
            key: RawJson::new(&format!(r#"{{"case":"{name}","revision":0}}"#))
                .map_err(|error| error.to_string())?,
        }),
    })
}

/// An error with all its sources.
fn words_of(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    words
}
