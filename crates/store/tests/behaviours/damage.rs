//! Rows that are no longer what was stored.

use rusqlite::Connection;
use throughline_store::transfer::{Export, Extent};
use throughline_store::{Error, Fork, ItemRef, NewThread, Span, Store, ThreadId};
use throughline_testkit::record::{shorts, user};

use crate::behaviours::ground::{
    add, adding, at, each, local, named, numbered, said, thread, turn,
};

#[test]
fn b145_a_damaged_row_is_named_and_never_served_or_skipped() {
    each(async |ground| {
        let store = ground.open().await;
        let hurt = thread(&store, "hurt").await;
        let well = thread(&store, "well").await;
        add(&store, &hurt, &[user("before")]).await;
        let run = store.ids().run();
        let mut append = adding(&store, &hurt, &numbered("message", 0..3));
        append.run = run;
        store.append(&local(), &append).await.unwrap();
        add(&store, &hurt, &[user("after")]).await;
        add(&store, &well, &numbered("message", 0..2)).await;
        store.close().await.unwrap();
        // Nothing outside reaches the rows of an engine in memory; its own tests harm them.
        let Some(files) = ground.files() else { return };

        // Item 2 of the run, which stands at position 3.
        let harms = [
            "UPDATE item SET body=x'016f6f65'",
            "UPDATE item SET body=NULL",
            "UPDATE item SET units=units+1",
            "DELETE FROM item",
        ];
        let file = files.path().join("store.db");
        let whole = std::fs::read(&file).unwrap();
        for harm in harms {
            std::fs::write(&file, &whole).unwrap();
            let sql = format!("{harm} WHERE no=2 AND run=(SELECT run FROM run WHERE id=?)");
            let raw = Connection::open(&file).unwrap();
            assert_eq!(raw.execute(&sql, [run.as_bytes()]).unwrap(), 1, "{harm}");
            drop(raw);
            let store = ground.open().await;
            let mut errors = Vec::new();
            for limit in [2, 3, 10] {
                for span in [Span::Tail, Span::After(0), Span::After(2), Span::Before(4)] {
                    match store.read(&local(), &at(&hurt), span, limit).await {
                        Err(error) => errors.push(error),
                        // A page that ends before the row or begins after it.
                        Ok(page) => {
                            let places = page.entries.iter().map(|entry| entry.first);
                            let places: Vec<u64> = places.collect();
                            let allowed = [&[1, 2][..], &[4, 5]];
                            assert!(
                                limit == 2 && allowed.contains(&places.as_slice()),
                                "{harm}: {span:?} of {limit} gives {places:?}"
                            );
                        }
                    }
                }
            }
            errors.push(store.open(&local(), &at(&hurt), 10).await.unwrap_err());
            errors.push(
                store
                    .increment(&local(), &hurt, None, 10)
                    .await
                    .unwrap_err(),
            );
            for error in errors {
                let Error::Corrupt { place, .. } = &error else {
                    panic!("{harm}: {error}");
                };
                assert!(place.subject().contains(&run.to_hex()), "{harm}: {error}");
            }
            assert_eq!(said(&store, &well).await, ["message 0", "message 1"]);
            let checked = store.check(&mut |_| {}).await.unwrap();
            assert!(
                checked.damage.iter().any(|damage| {
                    damage.tenant.as_deref() == Some("local")
                        && damage.thread.as_deref() == Some("hurt")
                        && damage.place.contains(&run.to_hex())
                }),
                "{harm}: {checked:?}"
            );
            assert!(
                checked
                    .damage
                    .iter()
                    .all(|damage| damage.thread.as_deref() != Some("well")),
                "{harm}: {checked:?}"
            );
            store.close().await.unwrap();
        }
        // Taken back, it is whole again.
        std::fs::write(&file, &whole).unwrap();
        let store = ground.open().await;
        let page = store.read(&local(), &at(&hurt), Span::Tail, 10).await;
        assert_eq!(
            shorts(&page.unwrap().entries),
            ["before", "message 0", "message 1", "message 2", "after"]
        );
    });
}

/// What every way to read a thread says of damage in it.
async fn refusals(store: &Store, id: &ThreadId) -> Vec<Error> {
    let mut errors = Vec::new();
    for span in [Span::Tail, Span::After(0), Span::Before(9)] {
        errors.extend(store.read(&local(), &at(id), span, 20).await.err());
    }
    errors.extend(store.open(&local(), &at(id), 20).await.err());
    errors.extend(store.increment(&local(), id, None, 20).await.err());
    errors
}

