//! The trait, method by method: prepare on the caller's task, hand over, answer.

use std::path::Path;

use async_trait::async_trait;
use throughline_model::json::RawJson;
use tokio::sync::mpsc;

use super::cache::lock;
use super::connect::{Role, connect};
use super::events::flush::PreparedFlush;
use super::events::{self, flush};
use super::op_error::{OpError, OpResult};
use super::ops::append::PreparedAppend;
use super::ops::begin::PreparedBegin;
use super::ops::calls::PreparedResult;
use super::ops::import::PreparedImport;
use super::ops::publish::PreparedPublish;
use super::ops::read::Reading;
use super::ops::steps::PreparedStep;
use super::ops::{
    append, approvals, begin, calls, check, fingerprints, import, journal, lists, publish, purge,
    redact, remote_call, runs, settle, steps, threads, wait_queue,
};
use super::rows::find;
use super::rows::flag;
use super::rows::items::PreparedItem;
use super::rows::nodes::NewState;
use super::{Sqlite, backup, schema};
use crate::trials::{self, Op, Point};
use crate::{
    Answer, Append, Approval, ApprovalFilter, At, Backups, Begin, Begun, CallResult, Checked,
    Claim, ClaimInTurn, Cursor, Durability, End, Engine, Error, EventNo, FingerprintDigest,
    FingerprintMatch, Flush, Fork, Idempotency, Import, Increment, ItemNo, ItemRef, Journal, Lease,
    Listing, NewApproval, NewThread, NodeId, NodeRecord, OnProgress, Opened, Orphan, OwnerId, Page,
    PageToken, Position, Profile, Progress, Publish, Published, Purged, QueueNo, Queued,
    RemoteCall, Result, Run, RunFilter, RunId, Setting, Span, Started, Step, TenantScope, Thread,
    ThreadFilter, ThreadId, ThreadPatch, TreeNode, Version, Waiter, WaiterNo,
};

impl Sqlite {
    /// Read in a tenant's scope, as it is at one moment.
    async fn read_in<T>(
        &self,
        scope: &TenantScope,
        operation: impl FnOnce(&Reading<'_>) -> OpResult<T>,
    ) -> Result<T> {
        self.open_only()?;
        let caches = &self.shared.caches;
        let now = self.shared.options.clock.now();
        let seal = &self.seal;
        self.readers
            .read(|conn| {
                let tenant = find::tenant(conn, caches, scope.tenant())?;
                if let Some(row) = tenant {
                    lock(&caches.tenants)
                        .entry(scope.tenant().clone())
                        .or_insert(row);
                }
                operation(&Reading {
                    conn,
                    caches,
                    scope,
                    tenant,
                    now,
                    seal,
                })
            })
            .await
    }

    fn open_only(&self) -> Result<()> {
        if self.shared.is_closed() {
            Err(Error::Closed)
        } else {
            Ok(())
        }
    }

    /// The item that a run probably writes next.
    fn next_item(&self, run: RunId) -> u32 {
        let live = lock(&self.shared.caches.live).get(&run);
        live.map_or(1, |live| live.next_item)
    }

    /// Do something long on a thread of its own, and pass on how far it has come.
    async fn long<T: Send + 'static>(
        &self,
        progress: OnProgress<'_>,
        operation: impl FnOnce(&mut dyn FnMut(Progress)) -> OpResult<T> + Send + 'static,
    ) -> Result<T> {
        self.open_only()?;
        let (tell, mut words) = mpsc::unbounded_channel();
        let (reply, answer) = tokio::sync::oneshot::channel();
        let work = move || {
            let done = operation(&mut |word| {
                // The caller may have gone.
                let _ = tell.send(word);
            });
            drop(tell);
            let _ = reply.send(done.map_err(OpError::into_error));
        };
        std::thread::Builder::new()
            .name("store upkeep".into())
            .spawn(work)
            .map_err(|error| Error::Io {
                detail: format!("no thread can be started: {error}"),
            })?;
        while let Some(word) = words.recv().await {
            progress(word);
        }
        answer.await.unwrap_or(Err(Error::Closed))
    }
}

