//! Runs in the states in which other processes leave them.

use std::sync::Arc;

use throughline_model::{CallId, Content, Message, Outcome, Output, Role, Source, ToolCall};
use throughline_store::{
    Anchor, Begin, Begun, CallResult, CallState, Clock as _, Effect, End, Heartbeat, Lease,
    ManualClock, NewItem, NewThread, Options, PlannedCall, Publish, Step, Stopped, Store,
    SystemClock, TenantScope, ThreadId,
};
use throughline_testkit::record::block_on;

fn scope() -> TenantScope {
    TenantScope::local()
}

/// A store of a process whose last heartbeat was an hour ago.
async fn long_ago(url: &str) -> Store {
    let options = Options {
        clock: Arc::new(ManualClock::at(SystemClock.now() - 3_600_000)),
        heartbeat: Heartbeat::Manual,
        ..Options::default()
    };
    Store::open_with(url, options).await.unwrap()
}

async fn begin(store: &Store, thread: &str) -> Lease {
    let thread = ThreadId::new(thread).unwrap();
    let opened = store
        .open_or_create(&scope(), &NewThread::new(thread.clone()), 0)
        .await
        .unwrap();
    let at = Anchor::Head {
        thread,
        expected: opened.thread.version,
    };
    let input = Message {
        source: Some(Source::Caller),
        ..Message::user("What is the tide?")
    };
    let begin = Begin::new(store.ids().run(), at, NewItem::of(&[input]));
    match store.begin(&scope(), &begin).await.unwrap() {
        Begun::Started(started) => started.lease,
        Begun::Repeated(run) => panic!("a repetition of {}", run.id),
    }
}

fn answer() -> Vec<NewItem> {
    NewItem::of(&[Message::new(Role::Assistant, vec![Content::text("Low.")])])
}

/// A run with four calls whose process is dead: one is done, one was dispatched, one was planned,
/// one waits for the application.
pub(crate) fn interrupted(url: &str, thread: &str) -> String {
    block_on(async {
        let store = long_ago(url).await;
        let lease = begin(&store, thread).await;
        let call = |n: u32| {
            let id = CallId::natural(&format!("call_{n}")).unwrap();
            ToolCall::function(id, "get_tide", "{}")
        };
        let contents = (0..4).map(|n| Content::from(call(n))).collect();
        let states = [
            CallState::Planned,
            CallState::Intent,
            CallState::Planned,
            CallState::Client,
        ];
        let planned = |(n, state): (usize, &CallState)| PlannedCall {
            call: format!("call_{n}"),
            tool: "get_tide".into(),
            effect: Effect::Once,
            state: *state,
        };
        let step = Step {
            items: NewItem::of(&[Message::new(Role::Assistant, contents)]),
            calls: states.iter().enumerate().map(planned).collect(),
            ..Step::default()
        };
        store.step(&scope(), lease, &step).await.unwrap();
        let result = call(0).answer(Outcome::Ok, Output::Text("04:12".into()));
        let message = Message::new(Role::Tool, vec![result.into()]);
        let result = CallResult::new(0, 0, &message);
        store.results(&scope(), lease, &[result]).await.unwrap();
        store.close().await.unwrap();
        lease.run.to_string()
    })
}

/// A run that ended and was not published.
pub(crate) fn unpublished(url: &str, thread: &str) -> String {
    block_on(async {
        let store = long_ago(url).await;
        let lease = begin(&store, thread).await;
        let step = Step {
            items: answer(),
            ..Step::default()
        };
        store.step(&scope(), lease, &step).await.unwrap();
        let end = End {
            how: Stopped::Unpublished,
            note: None,
            events: None,
        };
        store.end(&scope(), lease, &end).await.unwrap();
        store.close().await.unwrap();
        lease.run.to_string()
    })
}

/// A finished turn.
pub(crate) fn turn(url: &str, thread: &str) {
    block_on(async {
        let store = long_ago(url).await;
        let lease = begin(&store, thread).await;
        let publish = Publish::new(0, answer());
        store.publish(&scope(), lease, &publish).await.unwrap();
        store.close().await.unwrap();
    });
}

/// A running run: its process is alive as long as the store is open.
pub(crate) fn running(url: &str, thread: &str) -> (Store, String) {
    block_on(async {
        let store = Store::open(url).await.unwrap();
        let lease = begin(&store, thread).await;
        (store, lease.run.to_string())
    })
}
