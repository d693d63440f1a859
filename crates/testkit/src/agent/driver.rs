//! The agent: it begins runs, resumes those of other processes, and reports what it does.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use throughline_store::{
    Anchor, Answer, ApprovalFilter, ApprovalState, Begin, Begun, CallResult, CallState, Claim,
    Decision, Effect, End, Ending, Error, Execution, Flush, Idempotency, Journal, Lease, Mode,
    NewApproval, NewItem, NewThread, NodeRef, PlannedCall, Publish, RemoteCall, Run, RunFilter,
    RunId, RunState, Step, StepNode, Stopped, Store, StoredEvent, TenantScope, ThreadId,
    arguments_digest,
};

use super::{AgentEvent, DispatchMode, Script};
use crate::Rng;
use crate::record::{answered, assistant, calling, user};

/// How often an operation is sent again when its outcome is unknown.
const AGAIN: usize = 4;

/// Receives the events of an agent.
pub trait EventSink: Send + Sync {
    /// Receives an event.
    fn event(&self, event: AgentEvent);

    /// Whether other agents may act between its operations.
    fn yields(&self) -> bool {
        false
    }
}

/// Why an agent stops an action.
#[derive(Debug)]
pub enum Halt {
    /// Refused as documented: another process was faster, or took the run over.
    Refused(Error),
    /// The storage failed repeatedly.
    Failed(Error),
}

/// A point at which other agents may act.
#[derive(Debug, Default)]
struct Between(bool);

impl Future for Between {
    type Output = ();

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    }
}

/// An agent.
pub struct Driver<T> {
    store: Store,
    scope: TenantScope,
    sink: T,
    mode: Option<Mode>,
    /// Runs that this process owns and no longer works on, because the storage failed.
    mine: Mutex<HashMap<RunId, Lease>>,
    done: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// A run in progress.
struct Held {
    lease: Lease,
    script: Script,
    next_event: u64,
}

impl<T: EventSink> Driver<T> {
    /// An agent on a store, in one mode or in both.
    pub fn new(store: Store, mode: Option<Mode>, sink: T) -> Self {
        Self {
            store,
            scope: TenantScope::local(),
            sink,
            mode,
            mine: Mutex::default(),
            done: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Its counts so far.
    pub fn count(&self) -> AgentEvent {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AgentEvent::Count {
            done: get(&self.done),
            refused: get(&self.refused),
            failed: get(&self.failed),
        }
    }

    /// Its store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    fn report(&self, event: AgentEvent) {
        self.sink.event(event);
    }

    fn mine(&self) -> MutexGuard<'_, HashMap<RunId, Lease>> {
        self.mine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pass(&self) {
        if self.sink.yields() {
            Between::default().await;
        }
    }

    /// Does an operation, and sends it again while its outcome is unknown.
    async fn operation<V>(&self, operation: impl AsyncFn() -> Result<V, Error>) -> Result<V, Halt> {
        let mut again = 0;
        loop {
            self.pass().await;
            let outcome = operation().await;
            self.pass().await;
            let error = match outcome {
                Ok(value) => {
                    self.done.fetch_add(1, Ordering::Relaxed);
                    return Ok(value);
                }
                Err(error) => error,
            };
            match error {
                Error::Busy { .. }
                | Error::HeadMoved { .. }
                | Error::Fenced { .. }
                | Error::NotFound { .. }
                | Error::WrongState { .. }
                | Error::NotFinal { .. }
                | Error::NotAnswerable { .. } => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    return Err(Halt::Refused(error));
                }
                Error::Io { .. } | Error::Locked | Error::Full => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    again += 1;
                    if again > AGAIN {
                        return Err(Halt::Failed(error));
                    }
                }
                other => {
                    let what = format!("{other} ({other:?}) at try {again}");
                    self.report(AgentEvent::Trouble { what });
                    return Err(Halt::Failed(other));
                }
            }
        }
    }

    /// One action on a thread: resumes an unsettled run there, or takes a new turn.
    pub async fn visit(&self, name: &str, rng: &mut Rng) -> Result<(), Halt> {
        let Ok(id) = ThreadId::new(name) else {
            return Ok(());
        };
        let new = NewThread::new(id.clone());
        let opened = self
            .operation(async || self.store.open_or_create(&self.scope, &new, 4).await)
            .await?;
        if let Some(run) = opened.unsettled {
            if rng.chance(0.1) {
                let cancel = async || self.store.cancel(&self.scope, run.id).await;
                self.operation(cancel).await?;
            }
            return self.go_on(&run).await;
        }
        let at = match opened.tip {
            Some(tip) if rng.chance(0.15) => Anchor::Node(NodeRef::Node(tip.node)),
            _ => Anchor::Head {
                thread: id,
                expected: opened.thread.version,
            },
        };
        self.turn(name, at, rng).await
    }

