//! The trait that an engine implements.

use std::path::Path;

use async_trait::async_trait;

use crate::{
    Answer, Append, Approval, ApprovalFilter, At, Begin, Begun, CallResult, Checked, Claim,
    ClaimInTurn, Cursor, End, EventNo, FingerprintDigest, FingerprintMatch, Flush, Fork,
    Idempotency, Import, Increment, ItemRef, Journal, Lease, Listing, NewApproval, NewThread,
    NodeRecord, OnProgress, Opened, Orphan, OwnerId, Page, PageToken, Profile, Publish, Published,
    Purged, QueueNo, Queued, RemoteCall, Result, Run, RunFilter, RunId, Span, Started, Step,
    TenantScope, Thread, ThreadFilter, ThreadId, ThreadPatch, TreeNode, Version, Waiter, WaiterNo,
};
use throughline_model::json::RawJson;

/// An engine that keeps the record.
///
/// What holds for every method:
///
/// - A write is one transaction. It carries its preconditions, and when one does not hold nothing
///   is written. `Ok` means committed.
/// - A write may be sent again. If its effect is there already (the same run and epoch, the same
///   step with the same content), it is answered as it was the first time.
/// - A write belongs to the engine once it is handed over: dropping the future neither undoes nor
///   halves it.
/// - Readers see committed nodes, reached from a head or a node, and nothing else of a run.
///   [`Engine::journal`] and [`Engine::events`] are the two that look into runs.
/// - What belongs to another tenant looks like what does not exist.
#[async_trait]
pub trait Engine: Send + Sync {
    /// The process, as the holder of leases.
    fn owner(&self) -> OwnerId;

    /// A seal on bytes that leave the store and come back: only this store makes it, for this tenant
    /// and this purpose. It says who made them and hides nothing.
    fn seal(&self, scope: &TenantScope, purpose: &str, bytes: &[u8]) -> [u8; 16];

    // Threads.

    /// Open a thread by any of its names, or the branch that ends in a node: what is known, the
    /// last `window` messages, state and the unsettled run, in one round trip.
    ///
    /// A run that has no node yet is [`NotFinal`](crate::Error::NotFinal).
    async fn open(&self, scope: &TenantScope, at: &At, window: usize) -> Result<Opened>;

    /// Make a thread; if one with this id is there, open that. An alias that belongs to another
    /// thread is refused.
    async fn open_or_create(
        &self,
        scope: &TenantScope,
        thread: &NewThread,
        window: usize,
    ) -> Result<Opened>;

    /// Make a thread that goes on from a node of another. It shares everything up to there.
    async fn fork(&self, scope: &TenantScope, fork: &Fork) -> Result<Thread>;

    /// Change what is known of a thread. Its head and version stay.
    async fn patch(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        patch: &ThreadPatch,
    ) -> Result<Thread>;

