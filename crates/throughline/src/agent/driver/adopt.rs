//! Going on with runs that were left: parked, died, failed, or asked for twice.

use std::sync::Arc;
use std::time::Duration;

use throughline_model::{CallId, Message, Outcome as Ending, Role, Source};
use throughline_store::{
    Answer, Approval, ApprovalFilter, ApprovalState, CallState, Claim, Decision, Entry, Error,
    Journal, NewItem, Run, RunFilter, RunKind, RunState, Shown, Started, Stopped, Unanswerable,
};

use super::context::{self, Unbegun};
use super::enter::{Adopted, Entered, Parts, Place, Said};
use super::note::{EndNote, StepNote, ended};
use super::owned::{Ownership, is_models};
use super::plan::Plan;
use super::restore::{Restoring, closing};
use super::settle::{pending_of, refused};
use super::sight::Sight;
use super::tell::Telling;
use super::{Broken, Driver, Job, judge};
use crate::agent::event::RunEvent;
use crate::agent::events::{encode, replayed};
use crate::agent::inner::Inner;
use crate::agent::options::RunOptions;
use crate::agent::outcome::{Outcome, RunError, RunFailed};
use crate::agent::run::Reply;
use crate::agent::stop::StopReason;
use crate::agent::turn::{Awaits, Order, Resolution, Turn};
use crate::agent::usage::RunUsage;
use crate::history::{AtWork, Loaded, Owner, Recorder, View, live};

/// How often somebody who waits for another's run looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Go on with what is left on the thread.
pub(super) async fn resumed(
    agent: Arc<Inner>,
    job: Job,
    options: RunOptions,
    replies: Vec<(CallId, Reply)>,
) -> Result<Outcome, RunFailed> {
    let fresh = agent.ids.run();
    let loaded = match job.thread.load().await {
        Ok(loaded) => loaded,
        Err(error) => return Err(refused(fresh, &job, RunError::Store(error))),
    };
    let unsettled = loaded.opened.as_ref().and_then(|one| one.unsettled.clone());
    let Some(run) = unsettled else {
        return adopted(agent, job, options, loaded, &replies).await;
    };
    claimed(
        &agent,
        job,
        loaded,
        &run,
        (Restoring::Resume, options),
        &replies,
    )
    .await
}

/// Cancel what is left on the thread, or at work on it.
pub(super) async fn cancelled(
    agent: Arc<Inner>,
    job: Job,
    options: RunOptions,
) -> Result<Outcome, RunFailed> {
    let fresh = agent.ids.run();
    let stored = |error| RunError::Store(error);
    let loaded = match job.thread.load().await {
        Ok(loaded) => loaded,
        Err(error) => return Err(refused(fresh, &job, stored(error))),
    };
    let unsettled = loaded.opened.as_ref().and_then(|one| one.unsettled.clone());
    let Some(run) = unsettled else {
        job.thread.put_back(loaded);
        let thread = job.id().clone();
        return match newest(&job).await {
            // Cancelling again changes nothing.
            Ok(Some(run)) if run.state == RunState::Cancelled => repeated(&agent, &job, run).await,
            Ok(_) => Err(refused(fresh, &job, RunError::NothingToResume { thread })),
            Err(error) => Err(refused(fresh, &job, stored(error))),
        };
    };
    // What nobody works on is closed here; it may be one that this process gave up.
    match claim(&job, &run).await {
        Ok(claimed) => {
            let how = (Restoring::Cancel, options);
            return taken(&agent, job, loaded, &run, claimed, how, &[]).await;
        }
        Err(Error::Busy { .. }) => job.thread.put_back(loaded),
        Err(error) => {
            job.thread.put_back(loaded);
            return Err(refused(run.id, &job, stored(error)));
        }
    }
    let home = &job.thread.home;
    if let Err(error) = home.store.cancel(&home.scope, run.id).await {
        return Err(refused(run.id, &job, stored(error)));
    }
    live::cancel(&home.store, run.id);
    repeated(&agent, &job, run).await
}

/// A run that was taken over.
pub(super) struct Claimed {
    started: Started,
    at_work: AtWork,
}

