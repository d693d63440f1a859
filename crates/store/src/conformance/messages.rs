use throughline_model::json::RawJson;
use throughline_model::{
    CallId, Content, Message, MessageId, Outcome, Output, Role, Source, ToolCall,
};

use super::fixture::{Fixture, said_by_model, texts};
use crate::{
    Append, At, Error, ErrorKind, Flush, Idempotency, ItemRef, NewItem, NodeRef, Publish, Span,
    StoredEvent, ThreadId, Version,
};

async fn append(f: &Fixture<'_>, thread: &ThreadId, messages: &[Message]) -> crate::RunId {
    let append = Append {
        run: f.store.ids().run(),
        thread: thread.clone(),
        expected: None,
        items: NewItem::of(messages),
        state: None,
        key: None,
    };
    f.store.append(&f.scope, &append).await.unwrap();
    append.run
}

/// A tool message with some results.
fn round(ids: &[String]) -> Message {
    let results = ids.iter().map(|id| {
        let call = ToolCall::function(CallId::natural(id).unwrap(), "f", "{}");
        Content::from(call.answer(Outcome::Ok, Output::Text(id.clone())))
    });
    Message::new(Role::Tool, results.collect())
}

/// A thread whose messages are one to five items long.
async fn uneven(f: &Fixture<'_>) -> ThreadId {
    let id = f.thread("uneven").await;
    let mut n = 0;
    for size in [1, 3, 1, 5, 2, 1, 1, 4] {
        let ids: Vec<String> = (0..size).map(|k| format!("r{n}_{k}")).collect();
        n += 1;
        let messages = [Message::user(format!("ask {n}")), round(&ids)];
        append(f, &id, &messages).await;
    }
    id
}

pub(super) async fn pages_hold_whole_messages(f: &mut Fixture<'_>) {
    let id = uneven(f).await;
    let at = At::Thread(id.clone());
    let all = f.open(&id).await.entries;
    assert_eq!(all.len(), 16);
    assert_eq!(all.last().unwrap().last, 26);
    for limit in 1..=17 {
        let page = f
            .store
            .read(&f.scope, &at, Span::Tail, limit)
            .await
            .unwrap();
        let expected = &all[all.len().saturating_sub(limit)..];
        assert_eq!(page.entries, expected, "last {limit}");
        assert_eq!(page.more, limit < 16);
        let opened = f.store.open(&f.scope, &at, limit).await.unwrap();
        assert_eq!(opened.entries, expected);
    }
    // From any position, inside a message too: the first message that starts after it.
    for position in 0..=27 {
        let page = f
            .store
            .read(&f.scope, &at, Span::After(position), 3)
            .await
            .unwrap();
        let expected: Vec<_> = all.iter().filter(|e| e.first > position).take(3).collect();
        assert_eq!(
            page.entries.iter().collect::<Vec<_>>(),
            expected,
            "after {position}"
        );
        let before = f
            .store
            .read(&f.scope, &at, Span::Before(position), 3)
            .await
            .unwrap();
        let mut expected: Vec<_> = all
            .iter()
            .filter(|e| e.last < position)
            .rev()
            .take(3)
            .collect();
        expected.reverse();
        assert_eq!(
            before.entries.iter().collect::<Vec<_>>(),
            expected,
            "before {position}"
        );
    }
}

pub(super) async fn reading_goes_both_ways(f: &mut Fixture<'_>) {
    let id = uneven(f).await;
    let at = At::Thread(id.clone());
    let all = f.open(&id).await.entries;
    for limit in [1, 2, 5, 16, 50] {
        let mut forwards = Vec::new();
        let mut after = 0;
        loop {
            let page = f
                .store
                .read(&f.scope, &at, Span::After(after), limit)
                .await
                .unwrap();
            assert!(page.entries.len() <= limit);
            let more = page.more;
            after = page.entries.last().map_or(after, |entry| entry.last);
            forwards.extend(page.entries);
            if !more {
                break;
            }
        }
        assert_eq!(forwards, all, "pages of {limit}");
        let mut backwards = Vec::new();
        let mut before = u64::MAX;
        loop {
            let page = f
                .store
                .read(&f.scope, &at, Span::Before(before), limit)
                .await
                .unwrap();
            let more = page.more;
            before = page.entries.first().map_or(before, |entry| entry.first);
            let mut entries = page.entries;
            entries.append(&mut backwards);
            backwards = entries;
            if !more {
                break;
            }
        }
        assert_eq!(backwards, all, "pages of {limit}");
    }
}

