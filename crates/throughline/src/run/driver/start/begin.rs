//! Beginning a run: everything that can be refused is refused before the write that begins it.

use std::sync::Arc;

use throughline_model::{Message, Source};
use throughline_store::{
    Anchor, Begin, Begun, CallRef, Entry, Error, Flush, ItemNo, ItemRef, NewItem, NodeRef, QueueNo,
    Run, RunId, State, StoredEvent,
};

use super::enter::StartPoint;
use super::open_calls::OpenCallAnswers;
use super::plan::Plan;
use crate::run::driver::cutoff::Cutoff;
use crate::run::driver::finish::OutcomeDetails;
use crate::run::driver::inbox::{Inbox, LaterMessages};
use crate::run::driver::model::{
    AcceptedCall, ModelInput, Ownership, Provided, UnstartedRun, providers,
};
use crate::run::driver::publisher::{EventPublisher, RunLog};
use crate::run::driver::recover::Carried;
use crate::run::driver::run_memory::RunMemory;
use crate::run::driver::thread_state::ThreadState;
use crate::run::driver::tools::ToolExecution;
use crate::run::driver::transcript::Transcript;
use crate::run::driver::{Driver, RunContext};
use crate::run::event::RunEvent;
use crate::run::events::encode;
use crate::run::machine::{NewMessage, Order, Spent, Turn};
use crate::run::outcome::RunError;
use crate::telemetry;
use crate::thread::{Loaded, Recorder, RunningRun, ThreadSettings, messages};

/// The unpublished part of a failed run, with which the next run begins.
pub(crate) struct Leftover {
    pub(crate) items: Vec<NewItem>,
    pub(crate) messages: Vec<Message>,
    /// The service that has the first of the messages.
    pub(crate) sent_to_service: Option<SentToService>,
    /// Whether the messages are part of the outcome of the next run.
    pub(crate) is_own: bool,
    /// The model call that a service had accepted when the run failed.
    pub(crate) accepted: Option<AcceptedCall>,
}

impl Leftover {
    /// Give the results that close open calls the id that the store gives them: they are new items of
    /// the run that begins with them, behind those that it repeats.
    fn name_closing_results(&mut self, run: RunId) {
        if let Some(closing) = self.messages.last_mut().filter(|one| one.id.is_none()) {
            let before = self.items.len() - NewItem::count(closing) as usize;
            let no = before as ItemNo + 1;
            closing.id = Some(ItemRef { run, no }.message_id());
        }
    }
}

/// What a service has of the messages that a failed run left.
pub(crate) struct SentToService {
    /// The upstream, if the journal says which.
    pub(crate) upstream: Option<String>,
    /// The id under which it has them.
    pub(crate) id: String,
    /// How many.
    pub(crate) count: usize,
}

/// What a run begins with.
pub(crate) struct RunInput {
    /// The unpublished part of the failed run that this one continues.
    pub(crate) leftover: Option<Leftover>,
    /// How many messages had been queued through the handle when the queue was read.
    pub(crate) queue_count: u64,
    /// Messages that were queued on the thread.
    pub(crate) queued: Vec<(QueueNo, Message)>,
    /// Answers to the calls that the node waits for.
    pub(crate) answers: OpenCallAnswers,
    pub(crate) input: Vec<Message>,
    /// What the failed run has used of its limits.
    pub(crate) spent: Spent,
    /// Whether the input follows the results of calls that this run takes over and runs.
    pub(crate) after_results: bool,
}

impl RunInput {
    /// The call of the failed run that its service has accepted, unless this run has more to say:
    /// the service was sent what the failed run had.
    fn accepted_call(&mut self) -> Option<AcceptedCall> {
        let accepted = self.leftover.as_mut().and_then(|left| left.accepted.take());
        accepted.filter(|_| self.queued.is_empty() && self.input.is_empty())
    }

    /// The messages that context providers are shown; none if there are no providers.
    fn shown(&self, plan: &Plan) -> Vec<Message> {
        if plan.providers.is_empty() {
            return Vec::new();
        }
        let leftover = self.leftover.iter().flat_map(|left| &left.messages);
        leftover.chain(&self.input).cloned().collect()
    }
}

/// What came of beginning a run.
pub(crate) enum BeginResult {
    Begun(Box<Driver>, Order),
    /// The key of the request has this run.
    Repeated(Box<Run>),
    /// The thread has changed since it was read.
    ThreadChanged(Box<Plan>),
}

/// Begin a run. If that fails, context providers are told.
pub(crate) async fn begin(
    context: &RunContext,
    run: RunId,
    plan: Plan,
    place: StartPoint,
    mut input: RunInput,
) -> Result<BeginResult, RunError> {
    if let Some(left) = &mut input.leftover {
        left.name_closing_results(run);
    }
    let history = place.loaded.view.messages();
    let shown = input.shown(&plan);
    let unstarted = UnstartedRun::of(&plan, history, &shown, &place.loaded.state());
    let begun = prepare_and_begin(context, run, plan, place, input).await;
    if let (Some(unstarted), Err(error)) = (unstarted, &begun) {
        unstarted.failed((context.thread_id(), run), error).await;
    }
    begun
}