/// Take a run over that nobody works on.
pub(super) async fn claim(job: &Job, run: &Run) -> throughline_store::Result<Claimed> {
    let at_work = AtWork::alone(&job.thread.home.store, run.id, job.cancel.clone());
    let at_work = at_work.ok_or_else(|| Error::Busy {
        thread: run.thread.clone(),
        run: run.id,
        state: run.state,
    })?;
    let claim = match run.state {
        RunState::Parked => Claim::Parked,
        RunState::Held => Claim::Settle,
        // Running or interrupted: of a process that is gone, or of this one and given up.
        _ => Claim::Own,
    };
    let home = &job.thread.home;
    let started = home
        .store
        .claim(&home.scope, run.id, run.epoch, claim)
        .await?;
    Ok(Claimed { started, at_work })
}

async fn claimed(
    agent: &Arc<Inner>,
    job: Job,
    loaded: Loaded,
    run: &Run,
    how: (Restoring, RunOptions),
    replies: &[(CallId, Reply)],
) -> Result<Outcome, RunFailed> {
    match claim(&job, run).await {
        Ok(claimed) => taken(agent, job, loaded, run, claimed, how, replies).await,
        Err(error) => {
            job.thread.put_back(loaded);
            Err(refused(run.id, &job, RunError::Store(error)))
        }
    }
}

/// Do with a run that was taken over what is to be done.
pub(super) async fn taken(
    agent: &Arc<Inner>,
    job: Job,
    loaded: Loaded,
    run: &Run,
    Claimed { started, at_work }: Claimed,
    (restoring, options): (Restoring, RunOptions),
    replies: &[(CallId, Reply)],
) -> Result<Outcome, RunFailed> {
    let home = job.thread.home.clone();
    let journal = match home.store.journal(&home.scope, run.id).await {
        Ok(journal) => journal,
        Err(error) => return Err(refused(run.id, &job, RunError::Store(error))),
    };
    let at = (journal.run.next_step, journal.run.next_event);
    let mut recorder = Recorder::new(home, started, journal.run.mode, at);
    if restoring == Restoring::Seal {
        let note = EndNote {
            stop: StopReason::Failed,
            finish: None,
            tokens: 0,
            error: Some(format!("given up after {} attempts", run.attempt + 1)),
            abandoned: false,
        };
        if journal.run.next_event > 0 {
            let stop = StopReason::Failed;
            recorder.event(encode(&RunEvent::Ended { stop }));
        }
        let sealed = recorder.end(Stopped::Failed, note.to_json()).await;
        job.thread.put_back(loaded);
        return match sealed {
            Ok(()) => Ok(*refused(run.id, &job, RunError::Cancelled).outcome),
            Err(error) => Err(refused(run.id, &job, RunError::Store(error))),
        };
    }
    let asks = restoring == Restoring::Resume;
    let made = rebuilt(
        agent,
        job,
        loaded,
        (options, asks),
        recorder,
        &journal,
        at_work,
    )
    .await;
    let mut driver = match made {
        Ok(driver) => driver,
        Err(failed) => return Err(*failed),
    };
    let worked = match driver.restore(&journal, restoring).await {
        Err(broken) => Err(broken),
        Ok(order) => match restoring {
            Restoring::Resume => match driver.answer(order, &journal, replies).await {
                Ok(order) => driver.work(order).await,
                Err(Broken::Run(error)) => return driver.put_down(error).await,
                Err(broken) => Err(broken),
            },
            Restoring::Withdraw => {
                driver.turn.withdraw();
                return driver.end_closed(closing(restoring)).await;
            }
            Restoring::Close | Restoring::Cancel | Restoring::Seal => {
                driver.turn.cut(StopReason::Cancelled, None);
                return driver.end_closed(closing(restoring)).await;
            }
        },
    };
    driver.end(worked).await
}

