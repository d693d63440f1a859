//! Writes the journal of a run.
//!
//! Items, results and events are buffered here and go out with the next write that can carry them.
//! No call is dispatched, and no event sent, before the write that it depends on is committed.

use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_store::{
    CallResult, End, Ending, Error, ErrorKind, EventNo, Flush, Lease, Mode, NewApproval, NewItem,
    PlannedCall, Publish, Published, QueueNo, RemoteCall, Result, Started, State, Step, StepNode,
    Stopped, StoredEvent, Through,
};

use super::scoped_store::ScopedStore;

/// The journal writer of one run.
pub(crate) struct Recorder {
    home: ScopedStore,
    lease: Lease,
    pub(crate) mode: Mode,
    next_step: u32,
    next_event: EventNo,
    items: Vec<NewItem>,
    results: Vec<CallResult>,
    dequeue: Vec<QueueNo>,
    events: Vec<StoredEvent>,
}

/// How a published run ends.
pub(crate) struct Closing {
    pub(crate) through: Through,
    pub(crate) ending: Ending,
    pub(crate) state: Option<State>,
    pub(crate) note: RawJson,
}

impl Recorder {
    pub(crate) fn new(home: ScopedStore, started: Started, mode: Mode, at: (u32, EventNo)) -> Self {
        Self {
            home,
            lease: started.lease,
            mode,
            next_step: at.0,
            next_event: at.1,
            items: Vec::new(),
            results: Vec::new(),
            dequeue: Vec::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn home(&self) -> &ScopedStore {
        &self.home
    }

    /// The number of the next step.
    pub(crate) fn next_step(&self) -> u32 {
        self.next_step
    }

    /// Buffers a message for the next step.
    pub(crate) fn say(&mut self, message: &Message) {
        NewItem::push(&mut self.items, message);
    }

    /// Whether messages are buffered.
    pub(crate) fn has_items(&self) -> bool {
        !self.items.is_empty()
    }

    /// The queued messages that the next step delivers.
    pub(crate) fn delivered(&self) -> &[QueueNo] {
        &self.dequeue
    }

    /// Writes the handle of a model call that is under way.
    pub(crate) async fn remote_call(&self, call: &RemoteCall) -> Result<()> {
        let ScopedStore { store, scope, .. } = &self.home;
        self.home
            .retry_until_known(|| store.remote_call(scope, self.lease, call))
            .await
    }

    /// Drops the buffered messages, and leaves the delivered ones in the queue.
    pub(crate) fn forget_messages(&mut self) {
        self.items.clear();
        self.dequeue.clear();
    }

    /// Buffers a result for the next write of results.
    pub(crate) fn result(&mut self, result: CallResult) {
        self.results.push(result);
    }

    /// Marks a queued message as delivered by the next step.
    pub(crate) fn deliver(&mut self, no: QueueNo) {
        if !crate::trials::planted("loop-delivers-twice") {
            self.dequeue.push(no);
        }
    }

    /// Buffers an event for the next write that carries events.
    pub(crate) fn event(&mut self, event: StoredEvent) {
        self.events.push(event);
    }

    fn take_events(&mut self) -> Option<Flush> {
        let events = std::mem::take(&mut self.events);
        let flush = (!events.is_empty()).then(|| Flush::new(self.next_event, &events));
        self.next_event += events.len() as u64;
        flush
    }

    /// Writes a step: its messages and the calls that were planned.
    pub(crate) async fn step(
        &mut self,
        calls: Vec<PlannedCall>,
        approvals: Vec<NewApproval>,
        note: Option<RawJson>,
        node: Option<StepNode>,
    ) -> Result<Option<Published>> {
        let step = Step {
            no: self.next_step,
            items: std::mem::take(&mut self.items),
            calls,
            approvals,
            note,
            events: self.take_events(),
            node,
            dequeue: std::mem::take(&mut self.dequeue),
        };
        let ScopedStore { store, scope, .. } = &self.home;
        let published = self
            .home
            .retry_until_known(|| store.step(scope, self.lease, &step))
            .await?;
        self.next_step += 1;
        Ok(published)
    }

    /// Writes that calls are about to be dispatched.
    pub(crate) async fn intend(&self, step: u32, positions: &[u32]) -> Result<()> {
        let ScopedStore { store, scope, .. } = &self.home;
        self.home
            .retry_until_known(|| store.intend(scope, self.lease, step, positions))
            .await
    }

    /// Writes that planned calls need an approval after all.
    pub(crate) async fn ask(&self, approvals: &[NewApproval]) -> Result<()> {
        let ScopedStore { store, scope, .. } = &self.home;
        self.home
            .retry_until_known(|| store.ask(scope, self.lease, approvals))
            .await
    }

    /// Writes the buffered results.
    pub(crate) async fn results(&mut self) -> Result<()> {
        if self.results.is_empty() {
            return Ok(());
        }
        let results = std::mem::take(&mut self.results);
        let ScopedStore { store, scope, .. } = &self.home;
        let written = self
            .home
            .retry_until_known(|| store.results(scope, self.lease, &results))
            .await;
        if let Err(error) = &written
            && is_refused_by_disk(error)
        {
            self.keep_results(results);
        }
        written
    }

    /// Keeps results of tools that have run, so that a worker of this process that resumes the run
    /// does not run them again.
    pub(crate) fn keep_results(&self, results: Vec<CallResult>) {
        if !crate::trials::planted("loop-results-dropped") {
            self.home.store.keep_unwritten(self.lease.run, results);
        }
    }

    /// Writes the buffered events.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        let Some(events) = self.take_events() else {
            return Ok(());
        };
        let ScopedStore { store, scope, .. } = &self.home;
        self.home
            .retry_until_known(|| store.flush(scope, self.lease, &events))
            .await
    }