async fn prepare_and_begin(
    context: &RunContext,
    run: RunId,
    plan: Plan,
    place: StartPoint,
    mut input: RunInput,
) -> Result<BeginResult, RunError> {
    let StartPoint { mut loaded, branch } = place;
    let prepared = match Prepared::new(context, run, &plan, &loaded, &input).await {
        Ok(prepared) => prepared,
        Err(error) => {
            context.thread.put_back(loaded);
            return Err(error);
        }
    };
    let mut tools = plan.tools.clone();
    let added = tools.add(prepared.provided.run.tools.clone());
    added.map_err(RunError::Tools)?;
    let base = std::mem::take(&mut loaded.view);
    let shown = &prepared.provided.run.messages;
    let view = prepared.owner.prompt(&plan, base, shown).await?;

    let accepted = input.accepted_call();
    let mut turn = Turn::new(run, plan.limits.clone(), plan.calling);
    turn.charge(&input.spent);
    let kept = &prepared.provided.kept;
    let first = FirstMessages::new(context, &mut turn, &mut loaded, &mut input, kept);
    let events = first.events(context, run);
    let stored: Vec<StoredEvent> = match context.stores_events {
        true => events.iter().map(encode).collect(),
        false => Vec::new(),
    };
    let at_work = RunningRun::register(&context.thread.home.store, run, context.cancel.clone());
    let at = anchor(context, &mut loaded, branch, &prepared.settings);
    let begin = Begin {
        mode: plan.policy.persistence,
        request: Some(first.carried_on.into_request(plan.request.clone())),
        key: plan.key.clone(),
        events: (!stored.is_empty()).then(|| Flush::new(0, &stored)),
        dequeue: first.dequeue.clone(),
        takes: first.takes,
        expects: loaded.expects(),
        redactions: loaded.found.as_ref().map(|found| found.redactions),
        ..Begin::new(run, at, first.items)
    };
    let started = match write(context, &begin).await? {
        Some(Begun::Started(started)) => started,
        Some(Begun::Repeated(run)) => return Ok(BeginResult::Repeated(run)),
        None => return Ok(BeginResult::ThreadChanged(Box::new(plan))),
    };
    context.thread.exists();
    if prepared.settings != loaded.settings {
        // A new owner of the history is stored before the first model call.
        context.thread.write_settings(prepared.settings).await?;
    }
    let mut publisher = EventPublisher::new(context, 0);
    publisher.send_stored(events);
    let next = (0, stored.len() as u64);
    let home = context.thread.home.clone();
    let recorder = Recorder::new(home, started, plan.policy.persistence, next);
    telemetry::name_run(run);
    let mut driver = Driver {
        run,
        turn,
        log: RunLog {
            recorder,
            events: publisher,
        },
        transcript: Transcript::new(loaded.end().map(|end| end.node), first.carried, 0),
        state: ThreadState::new(prepared.state, Some(prepared.stored_state)),
        inbox: Inbox::new(input.queue_count, first.dequeue),
        model: ModelInput {
            view,
            owner: prepared.owner,
            provided: prepared.provided,
            accepted,
        },
        tools: ToolExecution::new(tools, context),
        details: OutcomeDetails::default(),
        cutoff: Cutoff::new(context, plan.limits.time, input.spent.ms),
        memory: RunMemory::new(context.agent.memory.as_ref()),
        was_cut: false,
        plan,
        context: context.clone(),
        _at_work: at_work,
    };
    if let Some(later) = first.later {
        driver.inbox.inject_later(&mut driver.turn, later);
    }
    for (place, message) in first.messages.into_iter().enumerate() {
        if place >= prepared.sent_to_service {
            driver.model.view.push(Arc::clone(&message));
        }
        driver.transcript.push(message);
    }
    Ok(BeginResult::Begun(Box::new(driver), first.order))
}