#[async_trait]
impl Engine for Sqlite {
    fn owner(&self) -> OwnerId {
        self.shared.owner
    }

    fn seal(&self, scope: &TenantScope, purpose: &str, bytes: &[u8]) -> [u8; 16] {
        self.seal.bytes(scope, purpose, bytes)
    }

    async fn open(&self, scope: &TenantScope, at: &At, window: usize) -> Result<Opened> {
        self.read_in(scope, |reading| reading.open(at, window))
            .await
    }

    async fn open_or_create(
        &self,
        scope: &TenantScope,
        thread: &NewThread,
        window: usize,
    ) -> Result<Opened> {
        let at = At::Thread(thread.id.clone());
        let opened = self.open(scope, &at, window).await;
        match opened {
            Err(Error::NotFound { .. }) => {}
            Ok(opened)
                if thread
                    .aliases
                    .iter()
                    .all(|alias| opened.thread.aliases.contains(alias)) =>
            {
                return Ok(opened);
            }
            // A name may belong to another thread.
            Ok(_) => {}
            Err(error) => return Err(error),
        }
        let (owned, new) = (scope.clone(), thread.clone());
        self.shared
            .write(Op::Other, move |tx| threads::create(tx, &owned, &new))
            .await?;
        self.open(scope, &at, window).await
    }

    async fn fork(&self, scope: &TenantScope, fork: &Fork) -> Result<Thread> {
        let (scope, fork) = (scope.clone(), fork.clone());
        self.shared
            .write(Op::Other, move |tx| threads::fork(tx, &scope, &fork))
            .await
    }

    async fn patch(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        patch: &ThreadPatch,
    ) -> Result<Thread> {
        let (scope, thread, patch) = (scope.clone(), thread.clone(), patch.clone());
        self.shared
            .write(Op::Other, move |tx| {
                threads::patch(tx, &scope, &thread, &patch)
            })
            .await
    }