/// A driver for a run of the journal.
async fn rebuilt(
    agent: &Arc<Inner>,
    job: Job,
    mut loaded: Loaded,
    (options, asks): (RunOptions, bool),
    recorder: Recorder,
    journal: &Journal,
    at_work: AtWork,
) -> Result<Driver, Box<RunFailed>> {
    let run = journal.run.id;
    let fail = |job: &Job, error| Box::new(refused(run, job, error));
    let planned = Plan::resumed(agent, options, journal.request.as_ref(), journal.run.mode);
    let mut plan = planned.map_err(|error| fail(&job, error))?;
    plan.layered(agent);
    plan.service_id = None;
    let mut state = loaded.state();
    let last = journal.steps.last().and_then(|step| step.note.as_ref());
    let note = StepNote::read(last).unwrap_or_default();
    let mut settings = loaded.settings.clone();
    let owner = Ownership::of(agent, &plan, &mut settings, &state, run);
    let mut owner = owner.map_err(|error| fail(&job, error))?;
    let forgets = crate::trials::planted("loop-service-forgotten");
    let service = note.service.filter(|_| !forgets);
    if let (Owner::Service { upstream }, Some(id)) = (&settings.owner, service) {
        // The id is as durable as the step that it came with.
        let service = throughline_store::ServiceId {
            upstream: upstream.clone(),
            agent: agent.sub_agent.clone(),
            id,
        };
        let said = journal.entries.iter().map(|entry| &entry.message);
        let has = said.rev().find(|message| is_models(message));
        owner.kept_as(service, has.and_then(|last| last.id.as_ref()), &mut state);
    }
    let node = journal.run.published.or(journal.run.base);
    let tip = loaded.opened.as_ref().and_then(|opened| opened.tip);
    let view = std::mem::take(&mut loaded.view);
    let view = match tip.map(|tip| tip.node) == node {
        true => view,
        false => {
            let read = job.thread.view_at(node).await;
            read.map_err(|error| fail(&job, RunError::Store(error)))?
        }
    };
    // In `per_call` the view ends with what the run itself has published.
    let published = published(journal);
    let start = view.messages().len() - published.min(view.messages().len());
    let mut base = view;
    let history = &base.messages()[..start];
    let input: Vec<Message> = journal
        .entries
        .iter()
        .filter(|entry| entry.at.no <= journal.inputs)
        .map(|entry| entry.message.clone())
        .collect();
    let provided = match asks {
        false => context::Provided::default(),
        true => {
            let at = (job.id(), run);
            let unbegun = Unbegun::of(&plan, history, &input, &state);
            match context::before_run(&plan, at, history, &input, &mut state).await {
                Ok(provided) => provided,
                Err(error) => {
                    if let Some(unbegun) = unbegun {
                        unbegun.failed(at, &error).await;
                    }
                    return Err(fail(&job, error));
                }
            }
        }
    };
    let mut tools = plan.tools.clone();
    let added = tools.add(provided.run.tools.clone());
    added.map_err(|error| fail(&job, RunError::Tools(error)))?;
    base.rewind(start);
    let sight = match &owner {
        Ownership::External { store, key, .. } => {
            let budget = plan.client.abilities().window;
            let history = store.load(key, budget).await;
            let history =
                history.map_err(|source| fail(&job, RunError::MessageStore { source }))?;
            Sight::apart(base, View::new(history), &provided.run.messages)
        }
        Ownership::Service { id: Some(_), has } => {
            // What was shown with an earlier call is with the service.
            let shown = match journal.steps.is_empty() {
                true => &provided.run.messages[..],
                false => &[],
            };
            Sight::increments(base, has.as_ref(), shown)
        }
        _ if provided.run.messages.is_empty() => Sight::whole(base, start),
        _ => Sight::with(base, &provided.run.messages),
    };
    let mut telling = Telling::new(job.events.clone(), journal.run.next_event);
    let mut recorder = recorder;
    if telling.is_heard() && journal.run.next_event == 0 {
        // It went without readers so far: its events are numbered as if it had had one.
        telling.store(&mut recorder, &replayed(journal));
    }
    telling.say(&mut recorder, || RunEvent::Started {
        run,
        thread: job.id().clone(),
    });
    let turn = Turn::new(run, plan.limits.clone(), plan.calling);
    let mut driver = Driver::new(
        Arc::clone(agent),
        job,
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
            node,
            at_work,
        },
    );
    driver.published = published;
    if let Ownership::External { appended, .. } = &mut driver.owner {
        *appended = published;
    }
    Ok(driver)
}

