//! Two tenants that call everything by the same names.

use std::fmt::{Debug, Display};

use throughline_model::json::RawJson;

use crate::conformance::fixture::{Fixture, said_by_model, said_by_user, step, texts};
use crate::{
    Alias, Anchor, ApprovalFilter, ApprovalId, At, Authority, Begin, CallState, Flush, Idempotency,
    ItemNo, Lease, NewApproval, NewThread, NodeId, NodeRef, Publish, QueueNo, RemoteCall, Result,
    RunFilter, RunId, Span, Step, StoredEvent, Tenant, ThreadFilter, ThreadId, Version,
    arguments_digest,
};

/// One of two tenants. What it has under a name of its own is all that the other cannot have.
pub(super) struct Twin<'h> {
    /// The store in its scope.
    pub(super) f: Fixture<'h>,
    /// Stands in everything that it says, and in nothing that the other says.
    pub(super) word: &'static str,
    /// A thread that both have, with one turn of the first and two of the other.
    pub(super) thread: ThreadId,
    /// Another name of that thread, which both have.
    pub(super) alias: Alias,
    /// The run of the first turn there; both were begun under [`KEY`].
    pub(super) run: RunId,
    /// Its node.
    pub(super) node: NodeId,
    /// A message that waits in the queue of that thread.
    pub(super) queued: QueueNo,
    /// A thread that the other does not have: one turn, and the run of `own_lease`.
    pub(super) own: ThreadId,
    /// Another name of it.
    pub(super) own_alias: Alias,
    /// The run of the turn there.
    pub(super) own_run: RunId,
    /// A running run there, with a planned call and one that waits for `own_approval`.
    pub(super) own_lease: Lease,
    /// The approval that it waits for.
    pub(super) own_approval: ApprovalId,
    /// A thread that both have, with a running run of the same id, of the same calls as the one of
    /// `own_lease`.
    pub(super) work: ThreadId,
    /// The lease of that run: the same value for both.
    pub(super) lease: Lease,
    /// The approval that it waits for: the same id for both.
    pub(super) approval: ApprovalId,
}

/// The key under which both begin a run, each with another request.
pub(super) const KEY: &str = "key-1";

/// The call that is planned, of a run with a lease.
pub(super) const PLANNED: u32 = 0;

/// The call that waits for an approval.
pub(super) const WAITING: u32 = 1;

/// Both tenants, each with data.
pub(super) struct Twins<'h> {
    twins: [Twin<'h>; 2],
}

impl<'h> Twins<'h> {
    pub(super) async fn new(f: &Fixture<'h>) -> Self {
        let run = f.store.ids().run();
        let approval = f.store.ids().approval();
        let mut twins = [("amber", "solo-1"), ("cobalt", "solo-2")]
            .map(|(word, own)| Twin::empty(f, word, own, (run, approval)));
        // One after the other in every step, so that the rows of both lie side by side.
        for twin in &twins {
            twin.make(&twin.thread, &twin.alias).await;
        }
        for twin in &twins {
            twin.make(&twin.own, &twin.own_alias).await;
        }
        for twin in &mut twins {
            (twin.run, twin.node) = twin.keyed_turn().await;
        }
        for twin in &mut twins {
            let text = format!("own {}", twin.word);
            twin.own_run = twin.f.turn(&twin.own, &text, &text).await;
        }
        // The versions of the thread that both have differ.
        let [_, second] = &twins;
        second.turn(&second.thread).await;
        for twin in &mut twins {
            twin.queued = twin.enqueue(&twin.thread).await;
            let lease = twin.begin_work(&twin.own, twin.own_lease.run).await;
            twin.own_lease = lease;
            twin.wait(lease, twin.own_approval).await;
        }
        for twin in &mut twins {
            twin.f.thread(twin.work.as_str()).await;
            let lease = twin.begin_work(&twin.work, run).await;
            twin.lease = lease;
            twin.wait(lease, approval).await;
        }
        let [first, second] = &twins;
        assert_eq!(first.lease, second.lease);
        Self { twins }
    }

