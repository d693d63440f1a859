//! The beginning of a run: everything that can be refused is refused before anything is stored.

use std::sync::Arc;
use std::time::Duration;

use throughline_model::{Message, Source};
use throughline_store::{
    Anchor, Begin, Begun, Entry, Error, Flush, NewItem, NodeRef, QueueNo, Run, RunId, State,
    StoredEvent,
};

use super::open_calls::OpenCallAnswers;
use super::plan::Plan;
use crate::run::driver::model::Ownership;
use crate::run::driver::model::PromptView;
use crate::run::driver::model::{Provided, Unbegun, providers};
use crate::run::driver::publisher::EventPublisher;
use crate::run::driver::recover::Carried;
use crate::run::driver::{Driver, Job, RoundRecord};
use crate::run::event::RunEvent;
use crate::run::events::encode;
use crate::run::machine::{Fresh, Spent, Turn};
use crate::run::outcome::RunError;
use crate::run::setup::AgentSetup;
use crate::telemetry;
use crate::thread::{AtWork, Loaded, Recorder};

use super::enter::StartPoint;

/// What a failed run left: its items, and the messages that they are.
pub(in crate::run::driver) struct Adopted {
    pub(in crate::run::driver) items: Vec<NewItem>,
    pub(in crate::run::driver) messages: Vec<Message>,
    /// The id under which a service has the first so many of them.
    pub(in crate::run::driver) kept: Option<(String, usize)>,
    /// Whether the run that adopts them counts them as what it said itself.
    pub(in crate::run::driver) own: bool,
}

/// What is said first in a run.
pub(in crate::run::driver) struct RunInput {
    /// What a failed run left, in the place of what was never sent.
    pub(in crate::run::driver) adopted: Option<Adopted>,
    pub(in crate::run::driver) queued: Vec<(QueueNo, Message)>,
    /// What is said about calls for which the node waits.
    pub(in crate::run::driver) opening: OpenCallAnswers,
    pub(in crate::run::driver) input: Vec<Message>,
    /// What the run that is adopted has used of its limits.
    pub(in crate::run::driver) spent: Spent,
    /// Whether the input is said after the results of calls that are taken over.
    pub(in crate::run::driver) after_results: bool,
}

impl RunInput {
    /// What context providers are shown of it, if there are any.
    pub(in crate::run::driver) fn shown(&self, plan: &Plan) -> Vec<Message> {
        if plan.providers.is_empty() {
            return Vec::new();
        }
        let adopted = self.adopted.iter().flat_map(|left| &left.messages);
        adopted.chain(&self.input).cloned().collect()
    }
}

pub(in crate::run::driver) enum Entered {
    Begun(Box<Driver>, crate::run::machine::Order),
    /// The same was asked before.
    Repeated(Box<Run>),
    /// The thread is not where it was.
    Moved(Box<Plan>),
}

/// Items of an earlier run that stand at the beginning of this one.
pub(in crate::run::driver) fn carried(entries: &[Entry]) -> Vec<NewItem> {
    let refs = entries.iter().flat_map(Entry::item_refs);
    refs.map(NewItem::Again).collect()
}

/// What stands before what is said first.
enum Before {
    Adopted(Vec<Arc<Message>>),
    Unsent(Vec<Arc<Message>>),
}

/// Begin a run; if that fails, context providers are told.
pub(in crate::run::driver) async fn begin(
    agent: &Arc<AgentSetup>,
    job: &Job,
    run: RunId,
    plan: Plan,
    place: StartPoint,
    said: RunInput,
) -> Result<Entered, RunError> {
    let history = place.loaded.view.messages();
    let shown = said.shown(&plan);
    let unbegun = Unbegun::of(&plan, history, &shown, &place.loaded.state());
    let entered = begin_asked(agent, job, run, plan, place, said).await;
    if let (Some(unbegun), Err(error)) = (unbegun, &entered) {
        unbegun.failed((job.id(), run), error).await;
    }
    entered
}

