use std::path::Path;

use rusqlite::Connection;

use super::{Disk, DiskFault, FileKind, Injection, Tally, environment};
use crate::{Rng, Scratch};

fn open(path: &Path, synchronous: &str) -> Connection {
    let connection = Connection::open(path).unwrap();
    let set = format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}; PRAGMA wal_autocheckpoint=40;"
    );
    connection.execute_batch(&set).unwrap();
    connection
}

/// Inserts until the power is cut; returns how many rows were acknowledged, and how many exist.
fn acknowledged_and_found(synchronous: &str, seed: u64) -> (i64, i64, Tally) {
    let (disk_at, image_at) = (Scratch::new("disk"), Scratch::new("image"));
    let disk = Disk::below(disk_at.path());
    let connection = open(&disk_at.path().join("a.db"), synchronous);
    connection
        .execute_batch("CREATE TABLE t(n INTEGER PRIMARY KEY, body BLOB)")
        .unwrap();
    let mut rng = Rng::new(seed);
    disk.cut_at(rng.range(1..=300) as u64, rng.next_u64());
    let mut acknowledged = 0;
    while connection
        .execute(
            "INSERT INTO t(body) VALUES(?)",
            [rng.fork().bytes(3000).as_slice()],
        )
        .is_ok()
    {
        acknowledged += 1;
    }
    assert!(disk.is_cut());
    assert!(connection.execute_batch("DELETE FROM t").is_err());
    let tally = disk.write_image(image_at.path()).unwrap();
    let image = Connection::open(image_at.path().join("a.db")).unwrap();
    let found = image.query_row("SELECT count(*) FROM t", [], |row| row.get(0));
    let sound: Result<String, _> = image.query_row("PRAGMA integrity_check", [], |row| row.get(0));
    match (found, sound) {
        (Ok(found), Ok(sound)) if sound == "ok" => (acknowledged, found, tally),
        _ => (acknowledged, -1, tally),
    }
}

#[test]
fn a_cut_keeps_what_was_synced_and_loses_what_was_not() {
    let (mut total, mut lost) = (Tally::default(), 0);
    for seed in 0..60 {
        let (acknowledged, found, tally) = acknowledged_and_found("FULL", seed);
        // The insert during the cut may exist or not.
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "seed {seed}: {found} of {acknowledged}"
        );
        total += tally;
        let (acknowledged, found, _) = acknowledged_and_found("OFF", seed);
        lost += u32::from(found < acknowledged);
    }
    assert!(total.dropped > 0 && total.torn > 0 && total.kept > 0);
    assert!(lost > 20, "only {lost} of 60 cuts lost what was not synced");
}

#[test]
fn files_elsewhere_are_the_platforms() {
    let (covered, elsewhere) = (Scratch::new("disk"), Scratch::new("elsewhere"));
    let disk = Disk::below(covered.path());
    disk.cut_now(1);
    let connection = open(&elsewhere.path().join("a.db"), "FULL");
    connection.execute_batch("CREATE TABLE t(n)").unwrap();
    assert_eq!(disk.counts().cuttable(), 0);
    assert!(Connection::open(covered.path().join("a.db")).is_err());
}

#[test]
fn faults_come_when_they_are_asked_for_and_go_when_the_disk_is_healed() {
    let scratch = Scratch::new("faults");
    let disk = Disk::below(scratch.path());
    let connection = open(&scratch.path().join("a.db"), "FULL");
    let insert = || connection.execute_batch("INSERT INTO t VALUES(zeroblob(2000))");
    connection.execute_batch("CREATE TABLE t(n)").unwrap();
    let code = |done: rusqlite::Result<()>| done.unwrap_err().sqlite_error_code().unwrap();
    for (fault, expected) in [
        (DiskFault::Write, rusqlite::ErrorCode::SystemIoFailure),
        (DiskFault::SyncKept, rusqlite::ErrorCode::SystemIoFailure),
        (DiskFault::SyncLost, rusqlite::ErrorCode::SystemIoFailure),
        (DiskFault::Full { room: 700 }, rusqlite::ErrorCode::DiskFull),
    ] {
        disk.inject(Injection::always(fault).within(FileKind::Log));
        assert_eq!(code(insert()), expected, "{fault:?}");
        disk.heal();
        insert().unwrap();
    }
    disk.inject(Injection::once(DiskFault::SyncKept).after(1));
    insert().unwrap();
    assert!(insert().is_err());
    insert().unwrap();
    assert_eq!(disk.counts().failed, 5);
    let count: i64 = connection
        .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 6);
}

#[test]
fn what_a_failed_sync_lost_is_gone_after_a_cut_and_what_it_kept_is_not() {
    for (fault, there) in [(DiskFault::SyncLost, 0), (DiskFault::SyncKept, 1)] {
        let (scratch, image) = (Scratch::new("lost"), Scratch::new("image"));
        let disk = Disk::below(scratch.path());
        let connection = open(&scratch.path().join("a.db"), "FULL");
        connection.execute_batch("CREATE TABLE t(n)").unwrap();
        disk.inject(Injection::once(fault));
        assert!(connection.execute_batch("INSERT INTO t VALUES(1)").is_err());
        disk.cut_now(7);
        disk.write_image(image.path()).unwrap();
        let found: i64 = Connection::open(image.path().join("a.db"))
            .unwrap()
            .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
            .unwrap();
        assert_eq!(found, there, "{fault:?}");
    }
}

#[test]
fn the_environment_is_read_or_refused() {
    assert_eq!(environment::parse("cut@12", "5"), Ok((12, 5)));
    let refused = |plan, seed| environment::parse(plan, seed).unwrap_err();
    assert_eq!(refused("cut@0", "5"), "THROUGHLINE_DISK=cut@0 is not cut@N");
    assert_eq!(refused("full", "5"), "THROUGHLINE_DISK=full is not cut@N");
    assert_eq!(
        refused("cut@1", "soon"),
        "THROUGHLINE_DISK_SEED=soon is not a number"
    );
}