pub(super) async fn messages_come_back_as_they_were(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let messages = [
        Message {
            id: Some(MessageId::new("msg_own").unwrap()),
            author: Some("Ada".into()),
            created: Some(1_700_000_000_000),
            source: Some(Source::RemoteAgent),
            meta: Some(RawJson::new(r#"{"n":12345678901234567890123}"#).unwrap()),
            ..Message::user("with everything \u{0} \"quoted\" \u{1F30A}")
        },
        Message {
            source: Some(Source::Other("a later word".into())),
            ..Message::new(Role::Other("critic".into()), vec![Content::text("hm")])
        },
        Message::new(Role::Assistant, Vec::new()),
        Message::user(""),
        Message::new(Role::System, vec![Content::text("a"), Content::text("b")]),
    ];
    append(f, &id, &messages).await;
    let read = f.open(&id).await.entries;
    for (entry, message) in read.iter().zip(&messages) {
        let mut expected = message.clone();
        if expected.id.is_none() {
            expected.id = Some(entry.at.message_id());
        }
        assert_eq!(entry.message, expected);
    }
    assert_eq!(read.len(), messages.len());
}

pub(super) async fn message_ids_stay(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    f.turn(&id, "one", "1").await;
    let ids = |entries: &[crate::Entry]| -> Vec<MessageId> {
        entries
            .iter()
            .map(|e| e.message.id.clone().unwrap())
            .collect()
    };
    let first = ids(&f.open(&id).await.entries);
    f.turn(&id, "two", "2").await;
    let second = ids(&f.open(&id).await.entries);
    assert_eq!(second[..2], first);
    let mut unique = second.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 4);
    let other = f.other().await;
    let opened = other.open(&f.scope, &At::Thread(id), 10).await.unwrap();
    assert_eq!(ids(&opened.entries), second);
}

pub(super) async fn saying_again_shares_the_body(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let long = "x".repeat(3000);
    let run = append(f, &id, &[Message::user(long.clone())]).await;
    let mut at = ItemRef { run, no: 1 };
    for _ in 0..3 {
        let append = Append {
            run: f.store.ids().run(),
            thread: id.clone(),
            expected: None,
            items: vec![NewItem::Repeat(at)],
            state: None,
            key: None,
        };
        f.store.append(&f.scope, &append).await.unwrap();
        // Again of again is again of the first.
        at = ItemRef {
            run: append.run,
            no: 1,
        };
    }
    let entries = f.open(&id).await.entries;
    assert_eq!(
        texts(&entries),
        [long.clone(), long.clone(), long.clone(), long]
    );
    let ids: Vec<_> = entries
        .iter()
        .map(|entry| entry.message.id.clone())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
}

pub(super) async fn large_bodies_come_back(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    // Compressible, and not.
    let even = "tide ".repeat(200_000);
    let mut seed = 1u64;
    let odd: String = (0..300_000)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + ((seed >> 33) % 90) as u8)
        })
        .collect();
    append(
        f,
        &id,
        &[Message::user(even.clone()), Message::user(odd.clone())],
    )
    .await;
    let other = f.other().await;
    let opened = other.open(&f.scope, &At::Thread(id), 10).await.unwrap();
    assert!(texts(&opened.entries) == [even, odd], "large bodies differ");
}

