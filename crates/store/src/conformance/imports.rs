use std::time::Duration;

use throughline_model::{Message, Source};

use super::fixture::{Fixture, model, texts};
use crate::{
    At, ErrorKind, Import, ImportItem, ImportNode, ItemContent, Mode, NewThread, NodeId, NodeRef,
    Redaction, RunId, RunKind, RunState, Span, State, ThreadFilter, ThreadId,
};

fn node(run: u8, step: u32, parent: Option<(u8, u32)>, texts: &[&str]) -> ImportNode {
    let id = |run: u8, step| NodeId {
        run: RunId::from_bytes([run; 16]),
        step,
    };
    let items = texts.iter().enumerate().map(|(n, text)| {
        let mut message = match n % 2 {
            0 => Message::user(*text),
            _ => model(text),
        };
        message.source.get_or_insert(Source::Caller);
        ImportItem::Content(ItemContent::of(&message).remove(0))
    });
    ImportNode {
        node: id(run, step),
        parent: parent.map(|(run, step)| id(run, step)),
        items: items.collect(),
        open: false,
        state: None,
        created: 1_000,
        kind: RunKind::Turn,
        mode: Mode::PerCall,
        ended: RunState::Committed,
        begun: 900,
        note: None,
        hidden: false,
    }
}

async fn import(f: &Fixture<'_>, import: Import) {
    f.store.import(&f.scope, &import).await.unwrap();
}

pub(super) async fn an_import_shows_when_it_is_complete(f: &mut Fixture<'_>) {
    let id = ThreadId::new("t").unwrap();
    let open = Import::Open {
        thread: NewThread::new(id.clone()),
        created: 500,
    };
    import(f, open.clone()).await;
    let first = Import::Node {
        thread: id.clone(),
        node: Box::new(node(1, 0, None, &["one", "1"])),
    };
    import(f, first.clone()).await;
    let hidden = async |f: &Fixture<'_>| {
        let at = At::Thread(id.clone());
        let error = f.store.open(&f.scope, &at, 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let run = NodeRef::Run(RunId::from_bytes([1; 16]));
        let error = f.store.open(&f.scope, &At::Node(run), 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let list = f
            .store
            .threads(&f.scope, &ThreadFilter::default(), None, 10)
            .await;
        assert_eq!(list.unwrap().found, []);
    };
    hidden(f).await;
    import(f, Import::Abort { thread: id.clone() }).await;
    hidden(f).await;
    // The names are free again.
    import(f, open).await;
    import(f, first).await;
    let head = NodeId {
        run: RunId::from_bytes([1; 16]),
        step: 0,
    };
    let finish = Import::Finish {
        thread: id.clone(),
        head: Some(head),
        touched: 2_000,
    };
    import(f, finish).await;
    let opened = f.open(&id).await;
    assert_eq!(texts(&opened.entries), ["one", "1"]);
    assert_eq!((opened.thread.created, opened.thread.touched), (500, 2_000));
    assert_eq!(opened.thread.version, crate::Version(0));
    f.turn(&id, "two", "2").await;
    assert_eq!(f.texts(&id).await.len(), 4);
    // What was never finished is swept after a day.
    let other = ThreadId::new("u").unwrap();
    let open = Import::Open {
        thread: NewThread::new(other.clone()),
        created: 500,
    };
    import(f, open).await;
    let left = Import::Node {
        thread: other,
        node: Box::new(node(9, 0, None, &["left"])),
    };
    import(f, left).await;
    f.clock.advance(Duration::from_secs(25 * 3600));
    while f.store.purge(100).await.unwrap().more {}
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!((checked.items, checked.damage), (4, vec![]));
}

pub(super) async fn an_import_keeps_names_and_positions(f: &mut Fixture<'_>) {
    let id = ThreadId::new("t").unwrap();
    let open = Import::Open {
        thread: NewThread::new(id.clone()),
        created: 500,
    };
    import(f, open).await;
    let mut state = State::default();
    state.set_provider(
        "memory",
        Some(throughline_model::json::RawJson::new("1").unwrap()),
    );
    let mut second = node(1, 1, Some((1, 0)), &["two"]);
    second.state = Some(state.clone());
    let mut branch = node(2, 0, Some((1, 0)), &["other"]);
    branch.items.push(ImportItem::Gap);
    let secret = ItemContent::of(&Message::user("a secret")).remove(0);
    let redaction = Redaction {
        by: "ada".into(),
        at: 700,
        left: throughline_model::json::RawJson::new(&Message::user("[redacted]").to_json()).ok(),
    };
    branch
        .items
        .push(ImportItem::Redacted(secret.emptied(), redaction));
    branch.open = true;
    let nodes = [node(1, 0, None, &["one", "1"]), second, branch];
    for node in nodes {
        let step = Import::Node {
            thread: id.clone(),
            node: Box::new(node),
        };
        import(f, step).await;
    }
    let head = NodeId {
        run: RunId::from_bytes([1; 16]),
        step: 1,
    };
    let finish = Import::Finish {
        thread: id.clone(),
        head: Some(head),
        touched: 2_000,
    };
    import(f, finish).await;
    let opened = f.open(&id).await;
    assert_eq!(texts(&opened.entries), ["one", "1", "two"]);
    assert_eq!((opened.tip.unwrap().node, opened.state), (head, state));
    let inner = NodeRef::Node(NodeId { step: 0, ..head });
    assert_eq!(f.texts_at(inner).await, ["one", "1"]);
    assert_eq!(f.texts_at(NodeRef::Run(head.run)).await.len(), 3);
    let branch = NodeRef::Run(RunId::from_bytes([2; 16]));
    let page = f
        .store
        .read(&f.scope, &At::Node(branch), Span::Tail, 10)
        .await
        .unwrap();
    assert_eq!(texts(&page.entries), ["one", "1", "other", "[redacted]"]);
    assert_eq!(page.entries[3].redacted.clone().unwrap().by, "ada");
    assert_eq!(page.entries[3].first, 5);
    assert_eq!(page.entries[2].at.no, 1);
    let run = f.store.run(&f.scope, head.run).await.unwrap();
    assert_eq!(
        (run.mode, run.state, run.created),
        (Mode::PerCall, RunState::Committed, 900)
    );
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!(
        (checked.nodes, checked.items, checked.damage),
        (3, 6, vec![])
    );
    // A parent that is not there is refused.
    let open = Import::Open {
        thread: NewThread::new(ThreadId::new("u").unwrap()),
        created: 500,
    };
    import(f, open).await;
    let orphan = Import::Node {
        thread: ThreadId::new("u").unwrap(),
        node: Box::new(node(3, 0, Some((7, 7)), &["x"])),
    };
    assert!(f.store.import(&f.scope, &orphan).await.is_err());
    // So is a run that exists.
    let taken = Import::Node {
        thread: ThreadId::new("u").unwrap(),
        node: Box::new(node(1, 0, None, &["x"])),
    };
    assert!(f.store.import(&f.scope, &taken).await.is_err());
}