/// How many messages of a run are history.
fn published(journal: &Journal) -> usize {
    let nodes = journal.steps.iter().filter(|step| step.node.is_some());
    let until = nodes.map(|step| step.first + step.items).max().unwrap_or(0);
    let entries = journal.entries.iter();
    entries.filter(|entry| entry.at.no < until).count()
}

impl Driver {
    /// Take in what was said about calls that wait, here and elsewhere.
    async fn answer(
        &mut self,
        order: Order,
        journal: &Journal,
        replies: &[(CallId, Reply)],
    ) -> Result<Order, Broken> {
        self.ask_leave().await?;
        let tools = self.tools.set();
        let checked = judge::replies(&self.turn, &tools, journal, replies);
        let (resolved, prepared) = checked.map_err(Broken::Run)?;
        let known = self.approvals().await?;
        for one in resolved {
            let resolution = self.word(one.position, one.resolution, &known).await?;
            // It waits: it was looked up among those that do.
            let _ = self.turn.resolve(one.position, resolution);
        }
        self.prepared.extend(prepared);
        self.heard_elsewhere(&known, &tools);
        if !self.turn.is_parked() {
            // What may run by now is started when what was under way has ended.
            return Ok(order);
        }
        self.mail().await?;
        Ok(self.turn.resume())
    }

    /// Ask about calls that were planned when nobody had to be asked.
    async fn ask_leave(&mut self) -> Result<(), Broken> {
        let mut asked = Vec::new();
        for one in self.turn.waiting() {
            let known = self.round.approvals.contains_key(&one.position);
            if one.awaits == Awaits::Approval && !known {
                asked.push(self.approval(one.call, one.position, Some(one.awaits)));
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        self.recorder.ask(&asked).await?;
        let records = asked.iter().map(|one| (one.position, (one.id, one.shown)));
        self.round.approvals.extend(records);
        Ok(())
    }

    /// The approvals that calls of this round wait for.
    async fn approvals(&self) -> Result<Vec<Approval>, Broken> {
        let waiting = self.turn.waiting();
        let wanted: Vec<_> = waiting
            .iter()
            .filter_map(|one| Some(self.round.approvals.get(&one.position)?.0))
            .collect();
        let mut found = Vec::new();
        let home = self.recorder.home();
        let filter = ApprovalFilter {
            thread: Some(self.job.thread.id.clone()),
            waiting: false,
        };
        let mut after = None;
        while found.len() < wanted.len() {
            let page = home
                .store
                .approvals(&home.scope, &filter, after, 100)
                .await?;
            found.extend(
                page.found
                    .into_iter()
                    .filter(|one| wanted.contains(&one.id)),
            );
            after = match page.next {
                Some(next) => Some(next),
                None => break,
            };
        }
        Ok(found)
    }

    /// Record the word of whoever was asked, before it counts. What was said first stands.
    async fn word(
        &mut self,
        position: u32,
        resolution: Resolution,
        known: &[Approval],
    ) -> Result<Resolution, Broken> {
        let Some(approval) = self.approval_of(position, known) else {
            return Ok(resolution);
        };
        let (decision, reason) = match &resolution {
            Resolution::Approved(_) => (Decision::Approved, None),
            Resolution::Rejected { reason } => (Decision::Denied, reason.clone()),
            Resolution::Expired if is_answered(approval) => {
                return Err(self.answered_before(position));
            }
            Resolution::Expired | Resolution::Result { .. } => return Ok(resolution),
        };
        if is_answered(approval) {
            return self.same_word(position, resolution, approval);
        }
        let answer = Answer {
            approval: approval.id,
            shown: approval.shown,
            decision,
            by: self.agent.name.clone(),
            reason: reason.filter(|reason| !reason.trim().is_empty()),
        };
        let home = self.recorder.home();
        let stored = home.sure(|| home.store.answer(&home.scope, &answer)).await;
        match stored {
            Ok(_) => Ok(resolution),
            // Somebody was faster.
            Err(Error::NotAnswerable {
                why: Unanswerable::Answered,
                ..
            }) => {
                let now = self.approvals().await?;
                match self.approval_of(position, &now) {
                    Some(approval) => self.same_word(position, resolution, approval),
                    None => Err(self.answered_before(position)),
                }
            }
            Err(error @ Error::NotAnswerable { .. }) => Err(Broken::Run(RunError::Store(error))),
            Err(error) => Err(error.into()),
        }
    }

    /// The word that an approval has, if this is it.
    fn same_word(
        &self,
        position: u32,
        resolution: Resolution,
        approval: &Approval,
    ) -> Result<Resolution, Broken> {
        match (approval.state, resolution) {
            (ApprovalState::Approved | ApprovalState::Used, Resolution::Approved(verdict)) => {
                Ok(Resolution::Approved(verdict))
            }
            (ApprovalState::Denied, Resolution::Rejected { .. }) => Ok(Resolution::Rejected {
                reason: approval.reason.clone(),
            }),
            _ => Err(self.answered_before(position)),
        }
    }

    fn answered_before(&self, position: u32) -> Broken {
        let call = self.turn.call(position);
        Broken::Run(RunError::AlreadyAnswered {
            call: call.map(|call| call.call.to_string()).unwrap_or_default(),
        })
    }

    fn approval_of<'k>(&self, position: u32, known: &'k [Approval]) -> Option<&'k Approval> {
        let (id, _): &(_, Shown) = self.round.approvals.get(&position)?;
        known.iter().find(|one| one.id == *id)
    }

