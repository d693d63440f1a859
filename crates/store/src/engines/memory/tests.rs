//! What the suite cannot see from outside: how rows are laid out, that damage is found, and that
//! nothing stays behind.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_testkit::{Rng, property};

use super::Memory;
use super::schema::{StoredContent, TenantTables};
use crate::{
    Anchor, Append, At, Begin, Begun, Claim, Engine, Error, Fork, Heartbeat, Ids, ItemRef, Lease,
    ManualClock, NewItem, NewThread, NodeRef, Options, Publish, RunId, Span, TenantScope, ThreadId,
    Version,
};

/// Engines in memory never wait, except for a change.
fn now<F: Future>(future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

struct Case {
    memory: Memory,
    ids: Arc<Ids>,
    clock: Arc<ManualClock>,
    scope: TenantScope,
}

impl Case {
    fn new(heartbeat: Heartbeat) -> Self {
        let clock = Arc::new(ManualClock::at(1_000_000));
        let ids = Arc::new(Ids::new(Arc::<ManualClock>::clone(&clock)));
        let options = options(&clock, heartbeat);
        Self {
            memory: Memory::new(options, &ids),
            ids,
            clock,
            scope: TenantScope::local(),
        }
    }

    fn thread(&self, name: &str) -> ThreadId {
        let id = ThreadId::new(name).unwrap();
        let new = NewThread::new(id.clone());
        now(self.memory.open_or_create(&self.scope, &new, 0)).unwrap();
        id
    }

    fn append(&self, thread: &ThreadId, items: Vec<NewItem>) -> RunId {
        let append = Append {
            run: self.ids.run(),
            thread: thread.clone(),
            expected: None,
            items,
            state: None,
            key: None,
        };
        now(self.memory.append(&self.scope, &append)).unwrap();
        append.run
    }

    fn say(&self, thread: &ThreadId, text: &str) -> RunId {
        self.append(thread, NewItem::of(&[Message::user(text)]))
    }

    fn fork(&self, from: At, name: &str) -> ThreadId {
        let id = ThreadId::new(name).unwrap();
        let fork = Fork {
            from,
            thread: NewThread::new(id.clone()),
        };
        now(self.memory.fork(&self.scope, &fork)).unwrap();
        id
    }

    fn begin(&self, thread: &ThreadId, version: u64) -> Lease {
        let at = Anchor::Head {
            thread: thread.clone(),
            expected: Version(version),
        };
        let begin = Begin::new(self.ids.run(), at, NewItem::of(&[Message::user("?")]));
        match now(self.memory.begin(&self.scope, &begin)).unwrap() {
            Begun::Started(started) => started.lease,
            Begun::Repeated(run) => panic!("{run:?}"),
        }
    }

    fn texts(&self, at: &At) -> Vec<String> {
        let page = now(self.memory.read(&self.scope, at, Span::Tail, 10_000)).unwrap();
        page.entries
            .iter()
            .map(|entry| entry.message.text().to_string())
            .collect()
    }

    fn sweep(&self, limit: usize) -> u64 {
        let mut items = 0;
        loop {
            let purged = now(self.memory.purge(limit)).unwrap();
            items += purged.items;
            if !purged.more {
                return items;
            }
        }
    }

    fn tables<T>(&self, look: impl FnOnce(&mut TenantTables) -> T) -> T {
        look(
            self.memory
                .lock()
                .tenants
                .get_mut(self.scope.tenant())
                .unwrap(),
        )
    }
}

fn options(clock: &Arc<ManualClock>, heartbeat: Heartbeat) -> Options {
    Options {
        clock: Arc::<ManualClock>::clone(clock),
        heartbeat,
        lease: Duration::from_secs(10),
    }
}

#[test]
fn a_fork_is_one_row_and_a_branch_one_timeline() {
    let case = Case::new(Heartbeat::Manual);
    let thread = case.thread("t");
    let first = case.say(&thread, "one");
    case.say(&thread, "two");
    let rows = |tables: &mut TenantTables| {
        (
            tables.threads.len(),
            tables.timelines.len(),
            tables.runs.len(),
        )
    };
    assert_eq!(case.tables(rows), (1, 1, 2));
    let fork = case.fork(At::Node(NodeRef::Run(first)), "fork");
    assert_eq!(case.tables(rows), (2, 1, 2));
    case.say(&fork, "three");
    assert_eq!(case.tables(rows), (2, 2, 3));
    case.say(&fork, "four");
    assert_eq!(case.tables(rows), (2, 2, 4));
}

#[test]
fn a_request_is_stored_once_and_goes_with_its_last_run() {
    let case = Case::new(Heartbeat::Manual);
    let request = RawJson::new(r#"{"model":"demo"}"#).unwrap();
    let names = ["a", "b"];
    for name in names {
        let thread = case.thread(name);
        let at = Anchor::Head {
            thread,
            expected: Version(0),
        };
        let begin = Begin {
            request: Some(request.clone()),
            ..Begin::new(case.ids.run(), at, Vec::new())
        };
        now(case.memory.begin(&case.scope, &begin)).unwrap();
    }
    assert_eq!(case.tables(|tables| tables.requests.len()), 1);
    for (name, left) in names.into_iter().zip([1, 0]) {
        let thread = ThreadId::new(name).unwrap();
        now(case.memory.delete(&case.scope, &thread)).unwrap();
        assert_eq!(case.tables(|tables| tables.requests.len()), left);
    }
}

#[test]
fn damage_is_found_and_not_served() {
    type Harm = fn(&mut TenantTables, RunId);
    let change_body: Harm = |tables, run| {
        let item = tables.item_mut(ItemRef { run, no: 1 }).unwrap();
        let NewItem::Content(other) = NewItem::of(&[Message::user("forged")]).remove(0) else {
            panic!("something was said")
        };
        item.what = StoredContent::Present(other);
    };
    let lose_item: Harm = |tables, run| tables.runs.get_mut(&run).unwrap().items[0] = None;
    let change_tokens: Harm = |tables, run| {
        let at = tables.runs[&run].nodes[0].at;
        let timeline = tables.timelines.get_mut(&at.timeline).unwrap();
        let node = timeline
            .nodes
            .iter_mut()
            .find(|node| node.first == at.first);
        node.unwrap().tokens += 1;
    };
    let swap_items: Harm = |tables, run| tables.runs.get_mut(&run).unwrap().items.swap(0, 1);
    // All of them at the second position, in the first item of the run or in its node.
    for (n, (harm, is_item)) in [
        (change_body, true),
        (lose_item, true),
        (change_tokens, false),
        (swap_items, true),
    ]
    .into_iter()
    .enumerate()
    {
        let case = Case::new(Heartbeat::Manual);
        let thread = case.thread("t");
        case.say(&thread, "before");
        let run = case.append(
            &thread,
            NewItem::of(&[Message::user("a"), Message::user("b")]),
        );
        let checked = now(case.memory.check(&mut |_| {})).unwrap();
        assert_eq!(checked.damage, []);
        case.tables(|tables| harm(tables, run));
        let at = At::Thread(thread.clone());
        let error = now(case.memory.read(&case.scope, &at, Span::Tail, 10));
        let Err(Error::Corrupt { place, .. }) = error else {
            panic!("{n}: {error:?}");
        };
        let item = is_item.then_some(ItemRef { run, no: 1 });
        assert_eq!(place.thread.as_ref(), Some(&thread), "{n}: {place}");
        assert_eq!(
            (place.position, place.item),
            (Some(2), item),
            "{n}: {place}"
        );
        let checked = now(case.memory.check(&mut |_| {})).unwrap();
        assert!(!checked.damage.is_empty(), "{n}");
        assert_eq!(checked.damage[0].thread.as_deref(), Some("t"));
        assert!(
            checked.damage[0].place.contains(&run.to_hex()),
            "{n}: {checked:?}"
        );
        let named = |damage: &crate::Damage| damage.position == Some(2) && damage.item == item;
        assert!(checked.damage.iter().any(named), "{n}: {checked:?}");
    }
}

#[test]
fn with_automatic_heartbeats_a_process_lives_as_long_as_its_handle() {
    let case = Case::new(Heartbeat::Automatic);
    let thread = case.thread("t");
    let first = case
        .memory
        .handle(options(&case.clock, Heartbeat::Automatic));
    let at = Anchor::Head {
        thread: thread.clone(),
        expected: Version(0),
    };
    let begin = Begin::new(case.ids.run(), at, NewItem::of(&[Message::user("?")]));
    now(first.begin(&case.scope, &begin)).unwrap();
    case.clock.advance(Duration::from_secs(3600));
    assert_eq!(now(case.memory.orphans(10)).unwrap(), []);
    drop(first);
    let orphans = now(case.memory.orphans(10)).unwrap();
    assert_eq!(orphans.len(), 1);
    let claim = case.memory.claim(&case.scope, begin.run, 1, Claim::Orphan);
    assert_eq!(now(claim).unwrap().lease.epoch, 2);
    assert_eq!(now(case.memory.orphans(10)).unwrap(), []);
}

#[test]
fn a_silent_process_can_be_forgotten_and_come_back() {
    let case = Case::new(Heartbeat::Manual);
    let thread = case.thread("t");
    now(case.memory.renew()).unwrap();
    case.clock.advance(Duration::from_secs(3600));
    case.sweep(10);
    assert_eq!(case.memory.lock().shared.owners.len(), 0);
    let lease = case.begin(&thread, 0);
    assert_eq!(now(case.memory.orphans(10)).unwrap(), []);
    let publish = Publish::new(0, Vec::new());
    now(case.memory.publish(&case.scope, lease, &publish)).unwrap();
}

#[test]
fn closing_stops_a_handle_and_wakes_its_waiters() {
    let case = Case::new(Heartbeat::Manual);
    let thread = case.thread("t");
    let other = case.memory.handle(options(&case.clock, Heartbeat::Manual));
    {
        let mut waits = std::pin::pin!(other.changed(&case.scope, &thread, Version(0)));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        now(other.close()).unwrap();
        assert!(matches!(now(waits), Err(Error::Closed)));
    }
    let at = At::Thread(thread.clone());
    assert!(matches!(
        now(other.open(&case.scope, &at, 1)),
        Err(Error::Closed)
    ));
    assert!(matches!(now(other.renew()), Err(Error::Closed)));
    case.say(&thread, "goes on");
}

/// What a thread should hold, by name.
type Model = HashMap<String, Vec<String>>;

/// Random threads, forks, branches and deletions, compared with lists of texts. In the end
/// everything is deleted, and no row is left.
fn random_forest(rng: &mut Rng, size: usize) {
    let case = Case::new(Heartbeat::Manual);
    let mut model = Model::new();
    // Nodes by response id, with what their branch says; they go with their thread.
    let mut nodes: Vec<(RunId, String, Vec<String>)> = Vec::new();
    let mut made = 0;
    for n in 0..size * 2 {
        let mut names: Vec<_> = model.keys().cloned().collect();
        names.sort();
        let what = rng.below(10);
        if names.is_empty() || what == 0 {
            made += 1;
            let name = format!("t{made}");
            case.thread(&name);
            model.insert(name, Vec::new());
            continue;
        }
        let name = rng.pick(&names).clone();
        let id = ThreadId::new(&name).unwrap();
        match what {
            1..=4 => {
                let mut texts = model[&name].clone();
                // Something new, or something that was said before.
                let again = nodes
                    .iter()
                    .find(|_| rng.chance(0.2))
                    .filter(|_| rng.bool());
                let (run, text) = match again {
                    Some((run, _, said)) => {
                        let item = NewItem::Repeat(ItemRef { run: *run, no: 1 });
                        (case.append(&id, vec![item]), said.last().unwrap().clone())
                    }
                    None => (case.say(&id, &format!("{n}")), format!("{n}")),
                };
                texts.push(text);
                nodes.push((run, name.clone(), texts.clone()));
                model.insert(name, texts);
            }
            5 => {
                made += 1;
                let fork = format!("t{made}");
                case.fork(At::Thread(id), &fork);
                let texts = model[&name].clone();
                model.insert(fork, texts);
            }
            6 | 7 if !nodes.is_empty() => {
                let (run, owner, texts) = rng.pick(&nodes).clone();
                if what == 6 {
                    made += 1;
                    let fork = format!("t{made}");
                    case.fork(At::Node(NodeRef::Run(run)), &fork);
                    model.insert(fork, texts);
                    continue;
                }
                let text = format!("{n}");
                let input = NewItem::of(&[Message::user(&*text)]);
                let begin = Begin::new(case.ids.run(), Anchor::Node(NodeRef::Run(run)), input);
                let begun = now(case.memory.begin(&case.scope, &begin)).unwrap();
                let Begun::Started(started) = begun else {
                    panic!("{begun:?}")
                };
                let publish = Publish::new(0, Vec::new());
                let done = case.memory.publish(&case.scope, started.lease, &publish);
                let mut branch = texts;
                branch.push(text);
                if now(done).unwrap().moved {
                    model.insert(owner.clone(), branch.clone());
                }
                nodes.push((begin.run, owner, branch));
            }
            8 => {
                now(case.memory.delete(&case.scope, &id)).unwrap();
                model.remove(&name);
                nodes.retain(|(_, owner, _)| *owner != name);
            }
            _ => {
                now(case.memory.purge(rng.below(20))).unwrap();
            }
        }
    }
    for (name, texts) in &model {
        let at = At::Thread(ThreadId::new(name).unwrap());
        assert_eq!(case.texts(&at), *texts, "{name}");
    }
    for (run, _, texts) in &nodes {
        assert_eq!(case.texts(&At::Node(NodeRef::Run(*run))), *texts);
    }
    let checked = now(case.memory.check(&mut |_| {})).unwrap();
    assert_eq!(checked.damage, []);
    case.sweep(1 + rng.below(9));
    let checked = now(case.memory.check(&mut |_| {})).unwrap();
    assert_eq!(
        (checked.damage, checked.threads),
        (vec![], model.len() as u64)
    );
    for (name, texts) in &model {
        let id = ThreadId::new(name).unwrap();
        assert_eq!(case.texts(&At::Thread(id.clone())), *texts, "{name}");
        now(case.memory.delete(&case.scope, &id)).unwrap();
    }
    case.sweep(1 + rng.below(9));
    case.tables(|tables| {
        let left = (
            tables.threads.len(),
            tables.names.len(),
            tables.timelines.len(),
        );
        assert_eq!((left, tables.runs.len()), ((0, 0, 0), 0));
        let orders = (
            tables.recent.len(),
            tables.run_order.len(),
            tables.keys.len(),
        );
        assert_eq!(orders, (0, 0, 0));
    });
}

#[test]
fn random_forests_are_what_a_list_says_and_leave_nothing() {
    property("memory forests", 200, |rng, size| {
        random_forest(rng, size);
        Ok(())
    });
}