/// Begin a run: everything that can be refused is refused before anything is stored.
async fn begin_asked(
    agent: &Arc<AgentSetup>,
    job: &Job,
    run: RunId,
    plan: Plan,
    place: StartPoint,
    said: RunInput,
) -> Result<Entered, RunError> {
    let StartPoint { mut loaded, branch } = place;
    let mut state = loaded.state();
    // What a new thread begins with is written with its first node.
    let found = loaded.found.as_ref();
    let held = found.map_or_else(State::default, |found| found.state.clone());
    let expects = found.and_then(|found| found.expects.clone());
    let mut settings = loaded.settings.clone();
    let (owner, sent) = match Ownership::of(agent, &plan, &mut settings, &state, run) {
        Ok(mut owner) => {
            let left = said.adopted.as_ref();
            let sent = left.map_or(0, |left| owner.adopt(agent, &plan, left, &mut state));
            (owner, sent)
        }
        Err(error) => {
            job.thread.put_back(loaded);
            return Err(error);
        }
    };
    let unsent = loaded
        .found
        .as_mut()
        .map(|found| std::mem::take(&mut found.unsent))
        .unwrap_or_default();
    let shown = said.shown(&plan);
    let asked = providers::before_run(
        &plan,
        (job.id(), run),
        loaded.view.messages(),
        &shown,
        &mut state,
    );
    let provided = match asked.await {
        Ok(provided) => provided,
        Err(error) => {
            job.thread.put_back(loaded);
            return Err(error);
        }
    };
    let mut tools = plan.tools.clone();
    tools
        .add(provided.run.tools.clone())
        .map_err(RunError::Tools)?;
    let base = std::mem::take(&mut loaded.view);
    let prompt = owner.prompt(&plan, base, &provided.run.messages).await?;

    let mut turn = Turn::new(run, plan.limits.clone(), plan.calling);
    turn.charge(&said.spent);
    let (again, before) = match said.adopted {
        Some(adopted) => {
            let messages = adopted.messages.into_iter().map(Arc::new).collect();
            let before = match adopted.own {
                true => Before::Adopted(messages),
                false => Before::Unsent(messages),
            };
            (adopted.items, before)
        }
        None => {
            let items = carried(&unsent);
            (items, Before::Unsent(crate::thread::messages(unsent)))
        }
    };
    turn.carry(again.len());
    let mut queued = said.queued;
    for (_, message) in &mut queued {
        message.source = Some(Source::Caller);
    }
    // What waited was said before the input.
    let (dequeue, now, later) = match said.after_results {
        true => (Vec::new(), Vec::new(), Some((queued, said.input))),
        false => {
            let (dequeue, mut now): (Vec<_>, Vec<_>) = queued.into_iter().unzip();
            now.extend(said.input);
            (dequeue, now, None)
        }
    };
    let carried_along = Carried {
        spent: said.spent,
        later: later
            .as_ref()
            .map_or_else(Vec::new, |(_, input)| input.clone()),
    };
    // What a failed run left has what providers had stored there.
    let mut input = match before {
        Before::Adopted(_) => Vec::new(),
        Before::Unsent(_) => provided.kept.clone(),
    };
    let mut opening = said.opening;
    if let Some(results) = opening.message() {
        // Results stand next to their calls.
        input.insert(0, results);
    }
    input.extend(now);
    let order = turn.start(input);
    let mut items = again;
    let (mut messages, carried) = match before {
        Before::Adopted(messages) => (messages, 0),
        Before::Unsent(messages) => {
            let count = messages.len();
            (messages, count)
        }
    };
    for fresh in turn.take_fresh() {
        let (Fresh::Said(mut message) | Fresh::Results(mut message)) = fresh;
        message.created = Some(agent.clock.now());
        NewItem::push(&mut items, &message);
        messages.push(Arc::new(message));
    }
    let mut events: Vec<RunEvent> = Vec::new();
    if job.events.is_some() {
        events.push(RunEvent::Started {
            run,
            thread: job.id().clone(),
        });
        let told = messages[carried..].iter();
        events.extend(told.map(|message| RunEvent::Message((**message).clone())));
    }
    let stored: Vec<StoredEvent> = match job.stores {
        true => events.iter().map(encode).collect(),
        false => Vec::new(),
    };
    let at_work = AtWork::on(&job.thread.home.store, run, job.cancel.clone());
    let home = job.thread.home.clone();
    let begin = Begin {
        run,
        at: anchor(job, &mut loaded, branch, &settings),
        mode: plan.policy.persistence,
        input: items,
        request: carried_along.into_request(plan.request.clone()),
        key: plan.key.clone(),
        events: (!stored.is_empty()).then(|| Flush::new(0, &stored)),
        dequeue: dequeue.clone(),
        takes: opening.takes,
        expects,
    };
    let begun = home.sure(|| home.store.begin(&home.scope, &begin)).await;
    let started = match begun {
        Ok(Begun::Started(started)) => started,
        Ok(Begun::Repeated(run)) => return Ok(Entered::Repeated(run)),
        Err(
            Error::HeadMoved { .. }
            | Error::Changed { .. }
            | Error::Busy { .. }
            | Error::Exists { .. },
        ) => {
            job.thread.exists();
            return Ok(Entered::Moved(Box::new(plan)));
        }
        // What is remembered may be gone. Whoever reads it is told how.
        Err(Error::NotFound { .. }) if begin.expects.is_some() => {
            return Ok(Entered::Moved(Box::new(plan)));
        }
        Err(error) => return Err(RunError::Store(error)),
    };
    job.thread.exists();
    if settings != loaded.settings {
        // Handed over before the first call.
        let written = job.thread.write_settings(settings).await;
        written.map_err(RunError::Store)?;
    }
    let node = loaded.end().map(|end| end.node);
    let mut publisher = EventPublisher::new(job, 0);
    publisher.say_stored(events);
    let next_event = stored.len() as u64;
    let recorder = Recorder::new(home, started, plan.policy.persistence, (0, next_event));
    let mut driver = Driver::new(
        Arc::clone(agent),
        job.again(),
        Parts {
            run,
            turn,
            tools,
            plan,
            recorder,
            publisher,
            prompt,
            owner,
            provided,
            state,
            node,
            at_work,
            used: Duration::from_millis(said.spent.ms),
        },
    );
    driver.carried = carried;
    driver.held = Some(held);
    driver.taken = dequeue.into_iter().collect();
    if let Some((queued, input)) = later {
        driver.say_later(queued, input);
    }
    for (place, message) in messages.into_iter().enumerate() {
        if place >= sent {
            driver.prompt.push(Arc::clone(&message));
        }
        driver.said.push(message);
    }
    Ok(Entered::Begun(Box::new(driver), order))
}

