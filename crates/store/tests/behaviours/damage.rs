//! Rows that are no longer what was stored.

use rusqlite::Connection;
use throughline_store::{Error, Span};
use throughline_testkit::record::{shorts, user};

use crate::ground::{add, adding, at, each, local, numbered, said, thread};

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
                // The place is the item by its run and number, or its node; whoever reads knows
                // the thread, and the check below names it.
                let Error::Corrupt { place, .. } = &error else {
                    panic!("{harm}: {error}");
                };
                assert!(place.contains(&run.to_hex()), "{harm}: {error}");
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