    /// Settles the runs of other processes, and begins none. Returns how many there were.
    ///
    /// # Errors
    ///
    /// When another process was faster, or the storage failed.
    pub async fn drain(&self) -> Result<usize, Halt> {
        let states = RunState::ALL.into_iter();
        let filter = RunFilter {
            states: states.filter(|state| !state.is_settled()).collect(),
            ..RunFilter::default()
        };
        let listed = self
            .operation(async || self.store.runs(&self.scope, &filter, None, 1000).await)
            .await?;
        for run in &listed.found {
            self.go_on(run).await?;
        }
        Ok(listed.found.len())
    }

    /// Deletes a thread and purges.
    pub async fn delete(&self, name: &str) -> Result<(), Halt> {
        let Ok(id) = ThreadId::new(name) else {
            return Ok(());
        };
        self.report(AgentEvent::Deleting {
            thread: name.to_owned(),
        });
        let delete = async || match self.store.delete(&self.scope, &id).await {
            Err(Error::NotFound { .. }) => Ok(()),
            other => other,
        };
        self.operation(delete).await?;
        self.report(AgentEvent::Deleted {
            thread: name.to_owned(),
        });
        self.operation(async || self.store.purge(50).await).await?;
        Ok(())
    }

    async fn turn(&self, name: &str, at: Anchor, rng: &mut Rng) -> Result<(), Halt> {
        let run = self.store.ids().run();
        let mode = self.mode.unwrap_or(if rng.bool() {
            Mode::PerRun
        } else {
            Mode::PerCall
        });
        let script = Script::of(run, mode);
        let key = format!("key_{}", run.to_hex());
        let begin = Begin {
            mode,
            key: Some(Idempotency {
                key: key.clone(),
                request: *run.as_bytes(),
            }),
            events: Some(events(0, 2)),
            ..Begin::new(run, at, NewItem::of(&[user(&script.ask)]))
        };
        self.report(AgentEvent::Trying { key, run });
        let begun = self
            .operation(async || self.store.begin(&self.scope, &begin).await)
            .await?;
        let started = match begun {
            Begun::Started(started) => started,
            Begun::Repeated(run) => {
                let what = format!("a new key found {}", run.id);
                self.report(AgentEvent::Trouble { what });
                return Ok(());
            }
        };
        self.report(AgentEvent::Begun {
            run,
            thread: name.to_owned(),
            mode,
        });
        self.work(started.lease).await
    }

    /// Resumes a run of another process.
    async fn go_on(&self, run: &Run) -> Result<(), Halt> {
        // Removed, so that no two agents of this process work on it.
        let known = self.mine().remove(&run.id);
        let lease = match (run.state, known) {
            (RunState::Running, Some(lease)) => lease,
            (RunState::Interrupted, _) => self.claim(run, Claim::Orphan).await?,
            (RunState::Held, _) => self.claim(run, Claim::Settle).await?,
            (RunState::Parked, _) => {
                self.answer_all(run).await?;
                self.claim(run, Claim::Parked).await?
            }
            // Another process works on it.
            _ => return Ok(()),
        };
        self.work(lease).await
    }

    async fn claim(&self, run: &Run, claim: Claim) -> Result<Lease, Halt> {
        let started = self
            .operation(async || {
                self.store
                    .claim(&self.scope, run.id, run.epoch, claim)
                    .await
            })
            .await?;
        self.report(AgentEvent::Claimed { run: run.id });
        Ok(started.lease)
    }

    /// Answers the approvals of a run; every fourth call is denied.
    async fn answer_all(&self, run: &Run) -> Result<(), Halt> {
        let filter = ApprovalFilter {
            thread: Some(run.thread.clone()),
            ..ApprovalFilter::default()
        };
        let listed = self
            .operation(async || self.store.approvals(&self.scope, &filter, None, 100).await)
            .await?;
        for approval in listed.found {
            if approval.call.run != run.id || approval.state != ApprovalState::Waiting {
                continue;
            }
            let answer = Answer {
                approval: approval.id,
                shown: approval.shown,
                decision: if approval.id.as_bytes()[15] % 4 == 0 {
                    Decision::Denied
                } else {
                    Decision::Approved
                },
                by: "agent".to_owned(),
                reason: None,
            };
            self.operation(async || self.store.answer(&self.scope, &answer).await)
                .await?;
        }
        Ok(())
    }