    /// Publishes and ends the run.
    pub(crate) async fn publish(&mut self, closing: Closing) -> Result<Published> {
        let publish = Publish {
            step: self.next_step,
            results: std::mem::take(&mut self.results),
            items: std::mem::take(&mut self.items),
            through: closing.through,
            state: closing.state,
            ending: closing.ending,
            note: Some(closing.note),
            events: self.take_events(),
            dequeue: std::mem::take(&mut self.dequeue),
            fingerprints: Vec::new(),
        };
        let ScopedStore { store, scope, .. } = &self.home;
        let published = self
            .home
            .retry_until_known(|| store.publish(scope, self.lease, &publish))
            .await;
        if let Err(error) = &published
            && is_refused_by_disk(error)
        {
            self.keep_results(publish.results);
        }
        published
    }

    /// Parks the run.
    pub(crate) async fn park(&mut self) -> Result<()> {
        let events = self.take_events();
        let ScopedStore { store, scope, .. } = &self.home;
        self.home
            .retry_until_known(|| store.park(scope, self.lease, events.as_ref()))
            .await
    }

    /// Ends the run without publishing.
    pub(crate) async fn end(&mut self, how: Stopped, note: RawJson) -> Result<()> {
        let end = End {
            how,
            note: Some(note),
            events: self.take_events(),
        };
        let ScopedStore { store, scope, .. } = &self.home;
        self.home
            .retry_until_known(|| store.end(scope, self.lease, &end))
            .await
    }
}

/// Writes results that an earlier worker of this process could not write.
pub(crate) async fn write_unwritten(home: &ScopedStore, lease: Lease) -> Result<()> {
    let ScopedStore { store, scope, .. } = home;
    let kept = store.unwritten(lease.run);
    if kept.is_empty() {
        return Ok(());
    }
    let written = home
        .retry_until_known(|| store.results(scope, lease, &kept))
        .await;
    if let Err(error) = written {
        if is_refused_by_disk(&error) || error.kind() == ErrorKind::Fenced {
            return Err(error);
        }
        // The journal has other results by now, and they count.
        tracing::warn!(run = %lease.run, %error, "results that were kept in memory no longer fit the journal");
    }
    store.forget_unwritten(lease.run);
    Ok(())
}

/// Whether a write failed because of the storage and not because of its contents, so that the same
/// write may succeed later.
pub(crate) fn is_refused_by_disk(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Full => true,
        ErrorKind::Busy => matches!(error, Error::Locked),
        ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::Fenced
        | ErrorKind::Invalid
        | ErrorKind::Corrupt => false,
    }
}
