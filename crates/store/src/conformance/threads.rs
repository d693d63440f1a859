use std::time::Duration;

use throughline_model::json::RawJson;

use super::fixture::Fixture;
use crate::{
    Alias, Anchor, At, Authority, Error, ErrorKind, MovedBy, NewThread, NodeRef, Span, Tenant,
    ThreadFilter, ThreadId, ThreadPatch, Version,
};

pub(super) fn raw(text: &str) -> RawJson {
    RawJson::new(text).unwrap()
}

pub(super) async fn a_thread_opens_by_every_name(f: &mut Fixture<'_>) {
    let id = ThreadId::new("ticket-4711").unwrap();
    let alias = Alias::new("conversation", "conv_1");
    let new = NewThread {
        aliases: vec![alias.clone(), Alias::new("a2a", "ctx")],
        title: Some("A ticket".into()),
        meta: Some(raw(r#"{"team":"tides"}"#)),
        settings: Some(raw(r#"{"owner":"local"}"#)),
        moved_by: MovedBy::LeasedRuns,
        keep: Some(1_000_000),
        ..NewThread::new(id.clone())
    };
    let made = f.store.open_or_create(&f.scope, &new, 10).await.unwrap();
    assert_eq!(made.thread.version, Version(0));
    assert_eq!((made.tip, made.entries.len(), made.queued), (None, 0, 0));
    assert_eq!(made.thread.aliases[0], Alias::new("a2a", "ctx"));
    f.clock.advance(Duration::from_secs(5));
    // Again with other words: what is there stays.
    let other = NewThread {
        title: Some("Another title".into()),
        ..NewThread::new(id.clone())
    };
    let again = f.store.open_or_create(&f.scope, &other, 10).await.unwrap();
    assert_eq!(again, made);
    let by_id = f.store.open(&f.scope, &At::Thread(id.clone()), 10).await;
    assert_eq!(by_id.unwrap(), made);
    let run = f.turn(&id, "hello", "hi").await;
    let by_alias = f.store.open(&f.scope, &At::Alias(alias), 10).await.unwrap();
    let by_run = f
        .store
        .open(&f.scope, &At::Node(NodeRef::Run(run)), 10)
        .await;
    assert_eq!(by_alias, f.open(&id).await);
    assert_eq!(by_alias, by_run.unwrap());
    let node = by_alias.tip.unwrap().node;
    let by_node = f
        .store
        .open(&f.scope, &At::Node(NodeRef::Node(node)), 10)
        .await;
    assert_eq!(by_alias, by_node.unwrap());
    assert_eq!(by_alias.thread.head, by_alias.tip);
    let error = f
        .store
        .open(&f.scope, &At::Alias(Alias::new("a2a", "x")), 1)
        .await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}

pub(super) async fn an_alias_belongs_to_one_thread(f: &mut Fixture<'_>) {
    let alias = Alias::new("conversation", "conv_1");
    let first = NewThread {
        aliases: vec![alias.clone()],
        ..NewThread::new(ThreadId::new("first").unwrap())
    };
    f.store.open_or_create(&f.scope, &first, 0).await.unwrap();
    let second = NewThread {
        id: ThreadId::new("second").unwrap(),
        ..first.clone()
    };
    let error = f.store.open_or_create(&f.scope, &second, 0).await;
    assert!(matches!(error, Err(Error::Exists { .. })), "{error:?}");
    let error = f
        .store
        .open(&f.scope, &At::Thread(second.id.clone()), 0)
        .await;
    assert!(matches!(error, Err(Error::NotFound { .. })), "{error:?}");
    // A run that would open it is refused as a whole.
    let begin = f.begin_at(
        Anchor::New {
            thread: second,
            leasing: crate::Leasing::Thread,
        },
        "hello",
    );
    let error = f.store.begin(&f.scope, &begin).await;
    assert!(matches!(error, Err(Error::Exists { .. })), "{error:?}");
    assert!(f.store.run(&f.scope, begin.run).await.is_err());
}

pub(super) async fn a_patch_changes_what_it_names(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    f.turn(&id, "hello", "hi").await;
    let before = f.open(&id).await.thread;
    let patch = ThreadPatch {
        title: Some(Some("Tides".into())),
        meta: Some(Some(raw(r#"{"a":"b"}"#))),
        add_aliases: vec![Alias::new("a2a", "ctx")],
        ..ThreadPatch::default()
    };
    let after = f.store.patch(&f.scope, &id, &patch).await.unwrap();
    assert_eq!(after.title.as_deref(), Some("Tides"));
    assert_eq!((after.version, after.head), (before.version, before.head));
    assert_eq!(f.open(&id).await.thread, after);
    let patch = ThreadPatch {
        title: Some(None),
        remove_aliases: vec![Alias::new("a2a", "ctx")],
        ..ThreadPatch::default()
    };
    let last = f.store.patch(&f.scope, &id, &patch).await.unwrap();
    assert_eq!((last.title, last.aliases.len()), (None, 0));
    assert_eq!(last.meta, after.meta);
    let unknown = ThreadId::new("unknown").unwrap();
    let error = f.store.patch(&f.scope, &unknown, &patch).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

pub(super) async fn the_thread_that_moved_last_comes_first(f: &mut Fixture<'_>) {
    let (old, new) = (f.thread("old").await, f.thread("new").await);
    for _ in 0..3 {
        for id in [&old, &new, &new, &old] {
            // Minutes later: listings go by the minute first.
            f.clock.advance(Duration::from_secs(150));
            f.turn(id, "hello", "hi").await;
            let filter = ThreadFilter::default();
            let page = f.store.threads(&f.scope, &filter, None, 10).await.unwrap();
            assert_eq!(&page.found[0].id, id);
        }
    }
    // Runs without a lease move them as well, within their minute and in a later one.
    let [mut first, mut second] = [&old, &new].map(|id| (id, None));
    for _ in 0..3 {
        for (id, last) in [&mut first, &mut second] {
            for pause in [150, 1] {
                f.clock.advance(Duration::from_secs(pause));
                let node = match *last {
                    Some(run) => run,
                    None => f.open(id).await.tip.unwrap().node.run,
                };
                let at = At::Node(NodeRef::Run(node));
                f.store.open(&f.scope, &at, 0).await.unwrap();
                let (run, published) = f.turn_at(NodeRef::Run(node), "on", "yes").await;
                assert!(published.moved);
                *last = Some(run);
                let filter = ThreadFilter::default();
                let page = f.store.threads(&f.scope, &filter, None, 10).await.unwrap();
                assert_eq!(&&page.found[0].id, id);
            }
        }
    }
}

pub(super) async fn listings_page_and_filter(f: &mut Fixture<'_>) {
    let mut ids = Vec::new();
    for n in 0..7 {
        f.clock.advance(Duration::from_millis(n % 2));
        let new = NewThread {
            aliases: (n % 3 == 0)
                .then(|| Alias::new("a2a", format!("ctx{n}")))
                .into_iter()
                .collect(),
            meta: Some(raw(&format!(r#"{{"parity":"{}","n":{n}}}"#, n % 2))),
            ..NewThread::new(ThreadId::new(&format!("t{n}")).unwrap())
        };
        f.store.open_or_create(&f.scope, &new, 0).await.unwrap();
        ids.push(new.id);
    }
    // The oldest comes to the front when its head moves.
    f.clock.advance(Duration::from_secs(1));
    f.turn(&ids[0], "hello", "hi").await;
    for limit in [1, 2, 3, 7, 100] {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let filter = ThreadFilter::default();
            let page = f
                .store
                .threads(&f.scope, &filter, after, limit)
                .await
                .unwrap();
            assert!(page.found.len() <= limit);
            found.extend(page.found.into_iter().map(|thread| thread.id));
            // Tokens are text for the client that keeps them.
            let Some(next) = page.next else { break };
            after = Some(next.to_string().parse().unwrap());
        }
        let expected = [0, 6, 5, 4, 3, 2, 1].map(|n: usize| ids[n].clone());
        assert_eq!(found, expected, "pages of {limit}");
    }
    let list = async |filter: ThreadFilter| {
        let page = f.store.threads(&f.scope, &filter, None, 100).await.unwrap();
        let mut ids: Vec<String> = page.found.iter().map(|t| t.id.to_string()).collect();
        ids.sort();
        ids
    };
    let filter = ThreadFilter {
        alias_kind: Some("a2a".into()),
        ..ThreadFilter::default()
    };
    assert_eq!(list(filter).await, ["t0", "t3", "t6"]);
    let filter = ThreadFilter {
        meta: vec![("parity".into(), "1".into())],
        ..ThreadFilter::default()
    };
    assert_eq!(list(filter).await, ["t1", "t3", "t5"]);
    // Text is compared with text, not with numbers.
    let filter = ThreadFilter {
        meta: vec![("n".into(), "1".into())],
        ..ThreadFilter::default()
    };
    assert_eq!(list(filter).await, [""; 0]);
    let now = crate::Clock::now(&*f.clock);
    let filter = ThreadFilter {
        touched_from: Some(now),
        ..ThreadFilter::default()
    };
    assert_eq!(list(filter).await, ["t0"]);
    let filter = ThreadFilter {
        touched_before: Some(now),
        ..ThreadFilter::default()
    };
    assert_eq!(list(filter).await.len(), 6);
}

pub(super) async fn another_tenant_sees_nothing(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let run = f.turn(&id, "secret", "kept").await;
    let live = f.begin(&id, "more").await;
    let mine = f.scope.clone();
    let stranger = Authority::assume().scope(Tenant::new("stranger").unwrap());
    let at = At::Thread(id.clone());
    let node = At::Node(NodeRef::Run(run));
    for place in [&at, &node] {
        let error = f.store.open(&stranger, place, 10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = f
            .store
            .read(&stranger, place, Span::Tail, 10)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    let absent = f
        .store
        .open(&stranger, &At::Thread(ThreadId::new("x").unwrap()), 1)
        .await;
    let foreign = f.store.open(&stranger, &at, 1).await;
    let words = |error: Error| error.to_string().replace(" t", " x");
    assert_eq!(words(absent.unwrap_err()), words(foreign.unwrap_err()));
    assert_eq!(
        f.store.run(&stranger, run).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        f.store.journal(&stranger, run).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let threads = f
        .store
        .threads(&stranger, &ThreadFilter::default(), None, 10)
        .await;
    assert_eq!(threads.unwrap().found, []);
    let runs = f
        .store
        .runs(&stranger, &crate::RunFilter::default(), None, 10)
        .await;
    assert_eq!(runs.unwrap().found, []);
    let publish = crate::Publish::new(0, super::fixture::said_by_model("forged"));
    let error = f
        .store
        .publish(&stranger, live.lease, &publish)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let begin = f.begin_at(Anchor::Node(NodeRef::Run(run)), "forged");
    let error = f.store.begin(&stranger, &begin).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // There is nothing to delete there.
    f.store.delete(&stranger, &id).await.unwrap();
    // The same id names another thread there.
    let new = NewThread::new(id.clone());
    let theirs = f.store.open_or_create(&stranger, &new, 10).await.unwrap();
    assert_eq!(theirs.entries, []);
    assert_eq!(f.scope, mine);
    assert_eq!(f.texts(&id).await, ["secret", "kept"]);
}

pub(super) async fn queued_messages_are_taken_with_a_run(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let first = f
        .store
        .enqueue(&f.scope, &id, &raw(r#"{"n":1}"#))
        .await
        .unwrap();
    let second = f
        .store
        .enqueue(&f.scope, &id, &raw(r#"{"n":2}"#))
        .await
        .unwrap();
    let opened = f.open(&id).await;
    assert_eq!(opened.queued, 2);
    let queue = f.store.queue(&f.scope, &id).await.unwrap();
    let numbers: Vec<_> = queue.iter().map(|queued| queued.no).collect();
    assert_eq!(numbers, [first, second]);
    assert_eq!(queue[1].body.get(), r#"{"n":2}"#);
    let mut begin = f.begin_at(
        Anchor::Head {
            thread: id.clone(),
            expected: opened.thread.version,
        },
        "one",
    );
    begin.dequeue = vec![first];
    f.started(&begin).await;
    let queue = f.store.queue(&f.scope, &id).await.unwrap();
    assert_eq!(queue.len(), 1);
    assert_eq!(f.open(&id).await.queued, 1);
}
