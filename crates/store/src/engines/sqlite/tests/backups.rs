use super::{Fixture, block_on, options, texts};
use crate::engines::sqlite::{restore, start};
use crate::{Backups, Claim, Engine, Error, Publish, RunState};

#[test]
fn a_backup_is_the_store_at_one_moment_and_holds_its_runs() {
    let f = Fixture::new();
    let id = f.thread("t");
    f.turn(&id, "one", "1");
    let lease = f.begin(&id, "two");
    let file = f.dir.file("backup.db");
    let mut words = Vec::new();
    block_on(f.store.backup(&file, &mut |word| words.push(word))).unwrap();
    assert_eq!(words.last().map(|word| word.done == word.total), Some(true));
    let again = block_on(f.store.backup(&file, &mut |_| {})).unwrap_err();
    assert!(matches!(again, Error::Exists { .. }), "{again:?}");
    // What comes later is not in it.
    f.publish(lease, 0, "2");
    let to = f.dir.file("restored.db");
    assert_eq!(restore(&file, &to).unwrap().held, 1);
    let error = restore(&file, &to).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error:?}");
    let restored = start(&to, options(&f.clock), &f.ids).unwrap();
    assert_eq!(texts(&restored, &f.scope, &id).unwrap(), ["one", "1"]);
    let run = block_on(restored.run(&f.scope, lease.run)).unwrap();
    assert_eq!(run.state, RunState::Held);
    // No process goes on with it unasked, and its old lease no longer writes.
    assert_eq!(block_on(restored.orphans(10)).unwrap(), []);
    let publish = Publish::new(0, Vec::new());
    let error = block_on(restored.publish(&f.scope, lease, &publish)).unwrap_err();
    assert!(matches!(error, Error::WrongState { .. }), "{error:?}");
    let error = block_on(restored.claim(&f.scope, lease.run, 1, Claim::Orphan)).unwrap_err();
    assert!(matches!(error, Error::WrongState { .. }), "{error:?}");
    let claimed = block_on(restored.claim(&f.scope, lease.run, 1, Claim::Settle)).unwrap();
    assert_eq!(claimed.lease.epoch, 2);
    assert_eq!(block_on(restored.check(&mut |_| {})).unwrap().damage, []);
    // Nothing unfinished lies about.
    let mut names: Vec<_> = std::fs::read_dir(&f.dir.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("part"))
        .collect();
    names.sort();
    assert_eq!(names, [""; 0]);
}

#[test]
fn only_a_backup_is_restored() {
    let f = Fixture::new();
    let to = f.dir.file("restored.db");
    let text = f.dir.file("text");
    std::fs::write(&text, "no database").unwrap();
    let theirs = f.dir.file("theirs.db");
    rusqlite::Connection::open(&theirs)
        .unwrap()
        .execute_batch("CREATE TABLE t(x)")
        .unwrap();
    for backup in [&text, &theirs, &f.dir.0, &f.dir.file("none")] {
        assert!(restore(backup, &to).is_err(), "{backup:?}");
        assert!(!to.exists());
    }
}

#[test]
fn a_backup_under_load_is_whole() {
    let f = Fixture::new();
    let id = f.thread("t");
    f.turn(&id, "one", "1");
    std::thread::scope(|scope| {
        let (f, id) = (&f, &id);
        let load = scope.spawn(move || {
            for n in 0..100 {
                f.turn(id, &n.to_string(), "x");
            }
        });
        for n in 0..3 {
            let file = f.dir.file(&format!("backup{n}.db"));
            block_on(f.store.backup(&file, &mut |_| {})).unwrap();
            let to = f.dir.file(&format!("restored{n}.db"));
            restore(&file, &to).unwrap();
            let restored = start(&to, options(&f.clock), &f.ids).unwrap();
            let checked = block_on(restored.check(&mut |_| {})).unwrap();
            assert_eq!(checked.damage, []);
            let seen = texts(&restored, &f.scope, id).unwrap();
            assert_eq!(seen.len() as u64, checked.nodes * 2);
        }
        load.join().unwrap();
    });
}
