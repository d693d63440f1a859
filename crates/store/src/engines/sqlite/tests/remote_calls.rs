//! Remote calls in the file: damage, erasure, and stores that were written before there were any.

use rusqlite::Connection;
use throughline_model::json::RawJson;

use super::{Dir, Fixture, block_on};
use crate::engines::sqlite::schema::{MIGRATIONS, VERSION, migrate, version};
use crate::{
    At, Claim, Engine, Error, Fork, Ids, ItemRef, Lease, Mode, NewItem, NewThread, NodeId, NodeRef,
    Options, RemoteCall, Step, StepNode, TenantScope, ThreadId,
};

fn call(step: u32, word: &str) -> RemoteCall {
    let handle = RawJson::new(&format!(r#"{{"id":"{word}"}}"#)).unwrap();
    RemoteCall { step, handle }
}

fn store(f: &Fixture, lease: Lease, call: &RemoteCall) {
    block_on(f.store.remote_call(&f.scope, lease, call)).unwrap();
}

#[test]
fn a_damaged_remote_call_is_named_and_not_served() {
    let changes = [
        "UPDATE remote_call SET handle='{\"id\":\"other\"}'",
        // A smaller number must not make it one that is over.
        "UPDATE remote_call SET step=0",
        "UPDATE remote_call SET step=-1",
        "UPDATE remote_call SET digest=x'00112233445566778899aabbccddeeff'",
        "UPDATE remote_call SET digest=x'00'",
        // The handle of another run.
        "UPDATE remote_call SET handle=(SELECT handle FROM remote_call WHERE run=2),
           digest=(SELECT digest FROM remote_call WHERE run=2) WHERE run=1",
    ];
    for sql in changes {
        let f = Fixture::new();
        let [lease, other] = ["t", "other"].map(|name| {
            let lease = f.begin(&f.thread(name), "one");
            block_on(f.store.step(&f.scope, lease, &Step::default())).unwrap();
            lease
        });
        let waiting = call(1, "resp_1");
        store(&f, lease, &waiting);
        store(&f, other, &call(1, "resp_2"));
        let journal = block_on(f.store.journal(&f.scope, lease.run)).unwrap();
        assert_eq!(journal.remote, Some(waiting));
        assert_eq!(block_on(f.store.check(&mut |_| {})).unwrap().damage, []);
        f.raw().execute(sql, []).unwrap();
        let error = block_on(f.store.journal(&f.scope, lease.run)).unwrap_err();
        let place = format!("the remote call of {}", lease.run);
        let Error::Corrupt { place: site, .. } = &error else {
            panic!("{sql}: {error}");
        };
        assert_eq!(site.what.as_deref(), Some(&*place), "{sql}: {error}");
        assert_eq!(site.thread.as_ref().map(ThreadId::as_str), Some("t"));
        let damage = block_on(f.store.check(&mut |_| {})).unwrap().damage;
        let named = |one: &crate::Damage| {
            one.place == place && one.thread.as_deref() == Some("t") && one.tenant.is_some()
        };
        assert!(damage.iter().any(named), "{sql}: {damage:?}");
    }
    let f = Fixture::new();
    store(&f, f.begin(&f.thread("t"), "one"), &call(0, "resp"));
    f.raw()
        .execute("UPDATE remote_call SET run=99", [])
        .unwrap();
    let damage = block_on(f.store.check(&mut |_| {})).unwrap().damage;
    assert!(
        damage.iter().any(|one| one.place == "a remote call"),
        "{damage:?}"
    );
}

#[test]
fn a_handle_is_in_no_file_after_its_run_is_erased() {
    let f = Fixture::new();
    let holds = |word: &str| {
        let files = std::fs::read_dir(&f.dir.0).unwrap();
        let mut files = files.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        files.any(|bytes| {
            bytes
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        })
    };
    // Deleted while it waits, and after it was published.
    let gone = f.thread("gone");
    let lease = f.begin(&gone, "one");
    store(&f, lease, &call(0, "canary-published"));
    f.publish(lease, 0, "1");
    let lease = f.begin(&gone, "two");
    store(&f, lease, &call(0, "canary-replaced"));
    store(&f, lease, &call(0, "canary-waiting"));
    let kept = f.thread("kept");
    let lease = f.begin(&kept, "one");
    f.publish(lease, 0, "1");
    // Deleted while a fork keeps a node of the run.
    let shared = f.thread("shared");
    let mut begin = crate::Begin::new(
        f.ids.run(),
        crate::Anchor::Head {
            thread: shared.clone(),
            expected: crate::Version(0),
        },
        NewItem::of(&[throughline_model::Message::user("one")]),
    );
    begin.mode = Mode::PerCall;
    let crate::Begun::Started(started) = block_on(f.store.begin(&f.scope, &begin)).unwrap() else {
        panic!()
    };
    let lease = started.lease;
    let step = Step {
        items: NewItem::of(&[super::said("said")]),
        node: Some(StepNode::default()),
        ..Step::default()
    };
    block_on(f.store.step(&f.scope, lease, &step)).unwrap();
    let node = NodeId {
        run: lease.run,
        step: 0,
    };
    let fork = Fork {
        from: At::Node(NodeRef::Node(node)),
        thread: NewThread::new(ThreadId::new("fork").unwrap()),
    };
    block_on(f.store.fork(&f.scope, &fork)).unwrap();
    store(&f, lease, &call(1, "canary-shared"));
    // One of its items is redacted.
    let redacted = f.begin(&kept, "two");
    store(&f, redacted, &call(0, "canary-redacted"));
    f.publish(redacted, 0, "2");
    let ends = ["published", "replaced", "waiting", "shared", "redacted"];
    let canaries = ends.map(|end| format!("canary-{end}"));
    for canary in &canaries {
        assert!(holds(canary), "{canary}");
    }
    for thread in [&gone, &shared] {
        block_on(f.store.delete(&f.scope, thread)).unwrap();
    }
    let item = ItemRef {
        run: redacted.run,
        no: 1,
    };
    block_on(f.store.redact(&f.scope, item, "ada")).unwrap();
    while block_on(f.store.purge(10)).unwrap().more {}
    assert_eq!(block_on(f.store.check(&mut |_| {})).unwrap().damage, []);
    assert_eq!(f.texts(&fork.thread.id), ["one", "said"]);
    block_on(f.store.close()).unwrap();
    for canary in &canaries {
        assert!(!holds(canary), "{canary}");
    }
}

#[test]
fn a_run_without_items_leaves_no_handle_either() {
    let f = Fixture::new();
    let id = f.thread("t");
    let at = crate::Anchor::Head {
        thread: id.clone(),
        expected: crate::Version(0),
    };
    let begin = crate::Begin::new(f.ids.run(), at, Vec::new());
    let crate::Begun::Started(started) = block_on(f.store.begin(&f.scope, &begin)).unwrap() else {
        panic!()
    };
    store(&f, started.lease, &call(0, "canary"));
    let end = crate::End {
        how: crate::Stopped::Failed,
        note: None,
        events: None,
    };
    block_on(f.store.end(&f.scope, started.lease, &end)).unwrap();
    block_on(f.store.delete(&f.scope, &id)).unwrap();
    while block_on(f.store.purge(10)).unwrap().more {}
    block_on(f.store.close()).unwrap();
    let file = std::fs::read(f.dir.file("store.db")).unwrap();
    assert!(!file.windows(6).any(|part| part == b"canary"));
}

#[test]
fn a_store_of_version_3_takes_remote_calls_wherever_its_migration_was_cut_short() {
    for reached in 3..=VERSION {
        let dir = Dir::new();
        let path = dir.file("store.db");
        let raw = Connection::open(&path).unwrap();
        raw.execute_batch(include_str!("schema_3.sql")).unwrap();
        let steps = MIGRATIONS.iter().position(|step| step.to == reached);
        migrate(&raw, &MIGRATIONS[..=steps.unwrap()], &mut |_| {}).unwrap();
        assert_eq!(version(&raw).unwrap(), reached);
        let ids = std::sync::Arc::new(Ids::new(std::sync::Arc::new(crate::SystemClock)));
        let store = crate::engines::sqlite::start(&path, Options::default(), &ids).unwrap();
        assert_eq!(version(&raw).unwrap(), VERSION);
        let scope = TenantScope::local();
        let at = At::Thread(ThreadId::new("left").unwrap());
        let left = block_on(store.open(&scope, &at, 0))
            .unwrap()
            .unsettled
            .unwrap();
        let journal = block_on(store.journal(&scope, left.id)).unwrap();
        assert_eq!(journal.remote, None);
        let claimed = block_on(store.claim(&scope, left.id, left.epoch, Claim::Settle));
        let waiting = call(left.next_step, "resp");
        block_on(store.remote_call(&scope, claimed.unwrap().lease, &waiting)).unwrap();
        let journal = block_on(store.journal(&scope, left.id)).unwrap();
        assert_eq!(journal.remote, Some(waiting));
        let checked = block_on(store.check(&mut |_| {})).unwrap();
        assert_eq!((checked.items, checked.damage), (33, vec![]), "{reached}");
    }
}