fn anchor(
    job: &Job,
    loaded: &mut Loaded,
    branch: bool,
    settings: &crate::thread::ThreadSettings,
) -> Anchor {
    let end = loaded.end();
    match (loaded.seed.take(), end) {
        (Some(mut seed), _) => {
            seed.thread.settings = settings.to_json();
            Anchor::New {
                thread: seed.thread.clone(),
                leasing: seed.leasing,
            }
        }
        (None, Some(end)) if branch => Anchor::Node(NodeRef::Node(end.node)),
        (None, _) => Anchor::Head {
            thread: job.id().clone(),
            expected: loaded.version(),
        },
    }
}

/// What a driver is made of.
pub(in crate::run::driver) struct Parts {
    pub(in crate::run::driver) run: RunId,
    pub(in crate::run::driver) turn: Turn,
    pub(in crate::run::driver) tools: crate::tool::ToolSet,
    pub(in crate::run::driver) plan: Plan,
    pub(in crate::run::driver) recorder: Recorder,
    pub(in crate::run::driver) publisher: EventPublisher,
    pub(in crate::run::driver) prompt: PromptView,
    pub(in crate::run::driver) owner: Ownership,
    pub(in crate::run::driver) provided: Provided,
    pub(in crate::run::driver) state: State,
    pub(in crate::run::driver) node: Option<throughline_store::NodeId>,
    pub(in crate::run::driver) at_work: AtWork,
    /// How long the run, or those before it in its place, were worked on.
    pub(in crate::run::driver) used: Duration,
}

impl Driver {
    /// Say messages with the next model call: queued ones, then input of the run itself.
    pub(in crate::run::driver) fn say_later(
        &mut self,
        queued: Vec<(QueueNo, Message)>,
        input: Vec<Message>,
    ) {
        for (no, message) in queued {
            if self.taken.insert(no) {
                self.queued.push_back(Some(no));
                self.turn.inject(message);
            }
        }
        for message in input {
            self.queued.push_back(None);
            self.turn.inject(message);
        }
    }

    pub(in crate::run::driver) fn new(agent: Arc<AgentSetup>, job: Job, parts: Parts) -> Self {
        telemetry::name_run(parts.run);
        let time = parts.plan.limits.time;
        let mailbox = crate::thread::Mailbox::on(&job.thread);
        Self {
            tools: Arc::new(crate::run::driver::tools::RunTools::new(
                parts.tools,
                mailbox,
            )),
            run: parts.run,
            turn: parts.turn,
            plan: parts.plan,
            recorder: parts.recorder,
            publisher: parts.publisher,
            prompt: parts.prompt,
            owner: parts.owner,
            provided: parts.provided,
            state: parts.state,
            held: None,
            compaction: None,
            lost: Vec::new(),
            losses: Vec::new(),
            published_state: None,
            ends_here: false,
            said: Vec::new(),
            carried: 0,
            trailing: false,
            published: 0,
            marked: false,
            node: parts.node,
            steps: Vec::new(),
            round: RoundRecord::default(),
            running: tokio::task::JoinSet::new(),
            tasks: std::collections::HashMap::new(),
            prepared: std::collections::HashMap::new(),
            queued: std::collections::VecDeque::new(),
            taken: std::collections::HashSet::new(),
            looked: job.thread.left(),
            deadline: time
                .map(|time| tokio::time::Instant::now() + time.saturating_sub(parts.used)),
            stop_tools: job.cancel.child_token(),
            _at_work: parts.at_work,
            agent,
            job,
        }
    }
}
