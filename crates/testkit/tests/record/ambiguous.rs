use throughline_store::{
    Anchor, Append, At, CallState, Claim, Error, ErrorKind, Flush, Fork, Lease, NewItem, NewThread,
    NodeRef, RunFilter, RunId, RunState, Store, TenantScope, ThreadId, Version,
};
use throughline_testkit::disk::{Disk, DiskFault, FileKind, Injection};
use throughline_testkit::record::{Turn, assistant, begin, block_on};
use throughline_testkit::{Rng, Scratch, property};

use crate::record::common::{named, open, said, sound, url};
use crate::record::storage::{Holder, hand_over, history, writer_waits};
use crate::record::work::{append_of, events, open_later, turn_of};

/// A write. All of them together are the life of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Create,
    Begin,
    Flush(usize),
    Step(usize),
    Results(usize),
    Publish,
    Append,
    Fork,
    Delete,
}

/// How many events each flush has.
const EVENTS: usize = 3;

/// A thread with one run, items that are appended, and a fork that is deleted.
struct Life {
    thread: ThreadId,
    run: RunId,
    turn: Turn,
    append: Append,
    text: String,
    fork: ThreadId,
}

impl Life {
    fn new(store: &Store, rng: &mut Rng) -> Self {
        let run = store.ids().run();
        let thread = named("life");
        let (append, text) = append_of(store.ids().run(), thread.clone(), rng.below(500));
        Self {
            thread,
            run,
            turn: turn_of(run, rng),
            append,
            text,
            fork: named("fork"),
        }
    }

    fn writes(&self) -> Vec<Write> {
        let mut writes = vec![Write::Create, Write::Begin];
        for no in 0..self.turn.rounds.len() {
            writes.extend([Write::Flush(no), Write::Step(no), Write::Results(no)]);
        }
        writes.extend([Write::Publish, Write::Append, Write::Fork, Write::Delete]);
        writes
    }

    async fn write(&self, store: &Store, write: Write, lease: Lease) -> Result<(), Error> {
        let scope = &TenantScope::local();
        match write {
            Write::Create => {
                let new = NewThread::new(self.thread.clone());
                store.open_or_create(scope, &new, 0).await.map(drop)
            }
            Write::Begin => {
                let at = Anchor::Head {
                    thread: self.thread.clone(),
                    expected: Version(0),
                };
                begin(store, scope, &self.turn.begin(self.run, at))
                    .await
                    .map(drop)
            }
            Write::Flush(no) => {
                let from = no * EVENTS;
                let flush = Flush::new(from as u64, &events(self.run, from, from + EVENTS));
                store.flush(scope, lease, &flush).await
            }
            Write::Step(no) => store
                .step(scope, lease, &self.turn.step(no))
                .await
                .map(drop),
            Write::Results(no) => store.results(scope, lease, &self.turn.results(no)).await,
            Write::Publish => store
                .publish(scope, lease, &self.turn.publish())
                .await
                .map(drop),
            Write::Append => store.append(scope, &self.append).await.map(drop),
            Write::Fork => {
                let fork = Fork {
                    from: At::Node(NodeRef::Run(self.run)),
                    thread: NewThread::new(self.fork.clone()),
                };
                store.fork(scope, &fork).await.map(drop)
            }
            Write::Delete => store.delete(scope, &self.fork).await,
        }
    }

    /// The lease of the worker that began the run.
    fn lease(&self) -> Lease {
        Lease {
            run: self.run,
            epoch: 1,
        }
    }

    fn events(&self, store: &Store) -> Result<usize, Error> {
        let flushes = block_on(store.events(&TenantScope::local(), self.run, 0, usize::MAX))?;
        Ok(flushes.iter().map(|flush| flush.count() as usize).sum())
    }

    /// Whether a write was done.
    fn is_there(&self, store: &Store, write: Write) -> Result<bool, Error> {
        let scope = &TenantScope::local();
        let open = |thread: &ThreadId| {
            let at = At::Thread(thread.clone());
            block_on(store.open(scope, &at, 0)).map(drop)
        };
        let journal = || block_on(store.journal(scope, self.run));
        let found = match write {
            Write::Create => open(&self.thread).map(|()| true),
            Write::Begin => block_on(store.run(scope, self.run)).map(|_| true),
            Write::Flush(no) => self.events(store).map(|count| count > no * EVENTS),
            Write::Step(no) => journal().map(|journal| journal.run.next_step as usize > no),
            Write::Results(no) => journal().map(|journal| {
                let mut calls = journal.calls.iter();
                calls.any(|call| call.at.step as usize == no && call.state == CallState::Done)
            }),
            Write::Publish => {
                let run = block_on(store.run(scope, self.run));
                run.map(|run| run.state == RunState::Committed)
            }
            Write::Append => block_on(store.run(scope, self.append.run)).map(|_| true),
            Write::Fork => open(&self.fork).map(|()| true),
            Write::Delete => Ok(open(&self.fork).is_err()),
        };
        match found {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            other => other,
        }
    }