/// The write that begins a run. `None` if the thread has changed since it was read.
async fn write(context: &RunContext, begin: &Begin) -> throughline_store::Result<Option<Begun>> {
    let home = &context.thread.home;
    match home
        .retry_until_known(|| home.store.begin(&home.scope, begin))
        .await
    {
        Ok(begun) => Ok(Some(begun)),
        Err(
            Error::HeadMoved { .. }
            | Error::Changed { .. }
            | Error::Busy { .. }
            | Error::Exists { .. },
        ) => {
            context.thread.exists();
            Ok(None)
        }
        // The handle remembered a thread that was deleted. Reading it again gives the right error.
        Err(Error::NotFound { .. }) if begin.expects.is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is known before the first messages of a run are made.
struct Prepared {
    /// The settings of the thread, with the owner of the history that the run needs.
    settings: ThreadSettings,
    state: State,
    /// The state that the store has at the node.
    stored_state: State,
    owner: Ownership,
    /// How many of the messages that a failed run left the service has.
    sent_to_service: usize,
    provided: Provided,
}

impl Prepared {
    async fn new(
        context: &RunContext,
        run: RunId,
        plan: &Plan,
        loaded: &Loaded,
        input: &RunInput,
    ) -> Result<Self, RunError> {
        let agent = &context.agent;
        let mut state = loaded.state();
        let mut settings = loaded.settings.clone();
        let mut owner = Ownership::of(agent, plan, &mut settings, &state, run)?;
        if let Some(external) = owner.external_mut() {
            external.repeat(loaded.view.messages(), &mut state).await?;
        }
        let sent_to_service = match &input.leftover {
            Some(left) => owner.adopt(agent, plan, left, &mut state),
            None => 0,
        };
        let shown = input.shown(plan);
        let history = loaded.view.messages();
        let at = (context.thread_id(), run);
        let provided = providers::before_run(plan, at, history, &shown, &mut state).await?;
        let found = loaded.found.as_ref();
        Ok(Self {
            settings,
            state,
            // The state that a new thread begins with is written with its first node.
            stored_state: found.map_or_else(State::default, |found| found.state.clone()),
            owner,
            sent_to_service,
            provided,
        })
    }
}

/// The messages that are stored with the beginning of a run.
struct FirstMessages {
    order: Order,
    items: Vec<NewItem>,
    messages: Vec<Arc<Message>>,
    /// How many messages at the front belong to an earlier run that never sent them.
    carried: usize,
    /// The queued messages among them.
    dequeue: Vec<QueueNo>,
    /// Calls of earlier runs that this one takes over.
    takes: Vec<CallRef>,
    /// Queued messages and input that follow the results of those calls.
    later: Option<LaterMessages>,
    /// What is stored with the request, for a worker that resumes the run.
    carried_on: Carried,
}

impl FirstMessages {
    /// Take the messages of the input, and have the turn number the new ones. `kept` are the messages
    /// of context providers that become history.
    fn new(
        context: &RunContext,
        turn: &mut Turn,
        loaded: &mut Loaded,
        input: &mut RunInput,
        kept: &[Message],
    ) -> Self {
        let unsent = match &mut loaded.found {
            Some(found) => std::mem::take(&mut found.unsent),
            None => Vec::new(),
        };
        let mut new = Vec::new();
        new.extend(input.answers.message());
        let (mut items, mut first, carried) = match input.leftover.take() {
            Some(left) => {
                let first: Vec<_> = left.messages.into_iter().map(Arc::new).collect();
                let carried = match left.is_own {
                    true => 0,
                    false => {
                        new.extend_from_slice(kept);
                        first.len()
                    }
                };
                (left.items, first, carried)
            }
            None => {
                new.extend_from_slice(kept);
                let refs = unsent.iter().flat_map(Entry::item_refs);
                let items = refs.map(NewItem::Repeat).collect();
                let first = messages(unsent);
                let carried = first.len();
                (items, first, carried)
            }
        };
        turn.skip_items(items.len());
        let mut queued = std::mem::take(&mut input.queued);
        for (_, message) in &mut queued {
            message.source = Some(Source::Caller);
        }
        let mut dequeue = Vec::new();
        let later = match input.after_results {
            true => Some(LaterMessages {
                queued,
                input: std::mem::take(&mut input.input),
            }),
            false => {
                // Messages were queued before the input came.
                for (no, message) in queued {
                    dequeue.push(no);
                    new.push(message);
                }
                new.append(&mut input.input);
                None
            }
        };
        let order = turn.start(new);
        for message in turn.take_new() {
            let (NewMessage::Message(mut message) | NewMessage::Results(mut message)) = message;
            message.created = Some(context.agent.clock.now());
            NewItem::push(&mut items, &message);
            first.push(Arc::new(message));
        }
        let later_input = later.as_ref().map(|later| later.input.clone());
        Self {
            order,
            items,
            messages: first,
            carried,
            dequeue,
            takes: std::mem::take(&mut input.answers.takes),
            later,
            carried_on: Carried {
                spent: input.spent,
                later: later_input.unwrap_or_default(),
            },
        }
    }

    /// The first events, for a reader.
    fn events(&self, context: &RunContext, run: RunId) -> Vec<RunEvent> {
        if context.events.is_none() {
            return Vec::new();
        }
        let mut events = vec![RunEvent::Started {
            run,
            thread: context.thread_id().clone(),
        }];
        let own = self.messages[self.carried..].iter();
        events.extend(own.map(|message| RunEvent::Message((**message).clone())));
        events
    }
}

fn anchor(
    context: &RunContext,
    loaded: &mut Loaded,
    branch: bool,
    settings: &ThreadSettings,
) -> Anchor {
    match (loaded.seed.take(), loaded.end()) {
        (Some(mut seed), _) => {
            seed.thread.settings = settings.to_json();
            Anchor::New {
                thread: seed.thread.clone(),
                leasing: seed.leasing,
            }
        }
        (None, Some(end)) if branch => Anchor::Node(NodeRef::Node(end.node)),
        (None, _) => Anchor::Head {
            thread: context.thread_id().clone(),
            expected: loaded.version(),
        },
    }
}