    /// Take in what was answered in other places, and what nobody answered in time.
    fn heard_elsewhere(&mut self, known: &[Approval], tools: &crate::tool::ToolSet) {
        let waiting: Vec<(u32, Awaits)> = self
            .turn
            .waiting()
            .iter()
            .map(|one| (one.position, one.awaits))
            .collect();
        for (position, awaits) in waiting {
            if awaits == Awaits::Result {
                continue;
            }
            let Some(approval) = self.approval_of(position, known) else {
                continue;
            };
            let resolution = match approval.state {
                ApprovalState::Approved | ApprovalState::Used => {
                    let (verdict, ready) = judge::approved(tools, self.turn.call(position));
                    if let Some(ready) = ready {
                        self.prepared.insert(position, ready);
                    }
                    Resolution::Approved(verdict)
                }
                ApprovalState::Denied => Resolution::Rejected {
                    reason: approval.reason.clone(),
                },
                ApprovalState::Expired => Resolution::Expired,
                ApprovalState::Waiting | ApprovalState::Withdrawn => continue,
            };
            let _ = self.turn.resolve(position, resolution);
        }
    }

    /// Nothing was said that fits: the run waits on as it was.
    async fn put_down(mut self, error: RunError) -> Result<Outcome, RunFailed> {
        let parked = self.recorder.park().await;
        if let Err(second) = parked {
            tracing::warn!(run = %self.run, error = %second, "a run could not be parked again");
        }
        let stop = StopReason::Failed;
        self.telling.stored();
        self.telling.say_unstored(RunEvent::Ended { stop });
        let outcome = self.leave(StopReason::Parked);
        Err(RunFailed {
            outcome: Box::new(Outcome { stop, ..outcome }),
            source: error,
        })
    }
}

fn is_answered(approval: &Approval) -> bool {
    match approval.state {
        ApprovalState::Approved | ApprovalState::Denied | ApprovalState::Used => true,
        ApprovalState::Waiting | ApprovalState::Expired | ApprovalState::Withdrawn => false,
    }
}