    /// Reads what is stored from the failed write on, and does what is missing, as the next process
    /// does; returns whether the failed write was done.
    fn finish(&self, store: &Store, struck: usize) -> Result<bool, String> {
        let scope = TenantScope::local();
        let mut lease = self.lease();
        match block_on(store.run(&scope, self.run)) {
            Ok(run) if run.state == RunState::Interrupted => {
                let claimed = store.claim(&scope, run.id, run.epoch, Claim::Orphan);
                lease = block_on(claimed).map_err(said)?.lease;
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(said(error)),
        }
        let writes = self.writes();
        // Commits of only events are not synced: they are there, or lost like later writes.
        let events = matches!(writes[..struck].last(), Some(Write::Flush(_)));
        let mut came_true = false;
        for (no, write) in writes.iter().enumerate().skip(struck - usize::from(events)) {
            let there = self.is_there(store, *write).map_err(said)?;
            if !there {
                let done = block_on(self.write(store, *write, lease));
                done.map_err(|error| format!("{write:?} anew: {}", said(error)))?;
            }
            came_true |= no == struck && there;
        }
        Ok(came_true)
    }

    /// Checks that everything is stored once.
    fn check(&self, store: &Store) -> Result<(), String> {
        let scope = TenantScope::local();
        let mut expected = self.turn.texts();
        expected.push(self.text.clone());
        let found = history(store, &self.thread)?;
        if found != expected {
            return Err(format!("{found:?}, expected {expected:?}"));
        }
        let filter = RunFilter {
            thread: Some(self.thread.clone()),
            states: Vec::new(),
        };
        let runs = block_on(store.runs(&scope, &filter, None, 100)).map_err(said)?;
        let events = self.events(store).map_err(said)?;
        let counts = (runs.found.len(), events);
        if counts != (2, self.turn.rounds.len() * EVENTS) {
            return Err(format!("{counts:?} runs and events"));
        }
        if !self.is_there(store, Write::Delete).map_err(said)? {
            return Err("the fork is there".to_owned());
        }
        sound(store)
    }
}

/// What happens after a commit with an unknown outcome.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// The write is sent again.
    Again,
    /// The process is killed; the next one reads the store.
    Killed,
    /// The power is cut; the next process reads the store.
    Cut,
}

/// R14: the sync of a commit fails, with or without its data. That is an error, never a success;
/// afterwards everything is stored once, whether the write is sent again, or the next process reads
/// the store.
#[test]
fn r14_an_ambiguous_commit_is_an_error_and_is_made_once() {
    let (mut again, mut came_true, mut came_to_nothing) = (0, 0, 0);
    property("r14 ambiguous commits", 100, |rng, _| {
        let (directory, next) = (Scratch::new("ambiguous"), Scratch::new("next"));
        let disk = Disk::below(directory.path());
        let store = open(&url(directory.path()));
        let life = Life::new(&store, rng);
        let writes = life.writes();
        // Commits of only events do no sync that could fail.
        let syncs = |no: &usize| !matches!(writes[*no], Write::Flush(_));
        let struck = *rng.pick(&(0..writes.len()).filter(syncs).collect::<Vec<_>>());
        let fault = *rng.pick(&[DiskFault::SyncKept, DiskFault::SyncLost]);
        let then = *rng.pick(&[Then::Again, Then::Killed, Then::Cut]);
        let place = format!("{:?} with {fault:?} then {then:?}", writes[struck]);
        let problem = |why: String| format!("{place}: {why}");
        for (no, write) in writes.iter().enumerate() {
            if no == struck {
                disk.inject(Injection::once(fault).within(FileKind::Log));
                match block_on(life.write(&store, *write, life.lease())) {
                    Err(Error::Io { .. }) => {}
                    other => return Err(problem(format!("{other:?}"))),
                }
                if !matches!(then, Then::Again) {
                    break;
                }
            }
            let done = block_on(life.write(&store, *write, life.lease()));
            done.map_err(|error| problem(said(error)))?;
        }
        match then {
            Then::Again => {
                again += 1;
                return life.check(&store).map_err(problem);
            }
            Then::Killed => disk.copy(next.path()).map_err(|error| error.to_string())?,
            Then::Cut => {
                disk.cut_now(rng.next_u64());
                let written = disk.write_image(next.path());
                written.map(drop).map_err(|error| error.to_string())?;
            }
        }
        let _disk = Disk::below(next.path());
        let store = open_later(&url(next.path())).map_err(said)?;
        match life.finish(&store, struck).map_err(problem)? {
            true => came_true += 1,
            false => came_to_nothing += 1,
        }
        life.check(&store).map_err(problem)
    });
    println!(
        "table r14 ambiguous commits: sent_again={again} came_true={came_true} came_to_nothing={came_to_nothing} false=0 twice=0"
    );
}

