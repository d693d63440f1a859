//! An engine that forwards every call to another one, through an interceptor.

use std::sync::Arc;

use async_trait::async_trait;
use throughline_model::json::RawJson;
use throughline_store::{
    Answer, Append, Approval, ApprovalFilter, At, Backups, Begin, Begun, CallResult, Checked,
    Claim, ClaimInTurn, Cursor, End, Engine, EventNo, FingerprintDigest, FingerprintMatch, Flush,
    Fork, Idempotency, Import, Increment, ItemNo, ItemRef, Journal, Lease, Listing, NewApproval,
    NewThread, NodeId, NodeRecord, OnProgress, Opened, Orphan, OwnerId, Page, PageToken, Position,
    Profile, Publish, Published, Purged, QueueNo, Queued, RemoteCall, Result, Run, RunFilter,
    RunId, Span, Started, Step, Store, TenantScope, Thread, ThreadFilter, ThreadId, ThreadPatch,
    TreeNode, Version, Waiter, WaiterNo,
};

/// The class of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It reads. So does `open_or_create` if the thread exists.
    Read,
    /// It writes.
    Write,
    /// It stores events only.
    Flush,
    /// It renews the lease of the process.
    Renewal,
    /// It concerns the whole store.
    Upkeep,
}

/// A method of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) class: Class,
}

/// All methods.
const METHODS: &[Method] = &[
    Method {
        name: "open",
        class: Class::Read,
    },
    Method {
        name: "open_or_create",
        class: Class::Read,
    },
    Method {
        name: "fork",
        class: Class::Write,
    },
    Method {
        name: "patch",
        class: Class::Write,
    },
    Method {
        name: "threads",
        class: Class::Read,
    },
    Method {
        name: "tree",
        class: Class::Read,
    },
    Method {
        name: "node",
        class: Class::Read,
    },
    Method {
        name: "delete",
        class: Class::Write,
    },
    Method {
        name: "read",
        class: Class::Read,
    },
    Method {
        name: "increment",
        class: Class::Read,
    },
    Method {
        name: "cursor",
        class: Class::Read,
    },
    Method {
        name: "changed",
        class: Class::Read,
    },
    Method {
        name: "append",
        class: Class::Write,
    },
    Method {
        name: "redact",
        class: Class::Write,
    },
    Method {
        name: "begin",
        class: Class::Write,
    },
    Method {
        name: "remote_call",
        class: Class::Write,
    },
    Method {
        name: "step",
        class: Class::Write,
    },
    Method {
        name: "intend",
        class: Class::Write,
    },
    Method {
        name: "ask",
        class: Class::Write,
    },
    Method {
        name: "results",
        class: Class::Write,
    },
    Method {
        name: "flush",
        class: Class::Flush,
    },
    Method {
        name: "publish",
        class: Class::Write,
    },
    Method {
        name: "park",
        class: Class::Write,
    },
    Method {
        name: "end",
        class: Class::Write,
    },
    Method {
        name: "cancel",
        class: Class::Write,
    },
    Method {
        name: "claim",
        class: Class::Write,
    },
    Method {
        name: "join_wait_queue",
        class: Class::Write,
    },
    Method {
        name: "leave_wait_queue",
        class: Class::Write,
    },
    Method {
        name: "wait_queue",
        class: Class::Read,
    },
    Method {
        name: "run",
        class: Class::Read,
    },
    Method {
        name: "run_by_key",
        class: Class::Read,
    },
    Method {
        name: "find_fingerprints",
        class: Class::Read,
    },
    Method {
        name: "cancelling",
        class: Class::Read,
    },
    Method {
        name: "journal",
        class: Class::Read,
    },
    Method {
        name: "runs",
        class: Class::Read,
    },
    Method {
        name: "events",
        class: Class::Read,
    },
    Method {
        name: "hide",
        class: Class::Write,
    },
    Method {
        name: "note_delivered",
        class: Class::Write,
    },
    Method {
        name: "answer",
        class: Class::Write,
    },
    Method {
        name: "approvals",
        class: Class::Read,
    },
    Method {
        name: "enqueue",
        class: Class::Write,
    },
    Method {
        name: "queue",
        class: Class::Read,
    },
    Method {
        name: "import",
        class: Class::Write,
    },
    Method {
        name: "renew",
        class: Class::Renewal,
    },
    Method {
        name: "orphans",
        class: Class::Read,
    },
    Method {
        name: "purge",
        class: Class::Write,
    },
    Method {
        name: "check",
        class: Class::Upkeep,
    },
    Method {
        name: "profile",
        class: Class::Upkeep,
    },
    Method {
        name: "close",
        class: Class::Upkeep,
    },
];

