use rusqlite::Connection;

use super::{Dir, Fixture};
use crate::sqlite::schema::{MIGRATIONS, Migration, VERSION, migrate, version};
use crate::{Error, Ids, Options};

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
    let error = crate::sqlite::migrate(&path, &mut |_| {}).unwrap_err();
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
    let error = crate::sqlite::start(&path, Options::default(), &ids)
        .err()
        .unwrap();
    assert!(matches!(error.into_error(), Error::Invalid { .. }));
    let text = dir.file("text.db");
    std::fs::write(
        &text,
        "this is not a database at all, only a text of some length".repeat(20),
    )
    .unwrap();
    let error = crate::sqlite::start(&text, Options::default(), &ids)
        .err()
        .unwrap();
    assert!(matches!(error.into_error(), Error::Corrupt { .. }));
    let error = crate::sqlite::migrate(&dir.file("none.db"), &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }));
}
