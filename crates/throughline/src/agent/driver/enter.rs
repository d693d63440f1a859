//! How a run begins on a thread, after what was left there is settled.

use std::sync::Arc;
use std::time::Duration;

use throughline_model::{Body, Message, Source};
use throughline_store::{
    Anchor, Begin, Begun, Entry, Error, Flush, Idempotency, Leasing, NewItem, NodeRef, Run, RunId,
    RunState, StoredEvent, Version,
};

use super::context::{self, Unbegun};
use super::owned::Ownership;
use super::plan::Plan;
use super::restore::Restoring;
use super::settle::refused;
use super::sight::Sight;
use super::tell::Telling;
use super::{Driver, Job, Recorded};
use crate::agent::event::RunEvent;
use crate::agent::events::encode;
use crate::agent::inner::Inner;
use crate::agent::input::Input;
use crate::agent::options::RunOptions;
use crate::agent::outcome::{Outcome, RunError, RunFailed};
use crate::agent::run::Start;
use crate::agent::turn::{Fresh, Turn};
use crate::history::{AtWork, Loaded, OnBusy, OnInterrupt, OnOpenCalls, Recorder, live};
use crate::telemetry;
use crate::trials::planted;

/// A run that was taken over so often is not tried again.
pub(super) const ATTEMPTS: u32 = 5;

/// How often somebody who waits for a thread looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(super) async fn driven(
    agent: Arc<Inner>,
    job: Job,
    options: RunOptions,
    start: Start,
) -> Result<Outcome, RunFailed> {
    match start {
        Start::Input(input) => {
            let run = agent.ids.run();
            let chosen = options.persistence;
            let plan = match Plan::of(&agent, options).and_then(|plan| fit(&input).map(|()| plan)) {
                Ok(plan) => plan,
                Err(error) => return Err(refused(run, &job, error)),
            };
            fresh(agent, job, run, (plan, chosen), input).await
        }
        Start::Unsettled(replies) => super::adopt::resumed(agent, job, options, replies).await,
        Start::Cancel => super::adopt::cancelled(agent, job, options).await,
    }
}

/// What nobody may say as input: answers to questions that the record keeps.
fn fit(input: &Input) -> Result<(), RunError> {
    let contents = input.messages().iter().flat_map(|one| &one.contents);
    for content in contents {
        if let Body::ApprovalResponse(answer) = &content.body {
            return Err(RunError::Unasked {
                request: answer.request.to_string(),
            });
        }
    }
    Ok(())
}

/// Where a run begins.
pub(super) struct Place {
    pub(super) loaded: Loaded,
    /// At the end of a branch, not at the head of the thread.
    pub(super) branch: bool,
}

/// A run with new input.
async fn fresh(
    agent: Arc<Inner>,
    job: Job,
    run: RunId,
    (mut plan, chosen): (Plan, Option<crate::history::Persistence>),
    input: Input,
) -> Result<Outcome, RunFailed> {
    let mut input = input.into_messages();
    for message in &mut input {
        // Whatever it claims: this is what the caller says.
        message.source = Some(Source::Caller);
    }
    let key = plan.key.as_ref().map(|key| Idempotency {
        key: key.clone(),
        request: digest(&input),
    });
    let mut first = true;
    loop {
        // What is left from here on is looked for.
        let looked = job.thread.left();
        let place = match free(&agent, &job, &plan, key.as_ref()).await {
            Ok(place) => place,
            Err(Blocked::Refused(error)) => return Err(refused(run, &job, error)),
            Err(Blocked::Failed(failed)) => return Err(*failed),
            Err(Blocked::Repeated(run)) => {
                let run = super::adopt::waited(&job, *run).await?;
                match run.state == RunState::Interrupted && run.leased {
                    // Whoever worked on it is gone: it is settled like any other.
                    true => continue,
                    false => return super::adopt::repeated(&agent, &job, run).await,
                }
            }
        };
        if std::mem::take(&mut first) {
            plan.on_thread(&place.loaded.settings, chosen);
            plan.layered(&agent);
        }
        let left = super::adopt::left_open(&job, &place.loaded).await;
        let queued = waiting(&job, &place.loaded).await;
        let said = match left.and_then(|adopted| Ok((adopted, queued?))) {
            Ok((adopted, queued)) => Said {
                adopted,
                queued,
                input: input.clone(),
                key: key.clone(),
            },
            Err(error) => return Err(refused(run, &job, RunError::Store(error))),
        };
        match begin(&agent, &job, run, plan, place, said).await {
            Ok(Entered::Begun(driver, order)) => {
                let mut driver = *driver;
                driver.looked = looked;
                let worked = driver.work(order).await;
                return driver.end(worked).await;
            }
            Ok(Entered::Repeated(run)) => return super::adopt::repeated(&agent, &job, *run).await,
            // Somebody was faster: look again.
            Ok(Entered::Moved(again)) => plan = *again,
            Err(error) => return Err(refused(run, &job, error)),
        }
    }
}