    /// Each with the other.
    pub(super) fn pairs(&self) -> [(&Twin<'h>, &Twin<'h>); 2] {
        let [first, second] = &self.twins;
        [(first, second), (second, first)]
    }

    /// Neither sees anything of the other, whatever it reads, and the store is whole.
    pub(super) async fn are_apart(&self) {
        for (me, other) in self.pairs() {
            let mine = me.view().await;
            let theirs = other.runs().await;
            let own = me.runs().await;
            let foreign: Vec<String> = theirs
                .iter()
                .filter(|run| !own.contains(run))
                .map(RunId::to_hex)
                .collect();
            for line in mine.0 {
                let seen = |word: &str| line.contains(word);
                assert!(
                    !seen(other.word) && !foreign.iter().any(|run| seen(run)),
                    "{} sees something of {}: {line}",
                    me.word,
                    other.word
                );
            }
        }
        let [first, _] = &self.twins;
        let checked = first.f.store.check(&mut |_| {}).await.unwrap();
        assert_eq!(checked.damage, []);
    }
}

impl<'h> Twin<'h> {
    fn empty(
        f: &Fixture<'h>,
        word: &'static str,
        own: &str,
        (run, approval): (RunId, ApprovalId),
    ) -> Self {
        let scope = Authority::assume().scope(Tenant::new(word).unwrap());
        let ids = f.store.ids();
        let none = RunId::from_bytes([0; 16]);
        Self {
            f: f.scoped(scope),
            word,
            thread: ThreadId::new("t").unwrap(),
            alias: Alias::new("conversation", "conv_1"),
            run: none,
            node: NodeId { run: none, step: 0 },
            queued: 0,
            own: ThreadId::new(own).unwrap(),
            own_alias: Alias::new("a2a", own),
            own_run: none,
            own_lease: Lease {
                run: ids.run(),
                epoch: 0,
            },
            own_approval: ids.approval(),
            work: ThreadId::new("work").unwrap(),
            lease: Lease { run, epoch: 0 },
            approval,
        }
    }

    /// A thread with its word in everything that is known of it.
    pub(super) fn new_thread(&self, id: &ThreadId, alias: &Alias) -> NewThread {
        let json = || Some(self.json());
        NewThread {
            aliases: vec![alias.clone()],
            title: Some(format!("title of {}", self.word)),
            meta: json(),
            settings: json(),
            ..NewThread::new(id.clone())
        }
    }

    pub(super) async fn make(&self, id: &ThreadId, alias: &Alias) {
        let new = self.new_thread(id, alias);
        let made = self.f.store.open_or_create(&self.f.scope, &new, 10).await;
        let made = made.unwrap();
        assert_eq!((made.thread.version, made.entries), (Version(0), vec![]));
    }