    async fn threads(
        &self,
        scope: &TenantScope,
        filter: &ThreadFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Thread>> {
        self.read_in(scope, |reading| {
            lists::threads(reading, filter, after, limit)
        })
        .await
    }

    async fn tree(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        after: Option<NodeId>,
        limit: usize,
    ) -> Result<Vec<TreeNode>> {
        self.read_in(scope, |reading| lists::tree(reading, thread, after, limit))
            .await
    }

    async fn node(
        &self,
        scope: &TenantScope,
        node: NodeId,
        from: ItemNo,
        limit: usize,
    ) -> Result<NodeRecord> {
        self.read_in(scope, |reading| journal::node(reading, node, from, limit))
            .await
    }

    async fn delete(&self, scope: &TenantScope, thread: &ThreadId) -> Result<()> {
        let (scope, thread) = (scope.clone(), thread.clone());
        self.shared
            .write(Op::Delete, move |tx| threads::delete(tx, &scope, &thread))
            .await
    }

    async fn read(&self, scope: &TenantScope, at: &At, span: Span, limit: usize) -> Result<Page> {
        self.read_in(scope, |reading| reading.read(at, span, limit))
            .await
    }

    async fn increment(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Increment> {
        self.read_in(scope, |reading| reading.increment(thread, after, limit))
            .await
    }

    async fn cursor(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        position: Position,
    ) -> Result<Cursor> {
        self.read_in(scope, |reading| reading.cursor(thread, position))
            .await
    }

    async fn changed(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        seen: Version,
    ) -> Result<Version> {
        loop {
            let (row, version) = self
                .read_in(scope, |reading| reading.version(thread))
                .await?;
            if version != seen {
                return Ok(version);
            }
            let watching = self.shared.watch.on(row);
            let mut woken = std::pin::pin!(watching.notify.notified());
            woken.as_mut().enable();
            // From here on nothing is missed: look once more, then wait.
            let (again, version) = self
                .read_in(scope, |reading| reading.version(thread))
                .await?;
            if version != seen {
                return Ok(version);
            }
            if again == row {
                self.shared.wake_writer();
                woken.await;
            }
        }
    }

    async fn append(&self, scope: &TenantScope, items: &Append) -> Result<Published> {
        let prepared = PreparedAppend::new(scope, items)?;
        let scope = scope.clone();
        self.shared
            .write(Op::Other, move |tx| append::append(tx, &scope, &prepared))
            .await
    }

    async fn redact(&self, scope: &TenantScope, item: ItemRef, by: &str) -> Result<()> {
        let (scope, by) = (scope.clone(), by.to_owned());
        self.shared
            .write(Op::Other, move |tx| redact::redact(tx, &scope, item, &by))
            .await
    }

    async fn begin(&self, scope: &TenantScope, begin: &Begin) -> Result<Begun> {
        let prepared = PreparedBegin::new(scope, begin)?;
        let scope = scope.clone();
        self.shared
            .write(Op::Begin, move |tx| begin::begin(tx, &scope, &prepared))
            .await
    }

    async fn remote_call(
        &self,
        scope: &TenantScope,
        lease: Lease,
        call: &RemoteCall,
    ) -> Result<()> {
        let (scope, call) = (scope.clone(), call.clone());
        self.shared
            .write(Op::RemoteCall, move |tx| {
                remote_call::store(tx, &scope, lease, &call)
            })
            .await
    }

    async fn step(
        &self,
        scope: &TenantScope,
        lease: Lease,
        step: &Step,
    ) -> Result<Option<Published>> {
        let first = self.next_item(lease.run);
        let prepared = PreparedStep::new(scope, lease.run, first, step)?;
        let scope = scope.clone();
        self.shared
            .write(Op::Step, move |tx| {
                steps::step(tx, &scope, lease, &prepared)
            })
            .await
    }

    async fn intend(
        &self,
        scope: &TenantScope,
        lease: Lease,
        step: u32,
        positions: &[u32],
    ) -> Result<()> {
        let (scope, positions) = (scope.clone(), positions.to_vec());
        self.shared
            .write(Op::Intend, move |tx| {
                calls::intend(tx, &scope, lease, step, &positions)
            })
            .await
    }

    async fn ask(
        &self,
        scope: &TenantScope,
        lease: Lease,
        approvals: &[NewApproval],
    ) -> Result<()> {
        let (scope, approvals) = (scope.clone(), approvals.to_vec());
        self.shared
            .write(Op::Other, move |tx| {
                calls::ask(tx, &scope, lease, &approvals)
            })
            .await
    }

    async fn results(
        &self,
        scope: &TenantScope,
        lease: Lease,
        results: &[CallResult],
    ) -> Result<()> {
        let (scope, prepared) = (scope.clone(), PreparedResult::list(results));
        self.shared
            .write(Op::Results, move |tx| {
                calls::results(tx, &scope, lease, &prepared)
            })
            .await
    }

    async fn flush(&self, scope: &TenantScope, lease: Lease, events: &Flush) -> Result<()> {
        let prepared = PreparedFlush::new(&self.shared, scope, lease, events);
        let scope = scope.clone();
        self.shared
            .write(Op::Flush, move |tx| {
                flush::flush(tx, &scope, lease, &prepared)
            })
            .await
    }

    async fn publish(
        &self,
        scope: &TenantScope,
        lease: Lease,
        closing: &Publish,
    ) -> Result<Published> {
        let first = self.next_item(lease.run);
        let state = closing.state.as_ref();
        let prepared = PreparedPublish {
            items: PreparedItem::list(scope.tenant(), lease.run, first, &closing.items),
            results: PreparedResult::list(&closing.results),
            state: state.map(|state| NewState::new(scope, lease.run, closing.step, state)),
            publish: closing.clone(),
        };
        let scope = scope.clone();
        self.shared
            .write(Op::Publish, move |tx| {
                publish::publish(tx, &scope, lease, &prepared)
            })
            .await
    }

    async fn park(&self, scope: &TenantScope, lease: Lease, events: Option<&Flush>) -> Result<()> {
        let (scope, events) = (scope.clone(), events.cloned());
        self.shared
            .write(Op::Park, move |tx| {
                settle::park(tx, &scope, lease, events.as_ref())
            })
            .await
    }

    async fn end(&self, scope: &TenantScope, lease: Lease, end: &End) -> Result<()> {
        let (scope, end) = (scope.clone(), end.clone());
        self.shared
            .write(Op::End, move |tx| settle::end(tx, &scope, lease, &end))
            .await
    }

    async fn cancel(&self, scope: &TenantScope, run: RunId) -> Result<Run> {
        let scope = scope.clone();
        self.shared
            .write(Op::Cancel, move |tx| settle::cancel(tx, &scope, run))
            .await
    }

    async fn claim(
        &self,
        scope: &TenantScope,
        run: RunId,
        seen: u32,
        claim: Claim,
    ) -> Result<Started> {
        let scope = scope.clone();
        self.shared
            .write(Op::Claim, move |tx| {
                settle::claim(tx, &scope, run, seen, claim, None)
            })
            .await
    }

    async fn claim_in_turn(&self, scope: &TenantScope, claim: &ClaimInTurn) -> Result<Started> {
        let (scope, asked) = (scope.clone(), *claim);
        self.shared
            .write(Op::Claim, move |tx| {
                let waiter = Some((asked.waiter, asked.after));
                settle::claim(tx, &scope, asked.run, asked.seen, asked.claim, waiter)
            })
            .await
    }

    async fn run(&self, scope: &TenantScope, run: RunId) -> Result<Run> {
        self.read_in(scope, |reading| {
            let mut row = find::shown_run(reading.conn, reading.tenant, run)?;
            events::EventEnds::default().set_next_event(reading.conn, &mut row)?;
            row.run(reading.now)
        })
        .await
    }

    async fn run_by_key(&self, scope: &TenantScope, key: &Idempotency) -> Result<Option<Run>> {
        self.read_in(scope, |reading| {
            let Some(tenant) = reading.tenant else {
                return Ok(None);
            };
            let Some(mut row) = begin::run_with_key(reading.conn, tenant, key)? else {
                return Ok(None);
            };
            events::EventEnds::default().set_next_event(reading.conn, &mut row)?;
            row.run(reading.now).map(Some)
        })
        .await
    }

    async fn find_fingerprints(
        &self,
        scope: &TenantScope,
        digests: &[FingerprintDigest],
    ) -> Result<Vec<FingerprintMatch>> {
        let digests = digests.to_vec();
        self.read_in(scope, move |reading| fingerprints::find(reading, &digests))
            .await
    }

    async fn cancelling(&self, scope: &TenantScope, run: RunId) -> Result<bool> {
        self.read_in(scope, |reading| {
            let row = find::shown_run(reading.conn, reading.tenant, run)?;
            Ok(row.has(flag::CANCELLING))
        })
        .await
    }

    async fn journal(&self, scope: &TenantScope, run: RunId) -> Result<Journal> {
        trials::reach(Point::RecoverDecide)?;
        self.read_in(scope, |reading| journal::journal(reading, run))
            .await
    }

    async fn runs(
        &self,
        scope: &TenantScope,
        filter: &RunFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Run>> {
        self.read_in(scope, |reading| runs::runs(reading, filter, after, limit))
            .await
    }

    async fn events(
        &self,
        scope: &TenantScope,
        run: RunId,
        from: EventNo,
        limit: usize,
    ) -> Result<Vec<Flush>> {
        self.read_in(scope, |reading| journal::events(reading, run, from, limit))
            .await
    }

    async fn hide(&self, scope: &TenantScope, run: RunId) -> Result<()> {
        let scope = scope.clone();
        self.shared
            .write(Op::Other, move |tx| settle::hide(tx, &scope, run))
            .await
    }

    async fn note_delivered(&self, scope: &TenantScope, runs: &[RunId]) -> Result<()> {
        let (scope, runs) = (scope.clone(), runs.to_vec());
        self.shared
            .write(Op::Other, move |tx| {
                settle::note_delivered(tx, &scope, &runs)
            })
            .await
    }

    async fn answer(&self, scope: &TenantScope, answer: &Answer) -> Result<Approval> {
        let (scope, answer) = (scope.clone(), answer.clone());
        self.shared
            .write(Op::Answer, move |tx| approvals::answer(tx, &scope, &answer))
            .await
    }

    async fn approvals(
        &self,
        scope: &TenantScope,
        filter: &ApprovalFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Approval>> {
        self.read_in(scope, |reading| {
            approvals::list(
                reading.conn,
                reading.tenant,
                filter,
                after,
                limit,
                reading.now,
            )
        })
        .await
    }

    async fn join_wait_queue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<WaiterNo> {
        let (scope, thread) = (scope.clone(), thread.clone());
        self.shared
            .write(Op::JoinWaitQueue, move |tx| {
                wait_queue::join(tx, &scope, &thread, run)
            })
            .await
    }

    async fn leave_wait_queue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<()> {
        let (scope, thread) = (scope.clone(), thread.clone());
        self.shared
            .write(Op::Other, move |tx| {
                wait_queue::leave(tx, &scope, &thread, run)
            })
            .await
    }

    async fn wait_queue(&self, scope: &TenantScope, thread: &ThreadId) -> Result<Vec<Waiter>> {
        self.read_in(scope, |reading| {
            wait_queue::list(reading.conn, reading.tenant, thread, reading.now)
        })
        .await
    }

    async fn enqueue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        body: &RawJson,
    ) -> Result<QueueNo> {
        let (scope, thread, body) = (scope.clone(), thread.clone(), body.clone());
        self.shared
            .write(Op::Other, move |tx| {
                threads::enqueue(tx, &scope, &thread, &body)
            })
            .await
    }

    async fn queue(&self, scope: &TenantScope, thread: &ThreadId) -> Result<Vec<Queued>> {
        self.read_in(scope, |reading| {
            threads::queue(reading.conn, reading.tenant, thread)
        })
        .await
    }

    async fn import(&self, scope: &TenantScope, step: &Import) -> Result<()> {
        let prepared = PreparedImport::new(scope, step)?;
        let scope = scope.clone();
        self.shared
            .write(Op::Other, move |tx| import::import(tx, &scope, &prepared))
            .await
    }

    async fn renew(&self) -> Result<()> {
        self.shared.request_heartbeat();
        // A heartbeat is written with every group that has a member who asks for one.
        self.shared.write(Op::Renew, |_| Ok(())).await
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<Orphan>> {
        self.open_only()?;
        let now = self.shared.options.clock.now();
        self.readers
            .read(|conn| lists::orphans(conn, now, limit))
            .await
    }

    async fn purge(&self, limit: usize) -> Result<Purged> {
        self.shared
            .write(Op::Purge, move |tx| purge::purge(tx, limit))
            .await
    }

    async fn check(&self, progress: OnProgress<'_>) -> Result<Checked> {
        let path = self.path.clone();
        self.long(progress, move |tell| {
            let conn = connect(&path, Role::Reader)?;
            conn.execute_batch("BEGIN")?;
            let checked = check::check(&conn, tell)?;
            conn.execute_batch("COMMIT")?;
            Ok(checked)
        })
        .await
    }

    async fn profile(&self) -> Result<Profile> {
        let settings = self
            .shared
            .write(Op::Other, |tx| super::connect::settings(tx.conn))
            .await?;
        let durable = settings.iter().all(Setting::is_right);
        Ok(Profile {
            engine: "sqlite",
            durability: if durable {
                Durability::Durable
            } else {
                Durability::Relaxed
            },
            schema: schema::VERSION,
            settings,
        })
    }

    fn backups(&self) -> Option<&dyn Backups> {
        Some(self)
    }

    async fn close(&self) -> Result<()> {
        // The writer goes last: two connections that close at once each see that the other is still
        // there, and both leave the log beside the file.
        self.readers.close().await;
        self.shared.close();
        let done = lock(&self.done).take();
        if let Some(done) = done {
            // The thread tells before it ends; if it could not, it has ended.
            let _ = done.await;
        }
        if let Some(writer) = lock(&self.writer).take() {
            let _ = writer.join();
        }
        Ok(())
    }
}

#[async_trait]
impl Backups for Sqlite {
    async fn backup(&self, to: &Path, progress: OnProgress<'_>) -> Result<()> {
        let (from, to) = (self.path.clone(), to.to_owned());
        self.long(progress, move |tell| backup::backup(&from, &to, tell))
            .await
    }
}