/// What a failed run left: its items, and the messages that they are.
pub(super) struct Adopted {
    pub(super) items: Vec<NewItem>,
    pub(super) messages: Vec<Message>,
    /// The id under which a service has the first so many of them.
    pub(super) kept: Option<(String, usize)>,
    /// Whether the run that adopts them counts them as what it said itself.
    pub(super) own: bool,
}

/// What is said first in a run.
pub(super) struct Said {
    /// What a failed run left, in the place of what was never sent.
    pub(super) adopted: Option<Adopted>,
    pub(super) queued: Vec<(throughline_store::QueueNo, Message)>,
    pub(super) input: Vec<Message>,
    pub(super) key: Option<Idempotency>,
}

impl Said {
    /// What context providers are shown of it, if there are any.
    fn shown(&self, plan: &Plan) -> Vec<Message> {
        if plan.providers.is_empty() {
            return Vec::new();
        }
        let adopted = self.adopted.iter().flat_map(|left| &left.messages);
        adopted.chain(&self.input).cloned().collect()
    }
}

pub(super) async fn waiting(
    job: &Job,
    loaded: &Loaded,
) -> throughline_store::Result<Vec<(throughline_store::QueueNo, Message)>> {
    let queued = loaded.opened.as_ref().map_or(0, |opened| opened.queued);
    match queued {
        0 => Ok(Vec::new()),
        _ => job.thread.queued().await,
    }
}

pub(super) enum Entered {
    Begun(Box<Driver>, crate::agent::turn::Order),
    /// The same was asked before.
    Repeated(Box<Run>),
    /// The thread is not where it was.
    Moved(Box<Plan>),
}

/// Why a run does not begin.
pub(super) enum Blocked {
    Refused(RunError),
    /// A run that had to be finished first failed.
    Failed(Box<RunFailed>),
    /// The same was asked before.
    Repeated(Box<Run>),
}

impl From<Error> for Blocked {
    fn from(error: Error) -> Self {
        Self::Refused(RunError::Store(error))
    }
}