/// Fills the queue of a writer that waits for a lock, makes the commit of all of it fail, and
/// releases the lock.
fn as_a_group<F: Future>(
    directory: &Scratch,
    disk: &Disk,
    store: &Store,
    faults: &[Injection],
    futures: impl IntoIterator<Item = F>,
) -> Vec<F::Output> {
    let holder = Holder::of(directory.path());
    // It writes nothing, so the failing sync is not its own.
    let mut first = None;
    writer_waits(disk, || first = Some(hand_over(store.profile())));
    let waiting: Vec<_> = futures.into_iter().map(hand_over).collect();
    disk.inject_in_turn(faults);
    holder.release();
    block_on(first.unwrap()).unwrap();
    waiting.into_iter().map(block_on).collect()
}

/// R14: a group whose commit has an unknown outcome is retried one by one, and each operation is
/// done once.
#[test]
fn r14_a_group_whose_commit_is_ambiguous_is_done_once() {
    property("r14 ambiguous groups", 20, |rng, _| {
        let directory = Scratch::new("groups");
        let disk = Disk::below(directory.path());
        let store = open(&url(directory.path()));
        let scope = TenantScope::local();
        let thread = named("t");
        let new = NewThread::new(thread.clone());
        block_on(store.open_or_create(&scope, &new, 0)).map_err(said)?;
        let (mut appends, mut texts) = (Vec::new(), Vec::new());
        for _ in 0..rng.range(2..=9) {
            let (append, text) = append_of(store.ids().run(), thread.clone(), rng.below(900));
            appends.push(append);
            texts.push(text);
        }
        let faults = [Injection::once(
            *rng.pick(&[DiskFault::SyncKept, DiskFault::SyncLost]),
        )];
        let futures = appends.iter().map(|append| store.append(&scope, append));
        for done in as_a_group(&directory, &disk, &store, &faults, futures) {
            done.map_err(said)?;
        }
        if disk.counts().failed != 1 {
            return Err("no commit of a group failed".to_owned());
        }
        let found = history(&store, &thread)?;
        if found != texts {
            return Err(format!("{found:?}, expected {texts:?}"));
        }
        sound(&store)
    });
}

