use super::fixture::{Fixture, texts};
use crate::{At, Authority, Cursor, Error, ErrorKind, NodeRef, Tenant, Version};

pub(super) async fn increments_give_everything_once(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let start = f.store.increment(&f.scope, &id, None, 10).await.unwrap();
    assert_eq!((start.entries.len(), start.more), (0, false));
    for n in 0..5 {
        f.turn(&id, &format!("ask {n}"), &format!("answer {n}"))
            .await;
    }
    let whole = f.texts(&id).await;
    let mut cursor = start.next;
    for limit in [1, 3, 100] {
        let mut seen = Vec::new();
        cursor = start.next;
        loop {
            let read = async |after| {
                let page = f.store.increment(&f.scope, &id, Some(&after), limit).await;
                page.unwrap()
            };
            let page = read(cursor).await;
            // A consumer that crashed asks again and gets the same.
            assert_eq!(read(cursor).await, page);
            seen.extend(texts(&page.entries));
            // A cursor is text for the client that keeps it.
            cursor = page.next.to_string().parse().unwrap();
            if !page.more {
                break;
            }
        }
        assert_eq!(seen, whole, "pages of {limit}");
    }
    f.turn(&id, "later", "on").await;
    let page = f
        .store
        .increment(&f.scope, &id, Some(&cursor), 10)
        .await
        .unwrap();
    assert_eq!(texts(&page.entries), ["later", "on"]);
}

pub(super) async fn a_cursor_on_an_abandoned_branch_says_so(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let first = f.turn(&id, "one", "1").await;
    f.turn(&id, "two", "2").await;
    // A fork goes another way from the first turn; a cursor is tied to its thread.
    let fork = crate::Fork {
        from: At::Node(NodeRef::Run(first)),
        thread: crate::NewThread::new(crate::ThreadId::new("fork").unwrap()),
    };
    let fork = f.store.fork(&f.scope, &fork).await.unwrap().id;
    let early = f.store.increment(&f.scope, &fork, None, 10).await.unwrap();
    assert_eq!(texts(&early.entries), ["one", "1"]);
    f.turn(&fork, "three", "3").await;
    let next = f
        .store
        .increment(&f.scope, &fork, Some(&early.next), 10)
        .await
        .unwrap();
    assert_eq!(texts(&next.entries), ["three", "3"]);
    // A cursor into what the head never reached.
    let all = f.store.increment(&f.scope, &id, None, 10).await.unwrap();
    let error = f
        .store
        .increment(&f.scope, &fork, Some(&all.next), 10)
        .await;
    assert!(matches!(error, Err(Error::BadCursor { .. })), "{error:?}");
    // A position of one's own choice.
    let cursor = f.store.cursor(&f.scope, &id, 2).await.unwrap();
    let page = f
        .store
        .increment(&f.scope, &id, Some(&cursor), 10)
        .await
        .unwrap();
    assert_eq!(texts(&page.entries), ["two", "2"]);
    let error = f.store.cursor(&f.scope, &id, 99).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

pub(super) async fn a_cursor_of_a_deleted_thread_fits_no_new_one(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    f.turn(&id, "one", "1").await;
    let old = f.store.increment(&f.scope, &id, None, 10).await.unwrap();
    f.store.delete(&f.scope, &id).await.unwrap();
    while f.store.purge(100).await.unwrap().more {}
    let id = f.thread("t").await;
    f.turn(&id, "two", "2").await;
    f.turn(&id, "three", "3").await;
    let error = f.store.increment(&f.scope, &id, Some(&old.next), 10).await;
    assert!(
        matches!(error, Err(Error::CursorMoved { common: 0, .. })),
        "{error:?}"
    );
}

pub(super) async fn a_seal_is_for_one_tenant_one_purpose_and_these_bytes(f: &mut Fixture<'_>) {
    let stranger = Authority::assume().scope(Tenant::new("stranger").unwrap());
    let sealed = f.store.seal(&f.scope, "parcel", b"bytes");
    assert_eq!(f.store.seal(&f.scope, "parcel", b"bytes"), sealed);
    for (scope, purpose, bytes) in [
        (&stranger, "parcel", b"bytes".as_slice()),
        (&f.scope, "letter", b"bytes"),
        (&f.scope, "parcel", b"byte"),
        // What stands where must not be a matter of taste.
        (&f.scope, "parcelb", b"ytes"),
    ] {
        assert_ne!(f.store.seal(scope, purpose, bytes), sealed);
    }
}

pub(super) async fn forged_cursors_are_refused(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let other = f.thread("u").await;
    f.turn(&id, "one", "1").await;
    f.turn(&other, "one", "1").await;
    let cursor = f
        .store
        .increment(&f.scope, &id, None, 1)
        .await
        .unwrap()
        .next;
    let error = f.store.increment(&f.scope, &other, Some(&cursor), 1).await;
    assert!(matches!(error, Err(Error::BadCursor { .. })), "{error:?}");
    let stranger = Authority::assume().scope(Tenant::new("stranger").unwrap());
    let new = crate::NewThread::new(id.clone());
    f.store.open_or_create(&stranger, &new, 0).await.unwrap();
    let error = f.store.increment(&stranger, &id, Some(&cursor), 1).await;
    assert!(matches!(error, Err(Error::BadCursor { .. })), "{error:?}");
    let text = cursor.to_string();
    for place in 4..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[place] = if bytes[place] == b'1' { b'2' } else { b'1' };
        let changed = String::from_utf8(bytes).unwrap();
        let Ok(forged) = changed.parse::<Cursor>() else {
            continue;
        };
        let error = f.store.increment(&f.scope, &id, Some(&forged), 1).await;
        assert!(
            matches!(error, Err(Error::BadCursor { .. })),
            "{changed}: {error:?}"
        );
    }
}

pub(super) async fn a_change_wakes_whoever_waits(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    f.turn(&id, "one", "1").await;
    let seen = Version(0);
    // What changed already is there at once.
    assert_eq!(
        f.store.changed(&f.scope, &id, seen).await.unwrap(),
        Version(1)
    );
    for waiting in [f.store.clone(), f.other().await] {
        let before = f.open(&id).await.thread.version;
        let scope = f.scope.clone();
        let thread = id.clone();
        let waiter = std::thread::spawn(move || {
            super::block_on(waiting.changed(&scope, &thread, before)).unwrap()
        });
        f.turn(&id, "more", "m").await;
        assert_eq!(waiter.join().unwrap(), Version(before.0 + 1));
    }
    let scope = f.scope.clone();
    let (store, thread) = (f.store.clone(), id.clone());
    let now = f.open(&id).await.thread.version;
    let waiter = std::thread::spawn(move || super::block_on(store.changed(&scope, &thread, now)));
    f.store.delete(&f.scope, &id).await.unwrap();
    let error = waiter.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