pub(super) async fn a_redacted_body_is_gone(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let run = append(f, &id, &[Message::user("a secret"), Message::user("kept")]).await;
    let said = ItemRef { run, no: 1 };
    let again = Append {
        run: f.store.ids().run(),
        thread: id.clone(),
        expected: None,
        items: vec![NewItem::Repeat(said)],
        state: None,
        key: None,
    };
    f.store.append(&f.scope, &again).await.unwrap();
    f.store.redact(&f.scope, said, "ada").await.unwrap();
    f.store.redact(&f.scope, said, "bob").await.unwrap();
    for store in [f.store.clone(), f.other().await] {
        let opened = store
            .open(&f.scope, &At::Thread(id.clone()), 10)
            .await
            .unwrap();
        assert_eq!(texts(&opened.entries), ["[redacted]", "kept", "[redacted]"]);
        let redaction = opened.entries[0].redacted.clone().unwrap();
        assert_eq!(redaction.by, "ada");
        assert_eq!(opened.entries[2].redacted, Some(redaction));
        assert_eq!(opened.entries[1].redacted, None);
    }
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!((checked.redacted, checked.damage), (1, vec![]));
    let nowhere = ItemRef { run, no: 9 };
    let error = f.store.redact(&f.scope, nowhere, "ada").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

pub(super) async fn a_redacted_answer_is_gone_from_the_events(f: &mut Fixture<'_>) {
    let event = |text: &str| StoredEvent {
        kind: 9,
        body: text.as_bytes().to_vec(),
    };
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let flush = Flush::new(0, &[event("a sec"), event("ret")]);
    f.store.flush(&f.scope, lease, &flush).await.unwrap();
    let publish = Publish {
        events: Some(Flush::new(2, &[event("done")])),
        ..Publish::new(0, said_by_model("a secret"))
    };
    f.store.publish(&f.scope, lease, &publish).await.unwrap();
    let said = ItemRef {
        run: lease.run,
        no: 2,
    };
    f.store.redact(&f.scope, said, "ada").await.unwrap();
    for store in [f.store.clone(), f.other().await] {
        let flushes = store.events(&f.scope, lease.run, 0, 10).await.unwrap();
        let events: Vec<_> = flushes
            .iter()
            .flat_map(|flush| flush.events().unwrap())
            .collect();
        // Numbers and kinds stay, so that a reader that goes on does not lose count.
        assert_eq!(events, vec![event(""); 3]);
    }
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!(checked.damage, []);
}

pub(super) async fn items_are_added_by_hand(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let run = append(f, &id, &[Message::user("by hand")]).await;
    let opened = f.open(&id).await;
    assert_eq!(
        (opened.thread.version, opened.unsettled.clone()),
        (Version(1), None)
    );
    let stored = f.store.run(&f.scope, run).await.unwrap();
    assert_eq!(stored.kind, crate::RunKind::Append);
    assert_eq!(stored.state, crate::RunState::Committed);
    assert_eq!(f.texts_at(NodeRef::Run(run)).await, ["by hand"]);
    let value = |expected, text: &str| Append {
        run: f.store.ids().run(),
        thread: id.clone(),
        expected,
        items: NewItem::of(&[Message::user(text)]),
        state: None,
        key: Some(Idempotency {
            key: format!("key {text}"),
            request: [1; 16],
        }),
    };
    let stale = value(Some(Version(0)), "stale");
    let error = f.store.append(&f.scope, &stale).await;
    assert!(matches!(error, Err(Error::HeadMoved { .. })), "{error:?}");
    let good = value(Some(Version(1)), "good");
    let first = f.store.append(&f.scope, &good).await.unwrap();
    // The same key: the same answer, nothing added.
    let again = value(Some(Version(1)), "good");
    assert_eq!(f.store.append(&f.scope, &again).await.unwrap(), first);
    assert_eq!(f.texts(&id).await, ["by hand", "good"]);
    let held = f.begin(&id, "busy").await;
    let error = f.store.append(&f.scope, &value(None, "while busy")).await;
    assert!(matches!(error, Err(Error::Busy { .. })), "{error:?}");
    f.publish(held.lease, 0, "done").await;
    let mut empty = value(None, "empty");
    empty.items.clear();
    let error = f.store.append(&f.scope, &empty).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
