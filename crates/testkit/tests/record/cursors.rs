use std::cell::Cell;

use throughline_store::{Append, Cursor, NewItem, NewThread, Store, TenantScope, ThreadId};
use throughline_testkit::record::{answered, block_on, shorts, user};
use throughline_testkit::{Rng, property};

use crate::record::common::engines;

/// Appends some messages, of one or more items each, and returns them.
async fn add(
    store: &Store,
    scope: &TenantScope,
    id: &ThreadId,
    rng: &mut Rng,
    n: &mut usize,
) -> Vec<String> {
    let mut messages = Vec::new();
    for _ in 0..rng.range(1..=4) {
        *n += 1;
        if rng.chance(0.3) {
            let mut round = answered(&format!("{n}_0"));
            for k in 1..rng.range(1..=4) {
                round
                    .contents
                    .extend(answered(&format!("{n}_{k}")).contents);
            }
            messages.push(round);
        } else {
            messages.push(user(&format!("m{n}")));
        }
    }
    let append = Append {
        run: store.ids().run(),
        thread: id.clone(),
        expected: None,
        items: NewItem::of(&messages),
        state: None,
        key: None,
    };
    store.append(scope, &append).await.unwrap();
    messages
        .iter()
        .map(throughline_testkit::record::short)
        .collect()
}

/// R12: a consumer that walks by cursor, and sometimes crashes before it has stored the cursor,
/// ends up with everything once.
#[test]
fn r12_walks_by_cursor_lose_and_repeat_nothing() {
    let scope = TenantScope::local();
    for ((engine, store, _scratch), cases) in engines("walks").into_iter().zip([4750, 250]) {
        let (pages, crashes) = (Cell::new(0), Cell::new(0));
        property(&format!("r12 walks on {engine}"), cases, |rng, size| {
            let id = store.ids().thread();
            let new = NewThread::new(id.clone());
            block_on(store.open_or_create(&scope, &new, 0)).unwrap();
            let mut n = 0;
            let (mut said, mut seen) = (Vec::new(), Vec::new());
            let mut cursor: Option<Cursor> = None;
            for _ in 0..2 + size / 5 {
                if rng.chance(0.4) {
                    said.extend(block_on(add(&store, &scope, &id, rng, &mut n)));
                }
                let limit = rng.range(1..=5);
                let page = block_on(store.increment(&scope, &id, cursor.as_ref(), limit))
                    .map_err(|error| error.to_string())?;
                pages.set(pages.get() + 1);
                if rng.chance(0.2) {
                    crashes.set(crashes.get() + 1);
                    continue;
                }
                if page.entries.len() > limit {
                    return Err(format!(
                        "{} messages in a page of {limit}",
                        page.entries.len()
                    ));
                }
                seen.extend(shorts(&page.entries));
                cursor = Some(page.next);
            }
            loop {
                let page = block_on(store.increment(&scope, &id, cursor.as_ref(), 3))
                    .map_err(|error| error.to_string())?;
                seen.extend(shorts(&page.entries));
                cursor = Some(page.next);
                if !page.more {
                    break;
                }
            }
            if seen == said {
                Ok(())
            } else {
                Err(format!("{seen:?}, expected {said:?}"))
            }
        });
        let (pages, crashes) = (pages.get(), crashes.get());
        println!("table r12 {engine}: pages={pages} consumer_crashes={crashes} errors=0");
    }
}
