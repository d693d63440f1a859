//! The trait: each method takes the lock, does its work, and is done.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::PoisonError;
use std::task::Poll;

use async_trait::async_trait;
use throughline_model::json::RawJson;

use crate::{
    Answer, Append, Approval, ApprovalFilter, At, Backups, Begin, Begun, CallResult, Checked,
    Claim, ClaimInTurn, Cursor, Durability, End, Engine, Error, EventNo, FingerprintDigest,
    FingerprintMatch, Flush, Fork, Heartbeat, Idempotency, Import, Increment, ItemNo, ItemRef,
    Journal, Lease, Listing, NewApproval, NewThread, NodeId, NodeRecord, OnProgress, Opened,
    Orphan, OwnerId, Page, PageToken, Position, Profile, Publish, Published, Purged, QueueNo,
    Queued, RemoteCall, Result, Run, RunFilter, RunId, Setting, Span, Started, Step, TenantScope,
    Thread, ThreadFilter, ThreadId, ThreadPatch, TreeNode, Version, Waiter, WaiterNo, rules,
};

use super::{MAX_READ, Memory};

#[async_trait]
impl Engine for Memory {
    fn owner(&self) -> OwnerId {
        self.owner
    }

    fn seal(&self, scope: &TenantScope, purpose: &str, bytes: &[u8]) -> [u8; 16] {
        let seal = self.lock().shared.seal;
        seal.bytes(scope, purpose, bytes)
    }

    async fn open(&self, scope: &TenantScope, at: &At, window: usize) -> Result<Opened> {
        self.transaction(scope, |tx| tx.open(at, window))
    }

    async fn open_or_create(
        &self,
        scope: &TenantScope,
        thread: &NewThread,
        window: usize,
    ) -> Result<Opened> {
        self.transaction(scope, |tx| tx.open_or_create(thread, window))
    }

    async fn fork(&self, scope: &TenantScope, fork: &Fork) -> Result<Thread> {
        self.transaction(scope, |tx| tx.fork(fork))
    }

    async fn patch(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        patch: &ThreadPatch,
    ) -> Result<Thread> {
        self.transaction(scope, |tx| tx.patch(thread, patch))
    }