    /// Works on a run until it is settled, parked or taken over.
    async fn work(&self, lease: Lease) -> Result<(), Halt> {
        let done = self.rounds(lease).await;
        if let Err(Halt::Failed(_)) = &done {
            // Its progress is unknown: it is resumed later.
            self.mine().insert(lease.run, lease);
        }
        done
    }

    async fn journal(&self, run: RunId) -> Result<Journal, Halt> {
        self.operation(async || self.store.journal(&self.scope, run).await)
            .await
    }

    async fn rounds(&self, lease: Lease) -> Result<(), Halt> {
        let journal = self.journal(lease.run).await?;
        let mut held = Held {
            lease,
            script: Script::of(lease.run, journal.run.mode),
            next_event: journal.run.next_event,
        };
        if journal.run.cancelling {
            return self.close(&held, &journal).await;
        }
        let mut next = journal.run.next_step;
        let mut remote = journal.remote.clone();
        let open = journal
            .calls
            .iter()
            .any(|call| call.state != CallState::Done);
        if open && !self.calls(&mut held, &journal, None).await? {
            return Ok(());
        }
        while (next as usize) < held.script.rounds.len() {
            self.flush(&mut held).await?;
            self.model(&held, next, remote.take()).await?;
            let fresh = self.step(&mut held, next).await?;
            if !self.calls(&mut held, &fresh, Some(next)).await? {
                return Ok(());
            }
            next += 1;
        }
        if !held.script.fails {
            self.model(&held, next, remote.take()).await?;
        }
        self.finish(&held, next).await
    }

    /// Calls the model for a step. A remote call that is under way is not made again: its answer
    /// follows from the run.
    async fn model(&self, held: &Held, step: u32, remote: Option<RemoteCall>) -> Result<(), Halt> {
        let run = held.lease.run;
        let call = Script::remote_call(run, step);
        if let Some(found) = remote {
            if found != call {
                let what = format!("{run} waits for {found:?} at step {step}");
                self.report(AgentEvent::Trouble { what });
            }
            return Ok(());
        }
        self.report(AgentEvent::Model { run, step });
        if held.script.remote {
            let record = async || {
                let store = &self.store;
                store.remote_call(&self.scope, held.lease, &call).await
            };
            self.operation(record).await?;
            self.report(AgentEvent::RemoteCall { run, step });
        }
        Ok(())
    }

    async fn flush(&self, held: &mut Held) -> Result<(), Halt> {
        let flush = events(held.next_event, 5);
        let (run, end) = (held.lease.run, flush.end());
        self.operation(async || self.store.flush(&self.scope, held.lease, &flush).await)
            .await?;
        held.next_event = end;
        self.report(AgentEvent::Events { run, end });
        Ok(())
    }

    /// Records what the model said, and its calls.
    async fn step(&self, held: &mut Held, no: u32) -> Result<Journal, Halt> {
        let run = held.lease.run;
        let round = &held.script.rounds[no as usize];
        let ids: Vec<String> = round.iter().map(|call| call.id.clone()).collect();
        let planned = round.iter().map(|call| PlannedCall {
            call: call.id.clone(),
            tool: "get_tide".to_owned(),
            effect: call.effect,
            state: call.state(),
        });
        let approvals = (0u32..)
            .zip(round)
            .filter(|(_, call)| call.dispatch == DispatchMode::Approved);
        let step = Step {
            no,
            items: NewItem::of(&[calling(&ids)]),
            calls: planned.collect(),
            approvals: approvals
                .map(|(position, call)| NewApproval {
                    id: self.store.ids().approval(),
                    step: no,
                    position,
                    shown: arguments_digest("get_tide", &call.id),
                    expires: None,
                    detail: None,
                })
                .collect(),
            events: Some(events(held.next_event, 3)),
            node: (held.script.mode == Mode::PerCall).then(StepNode::default),
            ..Step::default()
        };
        self.operation(async || self.store.step(&self.scope, held.lease, &step).await)
            .await?;
        held.next_event += 3;
        self.report(AgentEvent::Step { run, step: no });
        self.journal(run).await
    }