    pub(super) fn json(&self) -> RawJson {
        RawJson::new(&format!(r#"{{"who":"{}"}}"#, self.word)).unwrap()
    }

    /// What it asks under a key that the other has too.
    pub(super) fn key(&self, key: &str) -> Idempotency {
        let mut request = [0; 16];
        request[..self.word.len()].copy_from_slice(self.word.as_bytes());
        Idempotency {
            key: key.to_owned(),
            request,
        }
    }

    pub(super) fn events(&self, first: u64) -> Flush {
        let body = self.word.as_bytes().to_vec();
        Flush::new(first, &[StoredEvent { kind: 1, body }])
    }

    /// The value that begins the keyed run at the head of a thread. Request and key are the same for
    /// both, what they are asked is not.
    pub(super) fn keyed_begin(&self, run: RunId, at: Anchor, key: &str) -> Begin {
        Begin {
            key: Some(self.key(key)),
            request: Some(RawJson::new(r#"{"v":1}"#).unwrap()),
            ..Begin::new(run, at, said_by_user(&format!("asked by {}", self.word)))
        }
    }

    async fn keyed_turn(&self) -> (RunId, NodeId) {
        let at = Anchor::Head {
            thread: self.thread.clone(),
            expected: Version(0),
        };
        let run = self.f.store.ids().run();
        let begin = self.keyed_begin(run, at, KEY);
        let lease = self.f.started(&begin).await.lease;
        let publish = Publish {
            events: Some(self.events(0)),
            ..Publish::new(0, said_by_model(&format!("answer to {}", self.word)))
        };
        let published = self.f.store.publish(&self.f.scope, lease, &publish).await;
        (run, published.unwrap().node.unwrap())
    }

    /// A plain turn.
    pub(super) async fn turn(&self, thread: &ThreadId) -> RunId {
        let text = format!("turn of {}", self.word);
        self.f.turn(thread, &text, &text).await
    }

    pub(super) async fn enqueue(&self, thread: &ThreadId) -> QueueNo {
        let (store, body) = (&self.f.store, self.json());
        store.enqueue(&self.f.scope, thread, &body).await.unwrap()
    }

    /// Begin a run of this id at the head of a thread.
    async fn begin_work(&self, thread: &ThreadId, run: RunId) -> Lease {
        let expected = self.f.open(thread).await.thread.version;
        let at = Anchor::Head {
            thread: thread.clone(),
            expected,
        };
        let begin = Begin::new(run, at, said_by_user(&format!("work of {}", self.word)));
        self.f.started(&begin).await.lease
    }

    /// A run with both calls on a thread that is deleted.
    pub(super) async fn lost_work(&self) -> RunId {
        let thread = self.f.thread("lost").await;
        let run = self.f.store.ids().run();
        let lease = self.begin_work(&thread, run).await;
        self.wait(lease, self.f.store.ids().approval()).await;
        let deleted = self.f.store.delete(&self.f.scope, &thread).await;
        deleted.unwrap();
        run
    }

    /// Record the step with both calls.
    async fn wait(&self, lease: Lease, approval: ApprovalId) {
        let mut first = self.step(0, approval);
        first.events = Some(self.events(0));
        let done = self.f.store.step(&self.f.scope, lease, &first).await;
        done.unwrap();
    }

    /// A step with a planned call and one that waits.
    pub(super) fn step(&self, no: u32, approval: ApprovalId) -> Step {
        let mut both = step(no, &["a", "b"], CallState::Planned);
        both.calls[WAITING as usize].state = CallState::Approval;
        both.approvals = vec![self.asked(approval, no, WAITING)];
        both.note = Some(self.json());
        both
    }

    /// A remote call for a step, with its word in the handle.
    pub(super) fn remote_call(&self, step: u32) -> RemoteCall {
        RemoteCall {
            step,
            handle: self.json(),
        }
    }

    /// An approval for a call.
    pub(super) fn asked(&self, id: ApprovalId, step: u32, position: u32) -> NewApproval {
        NewApproval {
            id,
            step,
            position,
            shown: arguments_digest("get_tide", "{}"),
            expires: None,
            detail: Some(self.json()),
        }
    }

    /// What a reader of a place sees.
    pub(super) async fn texts(&self, at: &At) -> Vec<String> {
        let opened = self.f.store.open(&self.f.scope, at, 1000).await.unwrap();
        texts(&opened.entries)
    }

    /// The ids of its runs.
    async fn runs(&self) -> Vec<RunId> {
        let filter = RunFilter::default();
        let page = self.f.store.runs(&self.f.scope, &filter, None, 1000).await;
        page.unwrap().found.iter().map(|run| run.id).collect()
    }

    /// Everything that it can read, in words.
    pub(super) async fn view(&self) -> View {
        let mut lines = Vec::new();
        let mut line = |thing: &dyn Debug| lines.push(format!("{thing:?}"));
        let (store, scope) = (&self.f.store, &self.f.scope);
        let mut after = None;
        let mut threads = Vec::new();
        loop {
            let filter = ThreadFilter::default();
            let page = store.threads(scope, &filter, after, 2).await.unwrap();
            threads.extend(page.found);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for thread in &threads {
            line(thread);
            let at = At::Thread(thread.id.clone());
            let opened = store.open(scope, &at, 1000).await.unwrap();
            assert_eq!(opened.thread.id, thread.id);
            for alias in &opened.thread.aliases {
                let named = store.open(scope, &At::Alias(alias.clone()), 1000).await;
                assert_eq!(named.unwrap(), opened);
            }
            line(&opened);
            line(&store.read(scope, &at, Span::Tail, 1000).await.unwrap());
            let increment = store.increment(scope, &thread.id, None, 1000).await;
            line(&increment.unwrap());
            line(&store.queue(scope, &thread.id).await.unwrap());
            let filter = RunFilter {
                thread: Some(thread.id.clone()),
                ..RunFilter::default()
            };
            let runs = store.runs(scope, &filter, None, 1000).await.unwrap().found;
            assert!(runs.iter().all(|run| run.thread == thread.id), "{runs:?}");
            line(&runs);
            for node in store.tree(scope, &thread.id, None, 1000).await.unwrap() {
                line(&node);
                let first: ItemNo = 1;
                let record = store.node(scope, node.node, first, 1000).await;
                line(&record.unwrap());
            }
        }
        let mut after = None;
        loop {
            let filter = RunFilter::default();
            let page = store.runs(scope, &filter, after, 2).await.unwrap();
            for run in page.found {
                let events = store.events(scope, run.id, 0, 1000).await.unwrap();
                let words: Vec<_> = events
                    .iter()
                    .flat_map(|flush| flush.events().unwrap())
                    .map(|event| String::from_utf8(event.body).unwrap())
                    .collect();
                line(&words);
                let journal = store.journal(scope, run.id).await.unwrap();
                assert_eq!(journal.run, run);
                assert_eq!(store.run(scope, run.id).await.unwrap(), run);
                if run.published.is_some() {
                    let at = At::Node(NodeRef::Run(run.id));
                    let opened = store.open(scope, &at, 1000).await.unwrap();
                    assert_eq!(opened.thread.id, run.thread);
                    line(&opened);
                }
                line(&journal);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for thread in [None, Some(self.thread.clone()), Some(self.work.clone())] {
            // One that was deleted has none.
            if thread
                .as_ref()
                .is_some_and(|id| threads.iter().all(|one| one.id != *id))
            {
                continue;
            }
            for waiting in [true, false] {
                let thread = thread.clone();
                let filter = ApprovalFilter { thread, waiting };
                let page = store.approvals(scope, &filter, None, 1000).await;
                line(&page.unwrap().found);
            }
        }
        View(lines)
    }

    /// It still sees what it saw.
    pub(super) async fn still_sees(&self, before: &View) {
        let now = self.view().await;
        for (line, old) in now.0.iter().zip(&before.0) {
            assert_eq!(line, old, "something of {} was changed", self.word);
        }
        assert_eq!(now.0.len(), before.0.len(), "{}", self.word);
    }
}

/// What a tenant reads.
pub(super) struct View(Vec<String>);

/// Asking for what the other tenant has is answered as asking for what was never made.
pub(super) async fn alike<I: Clone + Display, T: Debug>(
    operation: &str,
    theirs: &I,
    absent: &I,
    ask: impl AsyncFn(I) -> Result<T>,
) {
    let plain = |answer: Result<T>, id: &I| {
        // Node ids, run ids and approval ids are told apart by what follows their prefix.
        let name = id.to_string();
        let digits = name.split('_').find(|part| part.len() == 32);
        format!("{answer:?}").replace(digits.unwrap_or(&name), "…")
    };
    let found = plain(ask(theirs.clone()).await, theirs);
    let missing = plain(ask(absent.clone()).await, absent);
    assert_eq!(
        found, missing,
        "{operation} tells {theirs} of the other tenant from one that was never made"
    );
}