    /// List threads, last touched first. Their aliases are left out.
    async fn threads(
        &self,
        scope: &TenantScope,
        filter: &ThreadFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Thread>>;

    /// All nodes that belong to a thread: its own, and those it shares on the way to its head,
    /// parents before children. `after` is the last node of the page before.
    async fn tree(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        after: Option<crate::NodeId>,
        limit: usize,
    ) -> Result<Vec<TreeNode>>;

    /// A node as it is stored, with what is known of its run: what an export writes. Nodes of
    /// hidden runs are read too, as long as a thread reaches them. The items are those with the
    /// number `from` and higher, at most `limit`.
    async fn node(
        &self,
        scope: &TenantScope,
        node: crate::NodeId,
        from: crate::ItemNo,
        limit: usize,
    ) -> Result<NodeRecord>;

    /// Delete a thread: it is gone for readers at once, its names are free, live runs on it are
    /// fenced. Nodes that other threads share stay until those are gone too. Deleting what is not
    /// there changes nothing.
    async fn delete(&self, scope: &TenantScope, thread: &ThreadId) -> Result<()>;

    // Messages.

    /// Read messages of a branch. Pages count messages and never end inside one.
    async fn read(&self, scope: &TenantScope, at: &At, span: Span, limit: usize) -> Result<Page>;

    /// What is new on a thread after a cursor, or all of it from the start.
    ///
    /// When the head has moved to a branch that does not hold the cursor's place, this is
    /// [`CursorMoved`](crate::Error::CursorMoved) with the last position that both share.
    async fn increment(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Increment>;

    /// A cursor that stands after a position of the thread's branch.
    async fn cursor(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        position: crate::Position,
    ) -> Result<Cursor>;

    /// Wait until the version of a thread is another than `seen`, by whichever process.
    /// [`NotFound`](crate::Error::NotFound) when it is deleted.
    async fn changed(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        seen: Version,
    ) -> Result<Version>;

    /// Add items by hand.
    async fn append(&self, scope: &TenantScope, append: &Append) -> Result<Published>;

    /// Remove the body of an item wherever it is said, keep its digest, and leave who and when.
    async fn redact(&self, scope: &TenantScope, item: ItemRef, by: &str) -> Result<()>;

    // Runs.

    /// Begin a run.
    ///
    /// With a lease: [`Busy`](crate::Error::Busy) if the thread has an unsettled run, or if another
    /// run is first in its wait queue; [`HeadMoved`](crate::Error::HeadMoved) if its version is another.
    /// A run that waits in the wait queue gives up its place in the same write.
    async fn begin(&self, scope: &TenantScope, begin: &Begin) -> Result<Begun>;

    /// Record the handle of a model call that a remote service has accepted, before its answer is
    /// awaited: a process that takes the run over finds it in [`Journal::remote`] and asks the
    /// service for the answer.
    ///
    /// The call is for the next step of the run ([`OutOfOrder`](crate::Error::OutOfOrder) if not).
    /// Another handle for the same step replaces the one before. `Ok` means that the handle
    /// survives a power cut, as a step does.
    async fn remote_call(&self, scope: &TenantScope, lease: Lease, call: &RemoteCall)
    -> Result<()>;

    /// Record a step with its planned calls.
    async fn step(
        &self,
        scope: &TenantScope,
        lease: Lease,
        step: &Step,
    ) -> Result<Option<Published>>;

    /// Record that calls are about to be dispatched. A call that waits for an approval needs one
    /// that says yes, and uses it up.
    async fn intend(
        &self,
        scope: &TenantScope,
        lease: Lease,
        step: u32,
        positions: &[u32],
    ) -> Result<()>;

    /// Ask for leave for calls that were planned without: from now on they wait. What a tool needs
    /// is decided when it is dispatched, which may be in another process than planned it.
    async fn ask(&self, scope: &TenantScope, lease: Lease, approvals: &[NewApproval])
    -> Result<()>;

    /// Record results, each for its call, in any order. A call has one; all or none are stored.
    async fn results(
        &self,
        scope: &TenantScope,
        lease: Lease,
        results: &[CallResult],
    ) -> Result<()>;

    /// Store events, before they are sent. Stored, they outlive the process, and a client that reads them
    /// reads the same; a power cut may take the last ones of a run that is not settled, unless
    /// something else of the run was stored after them.
    async fn flush(&self, scope: &TenantScope, lease: Lease, events: &Flush) -> Result<()>;

    /// Publish and end a run.
    ///
    /// A leased run whose thread has moved is [`HeadMoved`](crate::Error::HeadMoved). A free one
    /// becomes a branch. A run that has no item to publish ends without a node.
    async fn publish(
        &self,
        scope: &TenantScope,
        lease: Lease,
        publish: &Publish,
    ) -> Result<Published>;

    /// Park a run: it gives up its owner and stays the thread's unsettled run.
    async fn park(&self, scope: &TenantScope, lease: Lease, events: Option<&Flush>) -> Result<()>;

    /// End a run without publishing.
    async fn end(&self, scope: &TenantScope, lease: Lease, end: &End) -> Result<()>;

    /// Ask for the end of a run, whichever process works on it. Its owner sees it in [`Engine::run`].
    async fn cancel(&self, scope: &TenantScope, run: RunId) -> Result<Run>;

    /// Take a run over; `seen` is its epoch. Its owner before is fenced from now on.
    async fn claim(
        &self,
        scope: &TenantScope,
        run: RunId,
        seen: u32,
        claim: Claim,
    ) -> Result<Started>;

    /// The same when it is the caller's turn: [`Busy`](crate::Error::Busy) if another run is first in
    /// the wait queue of the thread.
    async fn claim_in_turn(&self, scope: &TenantScope, claim: &ClaimInTurn) -> Result<Started>;

    /// What is known of a run.
    async fn run(&self, scope: &TenantScope, run: RunId) -> Result<Run>;

    /// The run that was begun under an idempotency key, if there is one.
    /// [`KeyReused`](crate::Error::KeyReused) if it was begun by another request.
    async fn run_by_key(&self, scope: &TenantScope, key: &Idempotency) -> Result<Option<Run>>;

    /// The items that are found by digests, in the order of the digests; for each digest at most
    /// [`MATCHES_PER_DIGEST`](crate::MATCHES_PER_DIGEST), those of the newest runs first.
    ///
    /// What cannot be named is not found: items of threads that are not shown, and of hidden runs.
    /// Items of runs that are not published are found.
    async fn find_fingerprints(
        &self,
        scope: &TenantScope,
        digests: &[FingerprintDigest],
    ) -> Result<Vec<FingerprintMatch>>;

    /// Whether the end of a run was asked for, which is in [`Run::cancelling`] too. Every run asks
    /// for as long as it works, so it costs the same however much the runs of a store have said.
    async fn cancelling(&self, scope: &TenantScope, run: RunId) -> Result<bool>;

    /// Everything that is journaled of a run.
    async fn journal(&self, scope: &TenantScope, run: RunId) -> Result<Journal>;

    /// List runs, newest first.
    async fn runs(
        &self,
        scope: &TenantScope,
        filter: &RunFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Run>>;

    /// Events of a run from a number on, at most about `limit` of them, in whole flushes.
    async fn events(
        &self,
        scope: &TenantScope,
        run: RunId,
        from: EventNo,
        limit: usize,
    ) -> Result<Vec<Flush>>;

    /// Hide a run: its id no longer names anything, what continues it keeps its content.
    async fn hide(&self, scope: &TenantScope, run: RunId) -> Result<()>;

    /// Note that the answers of runs reached those who asked for them: [`Run::delivered`]. Runs that are
    /// not there are passed over, because a run may go before its note comes.
    ///
    /// It is no part of a turn: a server collects runs whose answers it delivered, and notes many of them in one write.
    async fn note_delivered(&self, scope: &TenantScope, runs: &[RunId]) -> Result<()>;

    // The wait queue of a thread: runs that wait until it is free.

    /// Take the last place in the wait queue of a thread, for a run that has not begun. The place belongs
    /// to this process and lapses with its lease. A run that has a place keeps it and is answered
    /// with its number.
    ///
    /// While runs wait, only the first whose process lives begins at the head; see
    /// [`Engine::begin`] and [`Engine::claim_in_turn`]. Places before it that have lapsed are removed
    /// when it does, so that a process that comes back to life does not find its place again.
    async fn join_wait_queue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<WaiterNo>;

    /// Give up a place in the wait queue of a thread. Giving up one that is not there changes nothing.
    async fn leave_wait_queue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<()>;

    /// The runs that wait for a thread and whose processes live, first come first.
    async fn wait_queue(&self, scope: &TenantScope, thread: &ThreadId) -> Result<Vec<Waiter>>;

    // Approvals and queue.

    /// Answer an approval, once. The tool runs when its run goes on.
    async fn answer(&self, scope: &TenantScope, answer: &Answer) -> Result<Approval>;

    /// List approvals, newest first.
    async fn approvals(
        &self,
        scope: &TenantScope,
        filter: &ApprovalFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Approval>>;

    /// Put a message into a thread's queue.
    async fn enqueue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        body: &RawJson,
    ) -> Result<QueueNo>;

    /// What waits in a thread's queue, oldest first.
    async fn queue(&self, scope: &TenantScope, thread: &ThreadId) -> Result<Vec<Queued>>;

    // Upkeep.

    /// One step of an import.
    async fn import(&self, scope: &TenantScope, import: &Import) -> Result<()>;

    /// Say that this process is alive. Engines do this by themselves unless they were told not to.
    async fn renew(&self) -> Result<()>;

    /// Runs whose owners are gone, of all tenants, oldest first.
    async fn orphans(&self, limit: usize) -> Result<Vec<Orphan>>;

    /// Sweep up: what was deleted, what has outlived its time, imports that were never finished. A
    /// thread with a running or parked run does not outlive its time. Looks at no more than about `limit` rows.
    async fn purge(&self, limit: usize) -> Result<Purged>;

    /// Check every digest and every reference.
    async fn check(&self, progress: OnProgress<'_>) -> Result<Checked>;

    /// What the store promises, each setting read back.
    async fn profile(&self) -> Result<Profile>;

    /// The engine's backups, if it can make them.
    fn backups(&self) -> Option<&dyn Backups>;

    /// Stop: what was handed over is still written, nothing new is taken.
    async fn close(&self) -> Result<()>;
}

/// What an engine with files can do.
#[async_trait]
pub trait Backups: Send + Sync {
    /// Write a copy of the whole store, as it is at one moment, to a file that does not exist yet.
    /// Readers and writers go on meanwhile.
    async fn backup(&self, to: &Path, progress: OnProgress<'_>) -> Result<()>;
}