    async fn threads(
        &self,
        scope: &TenantScope,
        filter: &ThreadFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Thread>> {
        self.transaction(scope, |tx| tx.threads(filter, after, limit))
    }

    async fn tree(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        after: Option<NodeId>,
        limit: usize,
    ) -> Result<Vec<TreeNode>> {
        self.transaction(scope, |tx| tx.tree(thread, after, limit))
    }

    async fn node(
        &self,
        scope: &TenantScope,
        node: NodeId,
        from: ItemNo,
        limit: usize,
    ) -> Result<NodeRecord> {
        self.transaction(scope, |tx| tx.node(node, from, limit))
    }

    async fn delete(&self, scope: &TenantScope, thread: &ThreadId) -> Result<()> {
        self.transaction(scope, |tx| tx.delete(thread))
    }

    async fn read(&self, scope: &TenantScope, at: &At, span: Span, limit: usize) -> Result<Page> {
        self.transaction(scope, |tx| tx.read(at, span, limit))
    }

    async fn increment(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Increment> {
        self.transaction(scope, |tx| tx.increment(scope, thread, after, limit))
    }

    async fn cursor(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        position: Position,
    ) -> Result<Cursor> {
        self.transaction(scope, |tx| tx.cursor(scope, thread, position))
    }

    async fn changed(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        seen: Version,
    ) -> Result<Version> {
        let mut closed = self.closed.subscribe();
        let mut changes = self.transaction(scope, |tx| tx.watch(thread))?;
        // Whichever comes first; that the sender is gone means that the thread is.
        let mut moved = pin!(changes.wait_for(|version| *version != seen));
        let mut closed = pin!(closed.wait_for(|closed| *closed));
        poll_fn(|context| {
            if let Poll::Ready(version) = moved.as_mut().poll(context) {
                let version = version.map(|version| *version);
                return Poll::Ready(version.map_err(|_| rules::not_found("thread", thread)));
            }
            closed.as_mut().poll(context).map(|_| Err(Error::Closed))
        })
        .await
    }

    async fn append(&self, scope: &TenantScope, append: &Append) -> Result<Published> {
        self.transaction(scope, |tx| tx.append(append))
    }

    async fn redact(&self, scope: &TenantScope, item: ItemRef, by: &str) -> Result<()> {
        self.transaction(scope, |tx| tx.redact(item, by))
    }

    async fn begin(&self, scope: &TenantScope, begin: &Begin) -> Result<Begun> {
        self.transaction(scope, |tx| tx.begin(begin))
    }

    async fn remote_call(
        &self,
        scope: &TenantScope,
        lease: Lease,
        call: &RemoteCall,
    ) -> Result<()> {
        self.transaction(scope, |tx| tx.remote_call(lease, call))
    }

    async fn step(
        &self,
        scope: &TenantScope,
        lease: Lease,
        step: &Step,
    ) -> Result<Option<Published>> {
        self.transaction(scope, |tx| tx.step(lease, step))
    }

    async fn intend(
        &self,
        scope: &TenantScope,
        lease: Lease,
        step: u32,
        positions: &[u32],
    ) -> Result<()> {
        self.transaction(scope, |tx| tx.intend(lease, step, positions))
    }

    async fn ask(
        &self,
        scope: &TenantScope,
        lease: Lease,
        approvals: &[NewApproval],
    ) -> Result<()> {
        self.transaction(scope, |tx| tx.ask(lease, approvals))
    }

    async fn results(
        &self,
        scope: &TenantScope,
        lease: Lease,
        results: &[CallResult],
    ) -> Result<()> {
        self.transaction(scope, |tx| tx.results(lease, results))
    }

    async fn flush(&self, scope: &TenantScope, lease: Lease, events: &Flush) -> Result<()> {
        self.transaction(scope, |tx| tx.flush(lease, events))
    }

    async fn publish(
        &self,
        scope: &TenantScope,
        lease: Lease,
        publish: &Publish,
    ) -> Result<Published> {
        self.transaction(scope, |tx| tx.publish(lease, publish))
    }

    async fn park(&self, scope: &TenantScope, lease: Lease, events: Option<&Flush>) -> Result<()> {
        self.transaction(scope, |tx| tx.park(lease, events))
    }

    async fn end(&self, scope: &TenantScope, lease: Lease, end: &End) -> Result<()> {
        self.transaction(scope, |tx| tx.end(lease, end))
    }

    async fn cancel(&self, scope: &TenantScope, run: RunId) -> Result<Run> {
        self.transaction(scope, |tx| tx.cancel(run))
    }

    async fn claim(
        &self,
        scope: &TenantScope,
        run: RunId,
        seen: u32,
        claim: Claim,
    ) -> Result<Started> {
        self.transaction(scope, |tx| tx.claim(run, seen, claim))
    }

    async fn claim_in_turn(&self, scope: &TenantScope, claim: &ClaimInTurn) -> Result<Started> {
        self.transaction(scope, |tx| tx.claim_in_turn(claim))
    }

    async fn run(&self, scope: &TenantScope, run: RunId) -> Result<Run> {
        self.transaction(scope, |tx| tx.run(run))
    }

    async fn run_by_key(&self, scope: &TenantScope, key: &Idempotency) -> Result<Option<Run>> {
        self.transaction(scope, |tx| match tx.known_key(Some(key))? {
            Some(run) => tx.run(run).map(Some),
            None => Ok(None),
        })
    }

    async fn find_fingerprints(
        &self,
        scope: &TenantScope,
        digests: &[FingerprintDigest],
    ) -> Result<Vec<FingerprintMatch>> {
        self.transaction(scope, |tx| tx.find_fingerprints(digests))
    }

    async fn cancelling(&self, scope: &TenantScope, run: RunId) -> Result<bool> {
        self.transaction(scope, |tx| tx.run(run).map(|run| run.cancelling))
    }

    async fn journal(&self, scope: &TenantScope, run: RunId) -> Result<Journal> {
        self.transaction(scope, |tx| tx.journal(run))
    }

    async fn runs(
        &self,
        scope: &TenantScope,
        filter: &RunFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Run>> {
        self.transaction(scope, |tx| tx.runs(filter, after, limit))
    }

    async fn events(
        &self,
        scope: &TenantScope,
        run: RunId,
        from: EventNo,
        limit: usize,
    ) -> Result<Vec<Flush>> {
        self.transaction(scope, |tx| tx.events(run, from, limit))
    }

    async fn hide(&self, scope: &TenantScope, run: RunId) -> Result<()> {
        self.transaction(scope, |tx| tx.hide(run))
    }

    async fn note_delivered(&self, scope: &TenantScope, runs: &[RunId]) -> Result<()> {
        self.transaction(scope, |tx| {
            tx.note_delivered(runs);
            Ok(())
        })
    }

    async fn answer(&self, scope: &TenantScope, answer: &Answer) -> Result<Approval> {
        self.transaction(scope, |tx| tx.answer(answer))
    }

    async fn approvals(
        &self,
        scope: &TenantScope,
        filter: &ApprovalFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Approval>> {
        self.transaction(scope, |tx| tx.approvals(filter, after, limit))
    }

    async fn join_wait_queue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<WaiterNo> {
        self.transaction(scope, |tx| tx.join_wait_queue(thread, run))
    }

    async fn leave_wait_queue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<()> {
        self.transaction(scope, |tx| {
            tx.leave_wait_queue(thread, run);
            Ok(())
        })
    }

    async fn wait_queue(&self, scope: &TenantScope, thread: &ThreadId) -> Result<Vec<Waiter>> {
        self.transaction(scope, |tx| tx.wait_queue(thread))
    }

    async fn enqueue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        body: &RawJson,
    ) -> Result<QueueNo> {
        self.transaction(scope, |tx| tx.enqueue(thread, body))
    }

    async fn queue(&self, scope: &TenantScope, thread: &ThreadId) -> Result<Vec<Queued>> {
        self.transaction(scope, |tx| tx.queue(thread))
    }

    async fn import(&self, scope: &TenantScope, import: &Import) -> Result<()> {
        self.transaction(scope, |tx| tx.import(import))
    }

    async fn renew(&self) -> Result<()> {
        let mut data = self.open_for_work()?;
        let lease = u64::try_from(self.options.lease.as_millis()).unwrap_or(u64::MAX);
        let until = self.options.clock.now().saturating_add(lease);
        data.shared.renew(self.owner, until);
        Ok(())
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<Orphan>> {
        let data = self.open_for_work()?;
        Ok(data.orphans(self.options.clock.now(), limit.min(MAX_READ)))
    }

    async fn purge(&self, limit: usize) -> Result<Purged> {
        let mut data = self.open_for_work()?;
        let scopes: Vec<_> = data
            .tenants
            .values()
            .map(|tables| tables.scope.clone())
            .collect();
        let mut purged = Purged::default();
        let mut budget = limit;
        for scope in scopes {
            self.transaction_of(&mut data, &scope, |tx| {
                tx.purge(&mut budget, &mut purged);
                Ok(())
            })?;
        }
        data.forget_owners(self.options.clock.now());
        Ok(purged)
    }

    async fn check(&self, progress: OnProgress<'_>) -> Result<Checked> {
        self.check_all(progress)
    }

    async fn profile(&self) -> Result<Profile> {
        drop(self.open_for_work()?);
        let heartbeat = match self.options.heartbeat {
            Heartbeat::Automatic => "automatic",
            Heartbeat::Manual => "manual",
        };
        let setting = |name, value| Setting {
            name,
            value,
            wanted: None,
        };
        Ok(Profile {
            engine: "memory",
            durability: Durability::Memory,
            schema: 1,
            settings: vec![
                setting("heartbeat", heartbeat.to_owned()),
                setting("lease_ms", self.options.lease.as_millis().to_string()),
            ],
        })
    }

    fn backups(&self) -> Option<&dyn Backups> {
        None
    }

    async fn close(&self) -> Result<()> {
        self.closed.send_replace(true);
        // The process no longer writes; waiters for its runs need not wait for its end.
        self.token
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        Ok(())
    }
}