/// Wait until the thread is free, or make it so, as the policy says.
async fn free(
    agent: &Arc<Inner>,
    job: &Job,
    plan: &Plan,
    key: Option<&Idempotency>,
) -> Result<Place, Blocked> {
    loop {
        let loaded = job.thread.load().await?;
        let unsettled = match (&loaded.opened, loaded.at_node) {
            (Some(opened), None) => opened.unsettled.clone(),
            // At a node nobody is in the way: what is said there is a branch.
            _ => None,
        };
        let Some(run) = unsettled else {
            let branch = loaded.at_node.is_some();
            return Ok(Place { loaded, branch });
        };
        if let Some(key) = key
            && let Some(before) = asked_before(job, key).await?
            && (before.state != RunState::Interrupted || before.id != run.id)
        {
            job.thread.put_back(loaded);
            return Err(Blocked::Repeated(before));
        }
        // One of this process that no task works on was left, like that of a process that is gone.
        let held =
            run.state == RunState::Running && live::is_at_work(&job.thread.home.store, run.id);
        let settled = match held {
            true => Settled::Busy(loaded),
            false => settle_left(agent, job, plan, loaded, &run).await?,
        };
        let Settled::Busy(loaded) = settled else {
            continue;
        };
        match plan.policy.on_busy {
            OnBusy::Branch if tip(&loaded).is_some() => {
                return Ok(Place {
                    loaded,
                    branch: true,
                });
            }
            OnBusy::Reject | OnBusy::Branch => {
                job.thread.put_back(loaded);
                return Err(Blocked::Refused(RunError::Store(Error::Busy {
                    thread: run.thread,
                    run: run.id,
                    state: run.state,
                })));
            }
            OnBusy::Interrupt => {
                let home = &job.thread.home;
                home.store.cancel(&home.scope, run.id).await?;
                live::cancel(&home.store, run.id);
            }
            OnBusy::Queue => {}
        }
        job.thread.put_back(loaded);
        tokio::select! {
            biased;
            () = job.cancel.cancelled() => return Err(Blocked::Refused(RunError::Cancelled)),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

/// The run that was asked for with a key, if there is one. What is in the way on the thread does not
/// concern somebody who only asks again.
async fn asked_before(job: &Job, key: &Idempotency) -> Result<Option<Box<Run>>, Error> {
    let home = &job.thread.home;
    // Keys are looked up by beginning; one that expects a version that no thread has never begins.
    let nothing = Anchor::Head {
        thread: job.id().clone(),
        expected: Version(u64::MAX),
    };
    let mut begin = Begin::new(home.store.ids().run(), nothing, Vec::new());
    begin.key = Some(key.clone());
    match home.store.begin(&home.scope, &begin).await {
        Ok(Begun::Repeated(run)) => Ok(Some(run)),
        Ok(Begun::Started(_)) | Err(Error::HeadMoved { .. } | Error::Busy { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What came of looking at a run that was left.
enum Settled {
    /// Look at the thread again.
    Again,
    /// Somebody works on it.
    Busy(Loaded),
}

fn tip(loaded: &Loaded) -> Option<throughline_store::Tip> {
    loaded.opened.as_ref()?.tip
}

/// Settle a run that was left on the thread.
async fn settle_left(
    agent: &Arc<Inner>,
    job: &Job,
    plan: &Plan,
    loaded: Loaded,
    run: &Run,
) -> Result<Settled, Blocked> {
    let restoring = match run.state {
        RunState::Parked => {
            let home = &job.thread.home;
            let journal = home.store.journal(&home.scope, run.id).await?;
            let waits = super::restore::waiting(&journal);
            if waits.is_empty() {
                by_interrupt(plan, run)?
            } else if plan.policy.on_open_calls == OnOpenCalls::Reject {
                job.thread.put_back(loaded);
                return Err(Blocked::Refused(RunError::OpenCalls {
                    run: run.id,
                    pending: waits,
                }));
            } else {
                Restoring::Withdraw
            }
        }
        // What came out of a backup is never gone on with unasked.
        RunState::Held => Restoring::Close,
        _ => by_interrupt(plan, run)?,
    };
    let claimed = match super::adopt::claim(job, run).await {
        Ok(claimed) => claimed,
        Err(Error::Busy { .. }) => return Ok(Settled::Busy(loaded)),
        // Somebody else settled it meanwhile.
        Err(Error::Fenced { .. } | Error::WrongState { .. }) => {
            job.thread.put_back(loaded);
            return Ok(Settled::Again);
        }
        Err(error) => {
            job.thread.put_back(loaded);
            return Err(error.into());
        }
    };
    let quiet = Job {
        thread: Arc::clone(&job.thread),
        cancel: job.cancel.child_token(),
        starter: job.starter.clone(),
        events: None,
    };
    let how = (restoring, RunOptions::default());
    // In a box: a run may have to finish another one first.
    let settled = Box::pin(super::adopt::taken(
        agent,
        quiet,
        loaded,
        run,
        claimed,
        how,
        &[],
    ));
    match settled.await {
        Ok(_) => Ok(Settled::Again),
        Err(failed) => Err(Blocked::Failed(Box::new(failed))),
    }
}

fn by_interrupt(plan: &Plan, run: &Run) -> Result<Restoring, Blocked> {
    match plan.policy.on_interrupt {
        OnInterrupt::Resume if run.attempt + 1 >= ATTEMPTS && !planted("loop-never-sealed") => {
            Ok(Restoring::Seal)
        }
        OnInterrupt::Resume => Ok(Restoring::Resume),
        OnInterrupt::Close => Ok(Restoring::Close),
        OnInterrupt::Reject => Err(Blocked::Refused(RunError::Interrupted { run: run.id })),
    }
}

/// Items of an earlier run that stand at the beginning of this one.
pub(super) fn carried(entries: &[Entry]) -> Vec<NewItem> {
    let refs = entries.iter().flat_map(Entry::item_refs);
    refs.map(NewItem::Again).collect()
}

/// What stands before what is said first.
enum Before {
    Adopted(Vec<Arc<Message>>),
    Unsent(Vec<Arc<Message>>),
}

/// Begin a run; if that fails, context providers are told.
pub(super) async fn begin(
    agent: &Arc<Inner>,
    job: &Job,
    run: RunId,
    plan: Plan,
    place: Place,
    said: Said,
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
    agent: &Arc<Inner>,
    job: &Job,
    run: RunId,
    plan: Plan,
    place: Place,
    said: Said,
) -> Result<Entered, RunError> {
    let Place { mut loaded, branch } = place;
    let mut state = loaded.state();
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
        .opened
        .as_mut()
        .map(|opened| std::mem::take(&mut opened.unsent))
        .unwrap_or_default();
    let shown = said.shown(&plan);
    let asked = context::before_run(
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
    let sight = match &owner {
        Ownership::External { store, key, .. } => {
            let budget = plan.client.abilities().window;
            let history = store.load(key, budget).await;
            let history = history.map_err(|source| RunError::MessageStore { source })?;
            let view = crate::history::View::new(history);
            Sight::apart(
                std::mem::take(&mut loaded.view),
                view,
                &provided.run.messages,
            )
        }
        Ownership::Service { id: Some(_), has } => {
            let shown = &provided.run.messages;
            Sight::increments(std::mem::take(&mut loaded.view), has.as_ref(), shown)
        }
        _ if provided.run.messages.is_empty() => {
            let view = std::mem::take(&mut loaded.view);
            let length = view.messages().len();
            Sight::whole(view, length)
        }
        _ => Sight::with(std::mem::take(&mut loaded.view), &provided.run.messages),
    };

    let mut turn = Turn::new(run, plan.limits.clone(), plan.calling);
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
            (items, Before::Unsent(crate::history::messages(unsent)))
        }
    };
    turn.carry(again.len());
    let (dequeue, queued): (Vec<_>, Vec<_>) = said.queued.into_iter().unzip();
    // What a failed run left has what providers had stored there.
    let mut input = match before {
        Before::Adopted(_) => Vec::new(),
        Before::Unsent(_) => provided.kept.clone(),
    };
    // What waited was said before.
    input.extend(queued.into_iter().map(|mut message: Message| {
        message.source = Some(Source::Caller);
        message
    }));
    input.extend(said.input);
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
        NewItem::push(&mut items, &message, 0);
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
    let stored: Vec<StoredEvent> = events.iter().map(encode).collect();
    let at_work = AtWork::on(&job.thread.home.store, run, job.cancel.clone());
    let home = job.thread.home.clone();
    let begin = Begin {
        run,
        at: anchor(job, &mut loaded, branch, &settings),
        mode: plan.policy.persistence,
        input: items,
        request: plan.request.clone(),
        key: said.key,
        events: (!stored.is_empty()).then(|| Flush::new(0, &stored)),
        dequeue: dequeue.clone(),
        takes: Vec::new(),
    };
    let begun = home.sure(|| home.store.begin(&home.scope, &begin)).await;
    let started = match begun {
        Ok(Begun::Started(started)) => started,
        Ok(Begun::Repeated(run)) => return Ok(Entered::Repeated(run)),
        Err(Error::HeadMoved { .. } | Error::Busy { .. } | Error::Exists { .. }) => {
            job.thread.exists();
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
    let node = loaded.opened.as_ref().and_then(|opened| opened.tip);
    let mut telling = Telling::new(job.events.clone(), 0);
    for event in events {
        telling.say_stored(event);
    }
    let next_event = stored.len() as u64;
    let recorder = Recorder::new(home, started, plan.policy.persistence, (0, next_event));
    let mut driver = Driver::new(
        Arc::clone(agent),
        Job {
            thread: Arc::clone(&job.thread),
            cancel: job.cancel.clone(),
            starter: job.starter.clone(),
            events: job.events.clone(),
        },
        Parts {
            run,
            turn,
            tools,
            plan,
            recorder,
            telling,
            sight,
            owner,
            provided,
            state,
            node: node.map(|tip| tip.node),
            at_work,
        },
    );
    driver.carried = carried;
    driver.taken = dequeue.into_iter().collect();
    for (place, message) in messages.into_iter().enumerate() {
        if place >= sent {
            driver.sight.push(Arc::clone(&message));
        }
        driver.said.push(message);
    }
    Ok(Entered::Begun(Box::new(driver), order))
}

fn anchor(
    job: &Job,
    loaded: &mut Loaded,
    branch: bool,
    settings: &crate::history::ThreadSettings,
) -> Anchor {
    let tip = tip(loaded);
    match (loaded.seed.take(), tip) {
        (Some(mut seed), _) => {
            seed.thread.settings = settings.to_json();
            Anchor::New {
                thread: seed.thread.clone(),
                leasing: Leasing::Thread,
            }
        }
        (None, Some(tip)) if branch => Anchor::Node(NodeRef::Node(tip.node)),
        (None, _) => Anchor::Head {
            thread: job.id().clone(),
            expected: loaded.version(),
        },
    }
}

/// A digest of what is asked, for its key.
fn digest(messages: &[Message]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for message in messages {
        let bare = Message {
            id: None,
            created: None,
            ..message.clone()
        };
        let text = bare.to_json();
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) run: RunId,
    pub(super) turn: Turn,
    pub(super) tools: crate::tool::ToolSet,
    pub(super) plan: Plan,
    pub(super) recorder: Recorder,
    pub(super) telling: Telling,
    pub(super) sight: Sight,
    pub(super) owner: Ownership,
    pub(super) provided: context::Provided,
    pub(super) state: throughline_store::State,
    pub(super) node: Option<throughline_store::NodeId>,
    pub(super) at_work: AtWork,
}

impl Driver {
    pub(super) fn new(agent: Arc<Inner>, job: Job, parts: Parts) -> Self {
        telemetry::name_run(parts.run);
        let time = parts.plan.limits.time;
        let mailbox = crate::history::Mailbox::on(&job.thread);
        Self {
            tools: Arc::new(super::own::OwnTools::new(parts.tools, mailbox)),
            run: parts.run,
            turn: parts.turn,
            plan: parts.plan,
            recorder: parts.recorder,
            telling: parts.telling,
            sight: parts.sight,
            owner: parts.owner,
            provided: parts.provided,
            state: parts.state,
            published_state: None,
            said: Vec::new(),
            carried: 0,
            trailing: false,
            published: 0,
            marked: false,
            node: parts.node,
            steps: Vec::new(),
            round: Recorded::default(),
            running: tokio::task::JoinSet::new(),
            tasks: std::collections::HashMap::new(),
            prepared: std::collections::HashMap::new(),
            queued: std::collections::VecDeque::new(),
            taken: std::collections::HashSet::new(),
            looked: job.thread.left(),
            deadline: time.map(|time| tokio::time::Instant::now() + time),
            stop_tools: job.cancel.child_token(),
            _at_work: parts.at_work,
            agent,
            job,
        }
    }
}