/// What an export of a thread says of it.
async fn export_refused(store: &Store, id: &ThreadId) -> Option<Error> {
    let started = Export::start(store, &local(), &at(id), Extent::Tree).await;
    let mut export = match started {
        Ok(export) => export,
        Err(error) => return Some(error),
    };
    loop {
        match export.next().await {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    }
}

#[test]
fn b248_damage_on_disk_names_the_thread_the_position_and_the_item() {
    each(async |ground| {
        let store = ground.open().await;
        let hurt = thread(&store, "hurt").await;
        add(&store, &hurt, &[user("before")]).await;
        let mut append = adding(&store, &hurt, &numbered("message", 0..3));
        append.run = store.ids().run();
        store.append(&local(), &append).await.unwrap();
        let item = ItemRef {
            run: append.run,
            no: 2,
        };
        let fork = Fork {
            from: at(&hurt),
            thread: NewThread::new(named("fork")),
        };
        let fork = store.fork(&local(), &fork).await.unwrap().id;
        turn(&store, &fork, "on").await;
        turn(&store, &hurt, "after").await;
        store.close().await.unwrap();
        // Nothing outside reaches the rows of an engine in memory; its own tests harm them.
        let Some(files) = ground.files() else { return };

        // Item 2 of the run, which stands at position 3 of both threads.
        let of_item = "WHERE no=2 AND run=(SELECT run FROM run WHERE id=?1)";
        let of_node = "WHERE run=(SELECT run FROM run WHERE id=?1)";
        let harms = [
            ("UPDATE item SET body=x'016f6f65'", of_item, 3, true),
            ("UPDATE item SET body=NULL", of_item, 3, true),
            ("UPDATE item SET units=units+1", of_item, 3, true),
            ("UPDATE item SET kind=2", of_item, 3, true),
            ("UPDATE item SET kind=999", of_item, 3, true),
            ("UPDATE item SET source=source+1", of_item, 3, true),
            ("UPDATE item SET digest=zeroblob(16)", of_item, 3, true),
            ("UPDATE item SET no=7", of_item, 3, true),
            ("DELETE FROM item", of_item, 3, true),
            ("UPDATE node SET flags=1", of_node, 2, false),
            ("UPDATE node SET units=units+1", of_node, 2, false),
            ("UPDATE node SET item_lo=3", of_node, 2, false),
            ("DELETE FROM node", of_node, 2, false),
        ];
        let file = files.path().join("store.db");
        let whole = std::fs::read(&file).unwrap();
        let mut named = 0;
        for (harm, of, position, is_item) in harms {
            std::fs::write(&file, &whole).unwrap();
            let raw = Connection::open(&file).unwrap();
            let changed = raw.execute(&format!("{harm} {of}"), [append.run.as_bytes()]);
            assert_eq!(changed.unwrap(), 1, "{harm}");
            drop(raw);
            let expected = is_item.then_some(item);
            let store = ground.open().await;
            for id in [&hurt, &fork] {
                let mut errors = refusals(&store, id).await;
                assert_eq!(errors.len(), 5, "{harm}: {errors:?}");
                // Digests of nodes are not exported, so that an export is refused for items.
                let export = export_refused(&store, id).await;
                assert!(export.is_some() || !is_item, "{harm}");
                errors.extend(export.filter(|_| is_item));
                for error in errors {
                    let Error::Corrupt { place, .. } = &error else {
                        panic!("{harm}: {error}");
                    };
                    assert_eq!(place.thread.as_ref(), Some(id), "{harm}: {error}");
                    assert_eq!(place.position, Some(position), "{harm}: {error}");
                    assert_eq!(place.item, expected, "{harm}: {error}");
                    named += 1;
                    let words = error.to_string();
                    let start = match expected {
                        Some(item) => format!(
                            "thread {id}, position {position}, item {} of {} is damaged: ",
                            item.no, item.run
                        ),
                        None => format!("thread {id}, position {position}"),
                    };
                    assert!(words.starts_with(&start), "{words}");
                }
            }
            // The journal has no positions.
            if is_item && !harm.contains("no=7") && !harm.starts_with("DELETE") {
                let error = store.journal(&local(), append.run).await.unwrap_err();
                let Error::Corrupt { place, .. } = &error else {
                    panic!("{harm}: {error}");
                };
                let found = (place.thread.as_ref(), place.position, place.item);
                assert_eq!(found, (Some(&hurt), None, Some(item)), "{harm}: {error}");
            }
            let damage = store.check(&mut |_| {}).await.unwrap().damage;
            assert!(
                damage.iter().any(|one| {
                    one.thread.as_deref() == Some("hurt")
                        && one.position == Some(position)
                        && one.item == expected
                }),
                "{harm}: {damage:?}"
            );
            store.close().await.unwrap();
        }
        println!("table b248: harms={} refusals_named={named}", harms.len());
    });
}
