use super::{Fixture, block_on, said, texts};
use crate::{Engine, Error, ItemRef, Publish, RunId, State, ThreadId};

/// A thread of some turns, a branch and a state.
fn filled(f: &Fixture) -> ThreadId {
    let id = f.thread("t");
    f.turn(&id, "one", "1");
    let lease = f.begin(&id, "two");
    let mut state = State::default();
    state.set_provider(
        "memory",
        Some(throughline_model::json::RawJson::new("{}").unwrap()),
    );
    let publish = Publish {
        state: Some(state),
        ..Publish::new(0, crate::NewItem::of(&[said("2")]))
    };
    block_on(f.store.publish(&f.scope, lease, &publish)).unwrap();
    f.turn(&id, "three", "3");
    id
}

#[test]
fn what_was_changed_behind_its_back_is_not_served() {
    // The position at which it is met, and the number of the item in its run if it is an item.
    let item = |no: u32| Some(no);
    let changes = [
        (
            "a bit of a body",
            "UPDATE item SET body=x'016f6f65' WHERE item=1",
            Some(1),
            item(1),
        ),
        (
            "a body that is gone",
            "UPDATE item SET body=NULL WHERE item=1",
            Some(1),
            item(1),
        ),
        (
            "swapped bodies",
            "UPDATE item SET body=(SELECT body FROM item WHERE item=7-i.item) FROM item i WHERE item.item=i.item AND i.item IN (3, 4)",
            Some(3),
            item(1),
        ),
        (
            "a source",
            "UPDATE item SET source=5 WHERE item=2",
            Some(2),
            item(2),
        ),
        (
            "a kind that cannot be",
            "UPDATE item SET kind=4096 WHERE item=4",
            Some(4),
            item(2),
        ),
        (
            "a count",
            "UPDATE item SET units=units+1 WHERE item=5",
            Some(5),
            item(1),
        ),
        (
            "a digest",
            "UPDATE item SET digest=x'00112233445566778899aabbccddeeff' WHERE item=4",
            Some(4),
            item(2),
        ),
        (
            "a missing item",
            "DELETE FROM item WHERE item=4",
            Some(4),
            item(2),
        ),
        (
            "an item of another number",
            "UPDATE item SET no=9 WHERE item=6",
            Some(6),
            item(2),
        ),
        (
            "a missing node",
            "DELETE FROM node WHERE node=2",
            Some(3),
            None,
        ),
        (
            "a node of other tokens",
            "UPDATE node SET units=units+1 WHERE node=3",
            Some(5),
            None,
        ),
        (
            "a node that is shorter",
            "UPDATE node SET last=last-1 WHERE node=1",
            Some(1),
            None,
        ),
        (
            "a node that is longer",
            "UPDATE node SET last=last+1 WHERE node=1",
            Some(1),
            None,
        ),
        (
            "a node that was opened",
            "UPDATE node SET flags=1 WHERE node=2",
            Some(3),
            None,
        ),
        (
            "a node whose flags cannot be",
            "UPDATE node SET flags=4096 WHERE node=2",
            Some(3),
            None,
        ),
        (
            "a node of other items",
            "UPDATE node SET item_lo=2 WHERE node=2",
            Some(3),
            None,
        ),
        (
            "a head that is missing",
            "UPDATE thread SET head_first=99",
            None,
            None,
        ),
        (
            "another head",
            "UPDATE thread SET head_first=3",
            Some(3),
            None,
        ),
        ("a state", "UPDATE state SET body='{\"v\":1}'", None, None),
        ("a missing state", "DELETE FROM state", Some(3), None),
    ];
    for (what, sql, position, item) in changes {
        let f = Fixture::new();
        let id = filled(&f);
        let runs = f.raw();
        let run = |position: u64| -> [u8; 16] {
            let sql = "SELECT r.id FROM node n JOIN run r ON r.run=n.run WHERE ? BETWEEN n.first AND n.last";
            runs.query_row(sql, [position.cast_signed()], |row| row.get(0))
                .unwrap()
        };
        let item = item.map(|no| ItemRef {
            run: RunId::from_bytes(run(position.unwrap())),
            no,
        });
        assert_eq!(
            block_on(f.store.check(&mut |_| {})).unwrap().damage,
            [],
            "before {what}"
        );
        f.raw().execute(sql, []).unwrap();
        let other = f.reopened();
        let error = texts(&other, &f.scope, &id).unwrap_err();
        let Error::Corrupt { place, .. } = &error else {
            panic!("{what}: {error}");
        };
        assert_eq!(place.thread.as_ref(), Some(&id), "{what}: {error}");
        assert_eq!(
            (place.position, place.item),
            (position, item),
            "{what}: {error}"
        );
        let damage = block_on(other.check(&mut |_| {})).unwrap().damage;
        assert!(!damage.is_empty(), "{what} was not found");
        // Where the reader met it, or at the thread, for those who look at everything.
        assert!(
            damage.iter().any(|one| {
                one.thread.as_deref() == Some("t")
                    && (one.item == item && one.position == position || what.contains("head"))
            }),
            "{what}: {damage:?}"
        );
        let again: Vec<_> = damage.iter().filter_map(|one| one.item).collect();
        let different: std::collections::HashSet<_> = again.iter().collect();
        assert_eq!(again.len(), different.len(), "{what}: {damage:?}");
    }
}

