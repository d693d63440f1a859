//! Redactions in the file: nothing of what was removed, damage, and stores that were written before.

use rusqlite::Connection;
use throughline_model::Message;
use throughline_model::json::RawJson;

use super::{Dir, Fixture, block_on, options, texts};
use crate::engines::sqlite::schema::{MIGRATIONS, VERSION, migrate, version};
use crate::engines::sqlite::start;
use crate::{
    Anchor, At, Begin, Begun, CallState, Engine, ErrorKind, Flush, ItemRef, NewApproval, NewItem,
    PlannedCall, Publish, RemoteCall, State, Step, StoredEvent, ThreadId, Version,
    arguments_digest,
};

const CANARY: &str = "canary-4711";

/// Whether a word is in any file of the store.
fn holds(f: &Fixture, word: &str) -> bool {
    let files = std::fs::read_dir(&f.dir.0).unwrap();
    let mut files = files.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    files.any(|bytes| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    })
}

fn said(text: &str) -> Vec<NewItem> {
    NewItem::of(&[super::said(text)])
}

/// A turn that says the canary in every place that can hold it, and a turn after it.
fn say_it(f: &Fixture, thread: &ThreadId) -> crate::RunId {
    let word = |text: &str| RawJson::new(&format!(r#"{{"said":"{text}"}}"#)).unwrap();
    let mut begin = Begin::new(
        f.ids.run(),
        Anchor::Head {
            thread: thread.clone(),
            expected: Version(0),
        },
        NewItem::of(&[Message::user(CANARY)]),
    );
    begin.request = RawJson::new(&format!(r#"{{"v":1,"later":["{CANARY}"]}}"#)).ok();
    begin.events = Some(Flush::new(
        0,
        &[StoredEvent {
            kind: 1,
            body: CANARY.into(),
        }],
    ));
    let Begun::Started(started) = block_on(f.store.begin(&f.scope, &begin)).unwrap() else {
        panic!()
    };
    let lease = started.lease;
    let remote = RemoteCall {
        step: 0,
        handle: word(CANARY),
    };
    block_on(f.store.remote_call(&f.scope, lease, &remote)).unwrap();
    let step = Step {
        // Large enough to be compressed, so that the file has it in another form.
        items: said(&CANARY.repeat(2_000)),
        calls: vec![PlannedCall {
            call: "a".into(),
            tool: "tide".into(),
            effect: crate::Effect::Once,
            state: CallState::Approval,
        }],
        approvals: vec![NewApproval {
            id: f.ids.approval(),
            step: 0,
            position: 0,
            shown: arguments_digest("tide", "{}"),
            expires: None,
            detail: Some(word(CANARY)),
        }],
        ..Step::default()
    };
    block_on(f.store.step(&f.scope, lease, &step)).unwrap();
    let publish = Publish {
        state: Some(derived(CANARY)),
        ..Publish::new(1, said("aside"))
    };
    block_on(f.store.publish(&f.scope, lease, &publish)).unwrap();
    lease.run
}

fn derived(word: &str) -> State {
    let mut state = State::default();
    state.set_compaction(RawJson::new(&format!(r#"{{"digest":"{word}"}}"#)).ok());
    state
}

fn redact(f: &Fixture, run: crate::RunId, no: u32) {
    block_on(f.store.redact(&f.scope, ItemRef { run, no }, "ada")).unwrap();
}

#[test]
fn what_was_redacted_is_in_no_file() {
    let f = Fixture::new();
    let id = f.thread("t");
    let run = say_it(&f, &id);
    // A later epoch says it once more.
    let lease = f.begin(&id, "more");
    let publish = Publish {
        state: Some(derived(&CANARY.repeat(600))),
        ..Publish::new(0, said("answer"))
    };
    block_on(f.store.publish(&f.scope, lease, &publish)).unwrap();
    assert!(holds(&f, CANARY));
    for no in [1, 2] {
        redact(&f, run, no);
    }
    let mark = "[redacted]";
    let expected = [mark, mark, "aside", "more", "answer"];
    assert_eq!(f.texts(&id), expected);
    let journal = block_on(f.store.journal(&f.scope, run)).unwrap();
    assert_eq!(journal.request.unwrap().get(), r#"{"v":1}"#);
    let opened = block_on(f.store.open(&f.scope, &At::Thread(id.clone()), 0)).unwrap();
    assert_eq!(opened.state, State::default());
    let checked = block_on(f.store.check(&mut |_| {})).unwrap();
    assert_eq!((checked.redacted, checked.damage), (2, vec![]));
    // A copy of the whole store has nothing of it either.
    let copy = f.dir.file("copy.db");
    let backups = f.store.backups().unwrap();
    block_on(backups.backup(&copy, &mut |_| {})).unwrap();
    block_on(f.store.close()).unwrap();
    let f = Fixture {
        store: f.reopened(),
        ..f
    };
    assert_eq!(f.texts(&id), expected);
    block_on(f.store.close()).unwrap();
    assert!(!holds(&f, CANARY));
}

#[test]
fn what_is_left_is_checked() {
    let changes = [
        "UPDATE redaction SET rest=CAST(substr(rest, 1, length(rest)-1) || x'20' AS BLOB)",
        "UPDATE redaction SET rest=x'00'",
        "UPDATE redaction SET rest=zeroblob(16)",
        "UPDATE redaction SET by='bob'",
        "UPDATE redaction SET at=at+1",
        // That of another item.
        "UPDATE redaction SET rest=(SELECT rest FROM redaction WHERE no=2) WHERE no=1",
        "DELETE FROM redaction WHERE no=1",
    ];
    for sql in changes {
        let f = Fixture::new();
        let id = f.thread("t");
        let run = f.turn(&id, "one", "1");
        redact(&f, run, 1);
        redact(&f, run, 2);
        assert_eq!(f.texts(&id), ["[redacted]"; 2]);
        assert_eq!(f.raw().execute(sql, []).unwrap().min(1), 1, "{sql}");
        let error = texts(&f.reopened(), &f.scope, &id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{sql}: {error}");
        let damage = block_on(f.store.check(&mut |_| {})).unwrap().damage;
        assert!(!damage.is_empty(), "{sql}");
    }
    // A state from which something was taken out.
    for sql in [
        "UPDATE state SET body='{\"v\":1,\"compaction\":7}'",
        "UPDATE state SET rest=NULL",
        "UPDATE state SET rest=zeroblob(16)",
    ] {
        let f = Fixture::new();
        let id = f.thread("t");
        let run = say_it(&f, &id);
        redact(&f, run, 1);
        assert_eq!(f.texts(&id).len(), 3);
        f.raw().execute(sql, []).unwrap();
        let error = texts(&f.reopened(), &f.scope, &id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{sql}: {error}");
        let damage = block_on(f.store.check(&mut |_| {})).unwrap().damage;
        assert!(!damage.is_empty(), "{sql}");
    }
}

#[test]
fn a_damaged_item_is_removed_all_the_same() {
    let f = Fixture::new();
    let id = f.thread("t");
    let run = f.turn(&id, "one", "1");
    let sql = "UPDATE item SET body=x'02417420666f75722e' WHERE no=1";
    f.raw().execute(sql, []).unwrap();
    redact(&f, run, 1);
    assert_eq!(texts(&f.reopened(), &f.scope, &id).unwrap(), ["", "1"]);
    assert_eq!(block_on(f.store.check(&mut |_| {})).unwrap().damage, []);
}

#[test]
fn a_store_of_version_7_keeps_its_redactions() {
    let dir = Dir::new();
    let path = dir.file("store.db");
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(include_str!("schema_3.sql")).unwrap();
    let before = MIGRATIONS.iter().filter(|step| step.to < 8).count();
    migrate(&raw, &MIGRATIONS[..before], &mut |_| {}).unwrap();
    assert_eq!(version(&raw).unwrap(), 7);
    drop(raw);
    let clock = std::sync::Arc::new(crate::ManualClock::at(1_790_000_000_000));
    let ids = crate::Ids::new(std::sync::Arc::<crate::ManualClock>::clone(&clock));
    let store = start(&path, options(&clock), &std::sync::Arc::new(ids)).unwrap();
    assert_eq!(version(&Connection::open(&path).unwrap()).unwrap(), VERSION);
    let scope = crate::TenantScope::local();
    let redacted = |store: &super::Sqlite| {
        let mut found = Vec::new();
        for id in ["tides", "what-if", "still", "heir"] {
            let at = At::Thread(ThreadId::new(id).unwrap());
            let opened = block_on(store.open(&scope, &at, 1000)).unwrap();
            found.extend(
                opened
                    .entries
                    .into_iter()
                    .filter(|one| one.redacted.is_some()),
            );
        }
        found
    };
    // Nothing was left of it then, and nothing is.
    let old = redacted(&store);
    assert!(!old.is_empty());
    for entry in &old {
        assert_eq!(entry.redacted.as_ref().unwrap().by, "ada");
        assert_eq!(entry.message.contents, []);
        // Again: the first redaction stays.
        block_on(store.redact(&scope, entry.at, "bob")).unwrap();
    }
    assert_eq!(redacted(&store), old);
    let at = At::Thread(ThreadId::new("heir").unwrap());
    let first = block_on(store.open(&scope, &at, 10)).unwrap().entries[0].at;
    block_on(store.redact(&scope, first, "bob")).unwrap();
    let text = block_on(store.open(&scope, &at, 10)).unwrap().entries[0]
        .message
        .text();
    assert_eq!(text, "[redacted]");
    assert_eq!(block_on(store.check(&mut |_| {})).unwrap().damage, []);
}