/// Begin a run that adopts the journal of one that failed.
async fn adopted(
    agent: Arc<Inner>,
    job: Job,
    options: RunOptions,
    loaded: Loaded,
    replies: &[(CallId, Reply)],
) -> Result<Outcome, RunFailed> {
    let fresh = agent.ids.run();
    let nothing = |job: &Job, loaded: Loaded| {
        job.thread.put_back(loaded);
        let thread = job.id().clone();
        refused(fresh, job, RunError::NothingToResume { thread })
    };
    let stray = |job: &Job, loaded: Loaded, (call, _): &(CallId, Reply)| {
        job.thread.put_back(loaded);
        let error = RunError::NotPending {
            call: call.to_string(),
            pending: Vec::new(),
        };
        refused(fresh, job, error)
    };
    if loaded.opened.is_none() {
        return Err(match replies.first() {
            Some(reply) => stray(&job, loaded, reply),
            None => nothing(&job, loaded),
        });
    }
    let home = job.thread.home.clone();
    let newest = match newest(&job).await {
        Ok(newest) => newest,
        Err(error) => return Err(refused(fresh, &job, RunError::Store(error))),
    };
    let failed = newest.filter(|run| {
        run.kind == RunKind::Turn && run.state == RunState::Failed && run.next_step > 0
    });
    let Some(failed) = failed else {
        return Err(match replies.first() {
            Some(reply) => stray(&job, loaded, reply),
            None => nothing(&job, loaded),
        });
    };
    let journal = match home.store.journal(&home.scope, failed.id).await {
        Ok(journal) => journal,
        Err(error) => return Err(refused(fresh, &job, RunError::Store(error))),
    };
    let mode = journal.run.mode;
    let planned = Plan::resumed(&agent, options, journal.request.as_ref(), mode);
    let mut plan = match planned {
        Ok(plan) => plan,
        Err(error) => return Err(refused(fresh, &job, error)),
    };
    plan.layered(&agent);
    // Whoever tries again may say again what was said before.
    for reply in replies {
        if let Err(error) = judge::said_before(&journal, &plan.tools, &[], reply) {
            job.thread.put_back(loaded);
            return Err(refused(fresh, &job, error));
        }
    }
    let place = Place {
        branch: loaded.at_node.is_some(),
        loaded,
    };
    let queued = match super::enter::waiting(&job, &place.loaded).await {
        Ok(queued) => queued,
        Err(error) => return Err(refused(fresh, &job, RunError::Store(error))),
    };
    let said = Said {
        adopted: Some(left(&journal)),
        queued,
        input: Vec::new(),
        key: None,
    };
    let begun = super::enter::begin(&agent, &job, fresh, plan, place, said).await;
    match begun {
        Ok(Entered::Begun(driver, _)) => {
            let mut driver = *driver;
            let order = driver.turn.adopt();
            let worked = driver.work(order).await;
            driver.end(worked).await
        }
        Ok(Entered::Repeated(_)) => Err(refused(fresh, &job, RunError::Cancelled)),
        Ok(Entered::Moved(_)) => {
            let thread = job.id().clone();
            Err(refused(fresh, &job, RunError::NothingToResume { thread }))
        }
        Err(error) => Err(refused(fresh, &job, error)),
    }
}

/// The newest run of the thread.
async fn newest(job: &Job) -> throughline_store::Result<Option<Run>> {
    let home = &job.thread.home;
    let filter = RunFilter {
        thread: Some(job.id().clone()),
        states: Vec::new(),
    };
    let mut listing = home.store.runs(&home.scope, &filter, None, 1).await?;
    Ok(listing.found.pop())
}

/// What a failed run left of the node that it published: results that no model call took. The head
/// waits for them, so whoever goes on there says them first.
pub(super) async fn left_open(
    job: &Job,
    loaded: &Loaded,
) -> throughline_store::Result<Option<Adopted>> {
    let Some(opened) = &loaded.opened else {
        return Ok(None);
    };
    let Some(tip) = opened.tip.filter(|tip| tip.open && !tip.unsent) else {
        return Ok(None);
    };
    let home = &job.thread.home;
    let journal = home.store.journal(&home.scope, tip.node.run).await?;
    let ends_here = journal.run.published == Some(tip.node);
    Ok(
        (journal.run.state == RunState::Failed && ends_here).then(|| Adopted {
            own: false,
            ..left(&journal)
        }),
    )
}