    /// Handles the calls without a result. Returns false when the run had to be parked. `stepped`
    /// is the step that was just written here.
    async fn calls(
        &self,
        held: &mut Held,
        journal: &Journal,
        stepped: Option<u32>,
    ) -> Result<bool, Halt> {
        let mut waits = false;
        for call in &journal.calls {
            if call.state == CallState::Done {
                continue;
            }
            waits |= !self.call(held, call, stepped == Some(call.at.step)).await?;
        }
        if !waits {
            return Ok(true);
        }
        let flush = events(held.next_event, 1);
        self.operation(async || self.store.park(&self.scope, held.lease, Some(&flush)).await)
            .await?;
        self.report(AgentEvent::Parked {
            run: held.lease.run,
        });
        Ok(false)
    }

    /// Handles one call. Returns false when it has to wait.
    async fn call(&self, held: &Held, call: &Execution, fresh: bool) -> Result<bool, Halt> {
        let mut intends = false;
        let mut dispatches = true;
        match call.state {
            CallState::Planned => intends = call.effect != Effect::ReadOnly,
            // Whether its owner dispatched it is unknown, unless the intent was written here, with
            // the step. An intent that was written separately is of a process that took the run
            // over.
            CallState::Intent => {
                let round = held.script.rounds.get(call.at.step as usize);
                let planned = round.and_then(|round| round.get(call.at.position as usize));
                let own = fresh
                    && planned.is_some_and(|planned| planned.dispatch == DispatchMode::WithStep);
                dispatches = own || call.effect != Effect::Once;
            }
            CallState::Approval => match self.decision(call).await? {
                Some(ApprovalState::Approved) => intends = true,
                Some(ApprovalState::Denied) => dispatches = false,
                _ => return Ok(false),
            },
            CallState::Done | CallState::Client | CallState::Taken => return Ok(true),
        }
        let (run, step, position) = (call.at.run, call.at.step, call.at.position);
        if intends {
            self.operation(async || {
                self.store
                    .intend(&self.scope, held.lease, step, &[position])
                    .await
            })
            .await?;
        }
        if dispatches {
            self.report(AgentEvent::Tool {
                run,
                step,
                position,
                effect: call.effect,
                key: call.key.clone(),
            });
            self.pass().await;
        }
        let result = CallResult::new(step, position, &answered(&call.call));
        self.operation(async || {
            self.store
                .results(&self.scope, held.lease, std::slice::from_ref(&result))
                .await
        })
        .await?;
        self.report(AgentEvent::Result {
            run,
            step,
            position,
        });
        Ok(true)
    }

    async fn decision(&self, call: &Execution) -> Result<Option<ApprovalState>, Halt> {
        let filter = ApprovalFilter::default();
        let listed = self
            .operation(async || {
                self.store
                    .approvals(&self.scope, &filter, None, 10_000)
                    .await
            })
            .await?;
        let found = listed
            .found
            .into_iter()
            .find(|approval| Some(approval.id) == call.approval);
        Ok(found.map(|approval| approval.state))
    }

    async fn finish(&self, held: &Held, step: u32) -> Result<(), Halt> {
        let run = held.lease.run;
        if held.script.fails {
            let end = End {
                how: Stopped::Failed,
                note: None,
                events: None,
            };
            self.operation(async || self.store.end(&self.scope, held.lease, &end).await)
                .await?;
            self.report(AgentEvent::Failed { run });
            return Ok(());
        }
        let publish = Publish {
            events: Some(events(held.next_event, 1)),
            ..Publish::new(step, NewItem::of(&[assistant(&held.script.answer)]))
        };
        self.operation(async || self.store.publish(&self.scope, held.lease, &publish).await)
            .await?;
        self.report(AgentEvent::Done { run });
        Ok(())
    }

    /// Closes a run that is to be cancelled.
    async fn close(&self, held: &Held, journal: &Journal) -> Result<(), Halt> {
        let run = held.lease.run;
        let waiting = journal
            .calls
            .iter()
            .filter(|call| call.state != CallState::Done);
        let publish = Publish {
            results: waiting
                .map(|call| CallResult::new(call.at.step, call.at.position, &answered(&call.call)))
                .collect(),
            ending: Ending::Cancelled,
            ..Publish::new(
                journal.run.next_step,
                NewItem::of(&[assistant(&format!("{} closed", run.to_hex()))]),
            )
        };
        self.operation(async || self.store.publish(&self.scope, held.lease, &publish).await)
            .await?;
        self.report(AgentEvent::Closed { run });
        Ok(())
    }
}

fn events(first: u64, count: usize) -> Flush {
    let event = |n: usize| StoredEvent {
        kind: 9,
        body: format!("{}", first + n as u64).into_bytes(),
    };
    Flush::new(first, &(0..count).map(event).collect::<Vec<_>>())
}