#[test]
fn references_that_lead_nowhere_are_found() {
    let changes = [
        "DELETE FROM thread",
        "UPDATE thread SET head_first=99",
        "UPDATE run SET pub_first=99 WHERE run=3",
        "UPDATE run SET request=7 WHERE run=1",
        "INSERT INTO redaction(run, no, by, at) VALUES(1, 1, 'x', 0)",
        "INSERT INTO alias(tenant, kind, name, thread) VALUES(1, 'a', 'b', 99)",
        "INSERT INTO item(run, no, kind, source, units, digest, body) VALUES(99, 1, 1, 1, 0, x'00', x'00')",
        "INSERT INTO timeline(thread, parent_tl, fork) VALUES(1, 1, 2)",
    ];
    for sql in changes {
        let f = Fixture::new();
        filled(&f);
        f.raw().execute(sql, []).unwrap();
        let damage = block_on(f.store.check(&mut |_| {})).unwrap().damage;
        assert!(!damage.is_empty(), "{sql}");
    }
}

#[test]
fn references_to_another_tenant_are_found() {
    let changes = [
        (
            "a run of another tenant than its thread",
            "UPDATE run SET tenant=2 WHERE run=1",
        ),
        (
            "a run with the request of another tenant",
            "INSERT INTO request(request, tenant, digest, body) VALUES(7, 2, x'00', '{}');
             UPDATE run SET request=7 WHERE run=1",
        ),
        (
            "an alias of another tenant than its thread",
            "INSERT INTO alias(tenant, kind, name, thread) VALUES(2, 'a', 'b', 1)",
        ),
        (
            "an approval of another tenant than its run",
            "INSERT INTO approval(tenant, id, thread, run, step, pos, shown, state, created)
             VALUES(2, x'01', 1, 1, 0, 0, x'00', 0, 0)",
        ),
    ];
    for (place, sql) in changes {
        let f = Fixture::new();
        filled(&f);
        f.raw().execute_batch(sql).unwrap();
        let damage = block_on(f.store.check(&mut |_| {})).unwrap().damage;
        assert!(damage.iter().any(|one| one.place == place), "{damage:?}");
    }
}

#[test]
fn flipped_bits_in_the_file_are_found() {
    let f = Fixture::new();
    let id = f.thread("t");
    let text = "a tide table of no particular year ".repeat(20);
    for _ in 0..20 {
        f.turn(&id, &text, &text);
    }
    block_on(f.store.close()).unwrap();
    let path = f.dir.file("store.db");
    let whole = std::fs::read(&path).unwrap();
    let word = text.as_bytes();
    let places: Vec<usize> = (0..whole.len() - word.len())
        .filter(|place| whole[*place..].starts_with(word))
        .collect();
    // Some lie across two pages.
    assert!(places.len() > 30, "{}", places.len());
    for place in places.into_iter().step_by(7) {
        let mut flipped = whole.clone();
        flipped[place + 100] ^= 4;
        std::fs::write(&path, &flipped).unwrap();
        let other = f.reopened();
        let error = texts(&other, &f.scope, &id).unwrap_err();
        assert!(
            matches!(&error, Error::Corrupt { place, .. } if place.item.is_some()),
            "{error}"
        );
        let damage = block_on(other.check(&mut |_| {})).unwrap().damage;
        assert_eq!(damage.len(), 1, "{damage:?}");
        assert_eq!(damage[0].thread.as_deref(), Some("t"));
        let Error::Corrupt { place, .. } = error else {
            continue;
        };
        assert_eq!(place.thread.as_ref(), Some(&id));
        assert_eq!(damage[0].position, place.position);
        assert_eq!(damage[0].item, place.item);
    }
}

#[test]
fn a_thread_that_is_half_swept_up_is_no_damage() {
    let f = Fixture::new();
    let id = filled(&f);
    block_on(f.store.delete(&f.scope, &id)).unwrap();
    let mut sweeps = 0;
    loop {
        let purged = block_on(f.store.purge(1)).unwrap();
        sweeps += 1;
        let checked = block_on(f.store.check(&mut |_| {})).unwrap();
        assert_eq!(checked.damage, [], "after {sweeps} sweeps");
        if !purged.more {
            break;
        }
    }
    assert!(sweeps > 2, "swept up in {sweeps} pieces");
}