/// R14: a write so large that a part of it goes to the WAL before the commit, and fails there,
/// together with small ones. Nothing of it remains, and each is stored once when it is sent again.
#[test]
fn r14_a_large_write_that_breaks_half_way_leaves_nothing() {
    let (mut failed, mut done) = (0, 0);
    property("r14 large writes", 6, |rng, _| {
        let directory = Scratch::new("large");
        let disk = Disk::below(directory.path());
        let store = open(&url(directory.path()));
        let scope = TenantScope::local();
        let thread = named("t");
        let new = NewThread::new(thread.clone());
        block_on(store.open_or_create(&scope, &new, 0)).map_err(said)?;
        // Random text, because bodies are compressed.
        let noise = |rng: &mut Rng| -> String {
            let words = (0..300_000).map(|_| format!("{:016x}", rng.next_u64()));
            words.collect()
        };
        let text = |run: RunId, text: &str| format!("{} answer {text}", run.to_hex());
        let (mut appends, mut texts) = (Vec::new(), Vec::new());
        for large in [false, true, false] {
            let run = store.ids().run();
            let text = text(run, &if large { noise(rng) } else { String::new() });
            let (append, _) = append_of(run, thread.clone(), 0);
            let items = NewItem::of(&[assistant(&text)]);
            appends.push(Append { items, ..append });
            texts.push(text);
        }
        let room = rng.range(10_000..=2_000_000);
        let fault = if rng.bool() {
            Injection::always(DiskFault::Full { room: room as u64 })
        } else {
            // Two writes for each page of the WAL.
            Injection::once(DiskFault::Write).after(room as u64 / 4096)
        };
        let futures = appends.iter().map(|append| store.append(&scope, append));
        let answers = as_a_group(&directory, &disk, &store, &[fault], futures);
        if disk.counts().failed == 0 {
            return Err("nothing broke".to_owned());
        }
        disk.heal();
        let mut expected = Vec::new();
        for (answer, text) in answers.iter().zip(&texts) {
            match (answer, fault.fault) {
                (Ok(_), _) => expected.push(text.clone()),
                (Err(Error::Full), DiskFault::Full { .. }) => failed += 1,
                (other, fault) => return Err(format!("{other:?} with {fault:?}")),
            }
        }
        if history(&store, &thread)? != expected {
            return Err("what is there is not what was acknowledged".to_owned());
        }
        for ((answer, text), append) in answers.iter().zip(&texts).zip(&appends) {
            if answer.is_err() {
                block_on(store.append(&scope, append)).map_err(said)?;
                expected.push(text.clone());
            }
        }
        done += expected.len();
        if history(&store, &thread)? != expected {
            return Err("what was sent again is not there once".to_owned());
        }
        sound(&store)
    });
    println!("table r14 large writes: failed={failed} done={done} twice=0");
}

/// R3 and R14: of two claims of one run one is granted, also when their commit had an unknown
/// outcome and each was retried.
#[test]
fn r14_of_two_claims_in_an_ambiguous_group_one_is_granted() {
    for fault in [DiskFault::SyncKept, DiskFault::SyncLost] {
        let directory = Scratch::new("claims");
        let disk = Disk::below(directory.path());
        let scope = TenantScope::local();
        let store = open(&url(directory.path()));
        let life = Life::new(&store, &mut Rng::new(1));
        for write in [Write::Create, Write::Begin] {
            block_on(life.write(&store, write, life.lease())).unwrap();
        }
        drop(store);
        let store = open_later(&url(directory.path())).unwrap();
        // Otherwise its heartbeat would be the first write to fail.
        block_on(store.renew()).unwrap();
        let faults = [Injection::once(fault)];
        let claim = |()| store.claim(&scope, life.run, 1, Claim::Orphan);
        let claims = as_a_group(&directory, &disk, &store, &faults, [(), ()].map(claim));
        assert_eq!(disk.counts().failed, 1);
        let granted = claims.iter().filter(|claim| claim.is_ok()).count();
        assert_eq!(granted, 1, "{fault:?}: {claims:?}");
        let refused = |claim: &Result<_, Error>| matches!(claim, Err(Error::Fenced { .. }));
        assert!(claims.iter().any(refused), "{claims:?}");
    }
}

/// R14: an operation that may have been committed with its group is not reported as unwritten,
/// although the disk was full when it was retried.
#[test]
fn r14_no_space_after_an_ambiguous_commit_does_not_mean_unwritten() {
    let (directory, next) = (Scratch::new("unsure"), Scratch::new("next"));
    let disk = Disk::below(directory.path());
    let store = open(&url(directory.path()));
    let scope = TenantScope::local();
    let thread = named("t");
    let new = NewThread::new(thread.clone());
    block_on(store.open_or_create(&scope, &new, 0)).unwrap();
    let appends = [(); 2].map(|()| append_of(store.ids().run(), thread.clone(), 10));
    let faults = [
        Injection::once(DiskFault::SyncKept),
        Injection::always(DiskFault::Full { room: 0 }),
    ];
    let futures = appends
        .iter()
        .map(|(append, _)| store.append(&scope, append));
    for done in as_a_group(&directory, &disk, &store, &faults, futures) {
        assert!(matches!(done, Err(Error::Io { .. })), "{done:?}");
    }
    disk.copy(next.path()).unwrap();
    let after_kill = open_later(&url(next.path())).unwrap();
    assert_eq!(history(&after_kill, &thread).unwrap().len(), 2);
    // Once there is space, nothing is uncertain any more.
    disk.heal();
    for (append, _) in &appends {
        block_on(store.append(&scope, append)).unwrap();
    }
    let texts = appends.map(|(_, text)| text);
    assert_eq!(history(&store, &thread).unwrap(), texts);
}
