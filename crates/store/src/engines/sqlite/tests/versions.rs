use rusqlite::Connection;

use super::{Dir, Fixture, block_on};
use crate::engines::sqlite::schema::{MIGRATIONS, Migration, VERSION, migrate, version};
use crate::{
    At, Engine, Entry, Error, ErrorKind, Ids, Options, TenantScope, ThreadFilter, ThreadId,
};

const STEPS: &[Migration] = &[
    Migration {
        to: 1,
        sql: "CREATE TABLE meta(key TEXT, value BLOB); CREATE TABLE a(x INTEGER)",
    },
    Migration {
        to: 2,
        sql: "INSERT INTO a VALUES(1); CREATE TABLE b(y INTEGER)",
    },
    Migration {
        to: 3,
        sql: "INSERT INTO b SELECT x FROM a",
    },
];

#[test]
fn migrations_go_on_where_they_were_cut_short() {
    let conn = Connection::open_in_memory().unwrap();
    let mut words = Vec::new();
    migrate(&conn, &STEPS[..1], &mut |word| {
        words.push((word.done, word.total));
    })
    .unwrap();
    // The second step fails half-way: nothing of it stays.
    let broken = Migration {
        to: 2,
        sql: "INSERT INTO a VALUES(1); SELECT nonsense",
    };
    let steps = [Migration { ..STEPS[0] }, broken];
    assert!(migrate(&conn, &steps, &mut |_| {}).is_err());
    assert_eq!(version(&conn).unwrap(), 1);
    migrate(&conn, STEPS, &mut |word| {
        words.push((word.done, word.total));
    })
    .unwrap();
    migrate(&conn, STEPS, &mut |_| panic!("there is nothing to do")).unwrap();
    assert_eq!(version(&conn).unwrap(), 3);
    assert_eq!(words, [(1, 1), (1, 2), (2, 2)]);
    let count: i64 = conn
        .query_row("SELECT count(*) FROM b", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 1);
}

#[test]
fn the_newest_step_is_the_version() {
    assert_eq!(MIGRATIONS.last().unwrap().to, VERSION);
}

#[test]
fn a_newer_store_is_left_alone() {
    let f = Fixture::new();
    f.raw()
        .pragma_update(None, "user_version", VERSION + 1)
        .unwrap();
    let path = f.dir.file("store.db");
    let error = crate::engines::sqlite::migrate(&path, &mut |_| {}).unwrap_err();
    assert!(
        matches!(error, Error::Newer { found, known: VERSION } if found == VERSION + 1),
        "{error:?}"
    );
}

#[test]
fn a_file_of_another_program_is_left_alone() {
    let dir = Dir::new();
    let path = dir.file("other.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE theirs(x)")
        .unwrap();
    let ids = std::sync::Arc::new(Ids::new(std::sync::Arc::new(crate::SystemClock)));
    let error = crate::engines::sqlite::start(&path, Options::default(), &ids)
        .err()
        .unwrap();
    assert!(matches!(error.into_error(), Error::Invalid { .. }));
    let text = dir.file("text.db");
    std::fs::write(
        &text,
        "this is not a database at all, only a text of some length".repeat(20),
    )
    .unwrap();
    let error = crate::engines::sqlite::start(&text, Options::default(), &ids)
        .err()
        .unwrap();
    assert!(matches!(error.into_error(), Error::Corrupt { .. }));
    let error = crate::engines::sqlite::migrate(&dir.file("none.db"), &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }));
}

/// A store that was written by the program of schema version 3, after some changes.
fn from_version_3(changes: &str) -> (Dir, crate::engines::sqlite::Sqlite) {
    let dir = Dir::new();
    let path = dir.file("store.db");
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(include_str!("schema_3.sql")).unwrap();
    raw.execute_batch(changes).unwrap();
    drop(raw);
    let ids = std::sync::Arc::new(Ids::new(std::sync::Arc::new(crate::SystemClock)));
    let store = crate::engines::sqlite::start(&path, Options::default(), &ids).unwrap();
    (dir, store)
}

fn thread(store: &crate::engines::sqlite::Sqlite, id: &str) -> crate::Result<(u64, Vec<Entry>)> {
    let at = At::Thread(ThreadId::new(id).unwrap());
    let opened = block_on(store.open(&TenantScope::local(), &at, 1000))?;
    Ok((opened.thread.tokens(), opened.entries))
}