impl Method {
    /// The method with a name.
    ///
    /// # Panics
    ///
    /// When no method has it, because a test would wait in vain for its calls.
    pub(super) fn of(name: &str) -> Self {
        let known = METHODS.iter().find(|method| method.name == name);
        *known.expect("the name is that of a method of `Engine`")
    }
}

/// Intercepts calls.
pub(super) trait Pass: Send + Sync + 'static {
    /// Makes a call. The future does nothing before it is polled.
    fn pass<T: Send>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T>> + Send,
    ) -> impl Future<Output = Result<T>> + Send;
}

/// Wraps a store in an interceptor.
pub(super) fn over<P: Pass>(store: &Store, pass: P) -> (Store, Arc<P>) {
    let pass = Arc::new(pass);
    let (inner, ids) = store.parts();
    let engine = Forward {
        inner,
        pass: Arc::clone(&pass),
    };
    (Store::on(Arc::new(engine), ids), pass)
}

struct Forward<P> {
    inner: Arc<dyn Engine>,
    pass: Arc<P>,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<P: Pass> Engine for Forward<P> {
    fn owner(&self) -> OwnerId {
        self.inner.owner()
    }

    fn seal(&self, scope: &TenantScope, purpose: &str, bytes: &[u8]) -> [u8; 16] {
        self.inner.seal(scope, purpose, bytes)
    }

    async fn open(&self, scope: &TenantScope, at: &At, window: usize) -> Result<Opened> {
        let call = self.inner.open(scope, at, window);
        self.pass.pass(Method::of("open"), call).await
    }

    async fn open_or_create(
        &self,
        scope: &TenantScope,
        thread: &NewThread,
        window: usize,
    ) -> Result<Opened> {
        let call = self.inner.open_or_create(scope, thread, window);
        self.pass.pass(Method::of("open_or_create"), call).await
    }

    async fn fork(&self, scope: &TenantScope, fork: &Fork) -> Result<Thread> {
        let call = self.inner.fork(scope, fork);
        self.pass.pass(Method::of("fork"), call).await
    }

    async fn patch(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        patch: &ThreadPatch,
    ) -> Result<Thread> {
        let call = self.inner.patch(scope, thread, patch);
        self.pass.pass(Method::of("patch"), call).await
    }

    async fn threads(
        &self,
        scope: &TenantScope,
        filter: &ThreadFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Thread>> {
        let call = self.inner.threads(scope, filter, after, limit);
        self.pass.pass(Method::of("threads"), call).await
    }

    async fn tree(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        after: Option<NodeId>,
        limit: usize,
    ) -> Result<Vec<TreeNode>> {
        let call = self.inner.tree(scope, thread, after, limit);
        self.pass.pass(Method::of("tree"), call).await
    }

    async fn node(
        &self,
        scope: &TenantScope,
        node: NodeId,
        from: ItemNo,
        limit: usize,
    ) -> Result<NodeRecord> {
        let call = self.inner.node(scope, node, from, limit);
        self.pass.pass(Method::of("node"), call).await
    }

    async fn delete(&self, scope: &TenantScope, thread: &ThreadId) -> Result<()> {
        let call = self.inner.delete(scope, thread);
        self.pass.pass(Method::of("delete"), call).await
    }

    async fn read(&self, scope: &TenantScope, at: &At, span: Span, limit: usize) -> Result<Page> {
        let call = self.inner.read(scope, at, span, limit);
        self.pass.pass(Method::of("read"), call).await
    }

    async fn increment(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Increment> {
        let call = self.inner.increment(scope, thread, after, limit);
        self.pass.pass(Method::of("increment"), call).await
    }

    async fn cursor(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        position: Position,
    ) -> Result<Cursor> {
        let call = self.inner.cursor(scope, thread, position);
        self.pass.pass(Method::of("cursor"), call).await
    }

    async fn changed(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        seen: Version,
    ) -> Result<Version> {
        let call = self.inner.changed(scope, thread, seen);
        self.pass.pass(Method::of("changed"), call).await
    }

    async fn append(&self, scope: &TenantScope, append: &Append) -> Result<Published> {
        let call = self.inner.append(scope, append);
        self.pass.pass(Method::of("append"), call).await
    }

    async fn redact(&self, scope: &TenantScope, item: ItemRef, by: &str) -> Result<()> {
        let call = self.inner.redact(scope, item, by);
        self.pass.pass(Method::of("redact"), call).await
    }

    async fn begin(&self, scope: &TenantScope, begin: &Begin) -> Result<Begun> {
        let call = self.inner.begin(scope, begin);
        self.pass.pass(Method::of("begin"), call).await
    }

    async fn remote_call(
        &self,
        scope: &TenantScope,
        lease: Lease,
        call: &RemoteCall,
    ) -> Result<()> {
        let call = self.inner.remote_call(scope, lease, call);
        self.pass.pass(Method::of("remote_call"), call).await
    }

    async fn step(
        &self,
        scope: &TenantScope,
        lease: Lease,
        step: &Step,
    ) -> Result<Option<Published>> {
        let call = self.inner.step(scope, lease, step);
        self.pass.pass(Method::of("step"), call).await
    }

    async fn intend(
        &self,
        scope: &TenantScope,
        lease: Lease,
        step: u32,
        positions: &[u32],
    ) -> Result<()> {
        let call = self.inner.intend(scope, lease, step, positions);
        self.pass.pass(Method::of("intend"), call).await
    }

    async fn ask(
        &self,
        scope: &TenantScope,
        lease: Lease,
        approvals: &[NewApproval],
    ) -> Result<()> {
        let call = self.inner.ask(scope, lease, approvals);
        self.pass.pass(Method::of("ask"), call).await
    }

    async fn results(
        &self,
        scope: &TenantScope,
        lease: Lease,
        results: &[CallResult],
    ) -> Result<()> {
        let call = self.inner.results(scope, lease, results);
        self.pass.pass(Method::of("results"), call).await
    }

    async fn flush(&self, scope: &TenantScope, lease: Lease, events: &Flush) -> Result<()> {
        let call = self.inner.flush(scope, lease, events);
        self.pass.pass(Method::of("flush"), call).await
    }

    async fn publish(
        &self,
        scope: &TenantScope,
        lease: Lease,
        publish: &Publish,
    ) -> Result<Published> {
        let call = self.inner.publish(scope, lease, publish);
        self.pass.pass(Method::of("publish"), call).await
    }

    async fn park(&self, scope: &TenantScope, lease: Lease, events: Option<&Flush>) -> Result<()> {
        let call = self.inner.park(scope, lease, events);
        self.pass.pass(Method::of("park"), call).await
    }

    async fn end(&self, scope: &TenantScope, lease: Lease, end: &End) -> Result<()> {
        let call = self.inner.end(scope, lease, end);
        self.pass.pass(Method::of("end"), call).await
    }

    async fn cancel(&self, scope: &TenantScope, run: RunId) -> Result<Run> {
        let call = self.inner.cancel(scope, run);
        self.pass.pass(Method::of("cancel"), call).await
    }

    async fn claim(
        &self,
        scope: &TenantScope,
        run: RunId,
        seen: u32,
        claim: Claim,
    ) -> Result<Started> {
        let call = self.inner.claim(scope, run, seen, claim);
        self.pass.pass(Method::of("claim"), call).await
    }

    async fn claim_in_turn(&self, scope: &TenantScope, claim: &ClaimInTurn) -> Result<Started> {
        // Interceptors treat it like any other claim.
        let call = self.inner.claim_in_turn(scope, claim);
        self.pass.pass(Method::of("claim"), call).await
    }

    async fn join_wait_queue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<WaiterNo> {
        let call = self.inner.join_wait_queue(scope, thread, run);
        self.pass.pass(Method::of("join_wait_queue"), call).await
    }

    async fn leave_wait_queue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        run: RunId,
    ) -> Result<()> {
        let call = self.inner.leave_wait_queue(scope, thread, run);
        self.pass.pass(Method::of("leave_wait_queue"), call).await
    }

    async fn wait_queue(&self, scope: &TenantScope, thread: &ThreadId) -> Result<Vec<Waiter>> {
        let call = self.inner.wait_queue(scope, thread);
        self.pass.pass(Method::of("wait_queue"), call).await
    }

    async fn run(&self, scope: &TenantScope, run: RunId) -> Result<Run> {
        let call = self.inner.run(scope, run);
        self.pass.pass(Method::of("run"), call).await
    }

    async fn run_by_key(&self, scope: &TenantScope, key: &Idempotency) -> Result<Option<Run>> {
        let call = self.inner.run_by_key(scope, key);
        self.pass.pass(Method::of("run_by_key"), call).await
    }

    async fn find_fingerprints(
        &self,
        scope: &TenantScope,
        digests: &[FingerprintDigest],
    ) -> Result<Vec<FingerprintMatch>> {
        let call = self.inner.find_fingerprints(scope, digests);
        self.pass.pass(Method::of("find_fingerprints"), call).await
    }

    async fn cancelling(&self, scope: &TenantScope, run: RunId) -> Result<bool> {
        let call = self.inner.cancelling(scope, run);
        self.pass.pass(Method::of("cancelling"), call).await
    }

    async fn journal(&self, scope: &TenantScope, run: RunId) -> Result<Journal> {
        let call = self.inner.journal(scope, run);
        self.pass.pass(Method::of("journal"), call).await
    }

    async fn runs(
        &self,
        scope: &TenantScope,
        filter: &RunFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Run>> {
        let call = self.inner.runs(scope, filter, after, limit);
        self.pass.pass(Method::of("runs"), call).await
    }

    async fn events(
        &self,
        scope: &TenantScope,
        run: RunId,
        from: EventNo,
        limit: usize,
    ) -> Result<Vec<Flush>> {
        let call = self.inner.events(scope, run, from, limit);
        self.pass.pass(Method::of("events"), call).await
    }

    async fn hide(&self, scope: &TenantScope, run: RunId) -> Result<()> {
        let call = self.inner.hide(scope, run);
        self.pass.pass(Method::of("hide"), call).await
    }

    async fn note_delivered(&self, scope: &TenantScope, runs: &[RunId]) -> Result<()> {
        let call = self.inner.note_delivered(scope, runs);
        self.pass.pass(Method::of("note_delivered"), call).await
    }

    async fn answer(&self, scope: &TenantScope, answer: &Answer) -> Result<Approval> {
        let call = self.inner.answer(scope, answer);
        self.pass.pass(Method::of("answer"), call).await
    }

    async fn approvals(
        &self,
        scope: &TenantScope,
        filter: &ApprovalFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Approval>> {
        let call = self.inner.approvals(scope, filter, after, limit);
        self.pass.pass(Method::of("approvals"), call).await
    }

    async fn enqueue(
        &self,
        scope: &TenantScope,
        thread: &ThreadId,
        body: &RawJson,
    ) -> Result<QueueNo> {
        let call = self.inner.enqueue(scope, thread, body);
        self.pass.pass(Method::of("enqueue"), call).await
    }

    async fn queue(&self, scope: &TenantScope, thread: &ThreadId) -> Result<Vec<Queued>> {
        let call = self.inner.queue(scope, thread);
        self.pass.pass(Method::of("queue"), call).await
    }

    async fn import(&self, scope: &TenantScope, import: &Import) -> Result<()> {
        let call = self.inner.import(scope, import);
        self.pass.pass(Method::of("import"), call).await
    }

    async fn renew(&self) -> Result<()> {
        let call = self.inner.renew();
        self.pass.pass(Method::of("renew"), call).await
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<Orphan>> {
        let call = self.inner.orphans(limit);
        self.pass.pass(Method::of("orphans"), call).await
    }

    async fn purge(&self, limit: usize) -> Result<Purged> {
        let call = self.inner.purge(limit);
        self.pass.pass(Method::of("purge"), call).await
    }

    async fn check(&self, progress: OnProgress<'_>) -> Result<Checked> {
        let call = self.inner.check(progress);
        self.pass.pass(Method::of("check"), call).await
    }

    async fn profile(&self) -> Result<Profile> {
        let call = self.inner.profile();
        self.pass.pass(Method::of("profile"), call).await
    }

    async fn close(&self) -> Result<()> {
        let call = self.inner.close();
        self.pass.pass(Method::of("close"), call).await
    }

    fn backups(&self) -> Option<&dyn Backups> {
        self.inner.backups()
    }
}