/// What a failed run left that is no history.
fn left(journal: &Journal) -> Adopted {
    let published = published(journal);
    let entries: Vec<&Entry> = journal.entries.iter().skip(published).collect();
    let mut items = Vec::new();
    let mut messages = Vec::new();
    for entry in &entries {
        items.extend(entry.item_refs().map(NewItem::Again));
        messages.push(entry.message.clone());
    }
    // Calls that never got a result are answered here.
    let open = journal
        .calls
        .iter()
        .filter(|call| call.state != CallState::Done && call.taken_by.is_none());
    let mut closed = Vec::new();
    for call in open {
        let outcome = match call.state {
            CallState::Intent => Ending::Unknown,
            _ => Ending::Cancelled,
        };
        let Some(asked) = called(journal, &call.call) else {
            continue;
        };
        let ended = crate::agent::turn::closed(outcome);
        closed.push(asked.answer(ended.outcome, ended.output).into());
    }
    if !closed.is_empty() {
        let mut message = Message::new(Role::Tool, closed);
        message.source = Some(Source::Repair);
        NewItem::push(&mut items, &message, 0);
        messages.push(message);
    }
    let last = journal.steps.last();
    let note = last.and_then(|step| StepNote::read(step.note.as_ref()).ok());
    let kept = note.and_then(|note| note.service).zip(last);
    Adopted {
        items,
        messages,
        kept: kept.map(|(id, step)| {
            let until = step.first + step.items;
            let sent = entries.iter().filter(|entry| entry.at.no < until);
            (id, sent.count())
        }),
        own: true,
    }
}

fn called<'j>(journal: &'j Journal, id: &str) -> Option<&'j throughline_model::ToolCall> {
    let contents = journal
        .entries
        .iter()
        .flat_map(|entry| &entry.message.contents);
    let mut calls = contents.filter_map(|content| content.as_tool_call());
    // The newest of its id: ids may repeat, and older ones have their results.
    calls.rfind(|call| call.call.value() == id)
}

/// A run once nobody works on it any more.
pub(super) async fn waited(job: &Job, mut run: Run) -> Result<Run, RunFailed> {
    let home = &job.thread.home;
    while run.state == RunState::Running {
        tokio::select! {
            biased;
            () = job.cancel.cancelled() => return Err(refused(run.id, job, RunError::Cancelled)),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
        run = match home.store.run(&home.scope, run.id).await {
            Ok(run) => run,
            Err(error) => return Err(refused(run.id, job, RunError::Store(error))),
        };
    }
    Ok(run)
}

/// The answer of a run that was asked for twice, once it has ended.
pub(super) async fn repeated(
    agent: &Arc<Inner>,
    job: &Job,
    run: Run,
) -> Result<Outcome, RunFailed> {
    let _ = agent;
    let home = &job.thread.home;
    let run = waited(job, run).await?;
    let journal = match home.store.journal(&home.scope, run.id).await {
        Ok(journal) => journal,
        Err(error) => return Err(refused(run.id, job, RunError::Store(error))),
    };
    let (stop, finish) = ended(run.note.as_ref());
    let stop = stop.unwrap_or(match run.state {
        RunState::Parked => StopReason::Parked,
        RunState::Cancelled | RunState::Discarded => StopReason::Cancelled,
        RunState::Failed | RunState::Interrupted | RunState::Held => StopReason::Failed,
        RunState::Running | RunState::Committed | RunState::Unpublished => StopReason::Done,
    });
    let mut usage = RunUsage::default();
    for entry in &journal.entries {
        if let Some(reported) = &entry.message.usage {
            usage.add(Some(reported));
        }
    }
    if let Some(events) = &job.events {
        drop(events.send((None, RunEvent::Ended { stop })));
    }
    let pending = match run.state {
        RunState::Parked => pending_of(&journal),
        _ => Vec::new(),
    };
    Ok(Outcome {
        run: run.id,
        thread: run.thread,
        stop,
        messages: journal
            .entries
            .into_iter()
            .map(|entry| entry.message)
            .collect(),
        usage,
        pending,
        finish,
        steps: Vec::new(),
    })
}