#[test]
fn what_a_store_of_version_3_has_is_counted_by_the_migration() {
    let (dir, store) = from_version_3("");
    let raw = Connection::open(dir.file("store.db")).unwrap();
    assert_eq!(version(&raw).unwrap(), VERSION);
    let checked = block_on(store.check(&mut |_| {})).unwrap();
    assert_eq!((checked.items, checked.damage), (33, vec![]));
    let scope = TenantScope::local();
    let filter = ThreadFilter::default();
    let listed = block_on(store.threads(&scope, &filter, None, 100)).unwrap();
    let mut totals = Vec::new();
    for listed in &listed.found {
        let (total, entries) = thread(&store, listed.id.as_str()).unwrap();
        assert_eq!(listed.tokens(), total, "{}", listed.id);
        let sum: u64 = entries.iter().map(|entry| u64::from(entry.tokens)).sum();
        assert_eq!(sum, total, "{}", listed.id);
        for entry in &entries {
            // Nothing is left of what was redacted before anything was counted.
            let expected = match entry.redacted {
                Some(_) => 0,
                None => throughline_model::tokens::units(&entry.message),
            };
            assert_eq!(entry.tokens, expected, "{entry:?}");
        }
        totals.push((listed.id.as_str(), entries.len(), total));
    }
    totals.sort_unstable();
    println!("table version 3, counted: {totals:?}");
    let shape: Vec<_> = totals.iter().map(|(id, many, _)| (*id, *many)).collect();
    let expected = [
        ("empty", 0),
        ("heir", 2),
        ("left", 0),
        ("still", 14),
        ("tides", 17),
        ("what-if", 11),
    ];
    assert_eq!(shape, expected);
    // What is in the journal only is counted too, and goes on as what it is.
    let at = At::Thread(ThreadId::new("left").unwrap());
    let run = block_on(store.open(&scope, &at, 0))
        .unwrap()
        .unsettled
        .unwrap();
    let journal = block_on(store.journal(&scope, run.id)).unwrap();
    assert_eq!(journal.entries.len(), 3);
    for entry in &journal.entries {
        assert_ne!(entry.tokens, 0, "{entry:?}");
    }
}

#[test]
fn a_backup_of_version_3_is_counted_when_it_is_restored() {
    let dir = Dir::new();
    let backup = dir.file("backup.db");
    let raw = Connection::open(&backup).unwrap();
    raw.execute_batch(include_str!("schema_3.sql")).unwrap();
    drop(raw);
    let to = dir.file("restored.db");
    assert_eq!(
        crate::engines::sqlite::restore(&backup, &to).unwrap().held,
        1
    );
    let ids = std::sync::Arc::new(Ids::new(std::sync::Arc::new(crate::SystemClock)));
    let restored = crate::engines::sqlite::start(&to, Options::default(), &ids).unwrap();
    assert_eq!(block_on(restored.check(&mut |_| {})).unwrap().damage, []);
    let (_dir, migrated) = from_version_3("");
    for id in ["tides", "what-if", "still", "heir"] {
        let total = thread(&restored, id).unwrap().0;
        assert_eq!(total, thread(&migrated, id).unwrap().0, "{id}");
        assert_ne!(total, 0, "{id}");
    }
}

#[test]
fn what_was_damaged_before_the_migration_is_damaged_after_it() {
    let changes = [
        (
            "a body",
            "UPDATE item SET body=x'02417420666f75722e' WHERE item=5",
        ),
        ("an item that is gone", "DELETE FROM item WHERE item=3"),
        ("a node", "UPDATE node SET step=7 WHERE node=2"),
        ("a node that is gone", "DELETE FROM node WHERE node=2"),
        (
            "a kind that cannot be",
            "UPDATE item SET kind=4096 WHERE item=3",
        ),
        (
            "a head",
            "UPDATE thread SET head_digest=x'00112233445566778899aabbccddeeff' WHERE id='tides'",
        ),
        ("a state", "DELETE FROM state"),
    ];
    for (what, sql) in changes {
        let (_dir, store) = from_version_3(sql);
        let error = thread(&store, "tides").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        let damage = block_on(store.check(&mut |_| {})).unwrap().damage;
        assert!(!damage.is_empty(), "{what}");
        // What lies elsewhere can be read.
        assert_eq!(thread(&store, "heir").unwrap().1.len(), 2, "{what}");
    }
}
