//! Which threads a listing finds.

use std::time::Duration;

use super::fixture::{Fixture, LEASE, said_by_user};
use super::threads::raw;
use crate::{
    Anchor, Append, Authority, End, Fork, NewThread, PageToken, RunState, Started, Stopped, Tenant,
    ThreadFilter, ThreadId,
};

impl Fixture<'_> {
    async fn listed(&self, filter: ThreadFilter) -> Vec<String> {
        let page = self.store.threads(&self.scope, &filter, None, 100).await;
        let mut ids: Vec<String> = page
            .unwrap()
            .found
            .iter()
            .map(|t| t.id.to_string())
            .collect();
        ids.sort();
        ids
    }

    async fn in_state(&self, states: &[RunState]) -> Vec<String> {
        let filter = ThreadFilter {
            states: states.to_vec(),
            ..ThreadFilter::default()
        };
        self.listed(filter).await
    }

    async fn of_turn(&self, agent: Option<&str>, model: Option<&str>) -> Vec<String> {
        let filter = ThreadFilter {
            agent: agent.map(str::to_owned),
            model: model.map(str::to_owned),
            ..ThreadFilter::default()
        };
        self.listed(filter).await
    }

    /// Begin a turn whose request is listed under an agent and a model.
    async fn asked(&self, thread: &ThreadId, agent: &str, model: &str) -> Started {
        let at = Anchor::Head {
            thread: thread.clone(),
            expected: self.open(thread).await.thread.version,
        };
        let mut begin = self.begin_at(at, "asked");
        begin.request = Some(raw(&format!(
            r#"{{"v":1,"listed":{{"agent":"{agent}","model":"{model}"}}}}"#
        )));
        self.started(&begin).await
    }

    async fn append(&self, thread: &ThreadId, text: &str) {
        let append = Append {
            run: self.store.ids().run(),
            thread: thread.clone(),
            expected: None,
            items: said_by_user(text),
            state: None,
            key: None,
        };
        self.store.append(&self.scope, &append).await.unwrap();
    }

    async fn end(&self, started: &Started, how: Stopped) {
        let end = End {
            how,
            note: None,
            events: None,
        };
        self.store
            .end(&self.scope, started.lease, &end)
            .await
            .unwrap();
    }
}

pub(super) async fn threads_are_found_by_title_and_age(f: &mut Fixture<'_>) {
    let start = crate::Clock::now(&*f.clock);
    for (n, title) in (0..).zip([
        Some("Tide tables"),
        Some("TIDES, again"),
        Some("Ebbe und Flut an der Küste"),
        Some("100% sure_"),
        None,
    ]) {
        let new = NewThread {
            title: title.map(str::to_owned),
            ..NewThread::new(ThreadId::new(&format!("t{n}")).unwrap())
        };
        f.store.open_or_create(&f.scope, &new, 0).await.unwrap();
        f.clock.advance(Duration::from_millis(10));
    }
    for (text, expected) in [
        ("tide", &["t0", "t1"][..]),
        ("TIDE", &["t0", "t1"]),
        ("KÜSTE", &["t2"]),
        // Nothing in it is a pattern.
        ("%", &["t3"]),
        ("e_", &["t3"]),
        ("' OR 1=1 --", &[]),
        ("", &["t0", "t1", "t2", "t3"]),
    ] {
        let filter = ThreadFilter {
            title: Some(text.to_owned()),
            ..ThreadFilter::default()
        };
        assert_eq!(f.listed(filter).await, expected, "{text:?}");
    }
    // A turn touches a thread, and it stays as old as it is.
    f.turn(&ThreadId::new("t1").unwrap(), "ask", "answer").await;
    for (from, before, expected) in [
        (Some(start), None, &["t0", "t1", "t2", "t3", "t4"][..]),
        (Some(start + 10), Some(start + 30), &["t1", "t2"]),
        (None, Some(start + 10), &["t0"]),
        (Some(start + 41), None, &[]),
        (Some(start + 30), Some(start + 30), &[]),
        (Some(u64::MAX), None, &[]),
    ] {
        let filter = ThreadFilter {
            created_from: from,
            created_before: before,
            ..ThreadFilter::default()
        };
        assert_eq!(f.listed(filter).await, expected, "{from:?} {before:?}");
    }
    // All conditions hold at once, on every page.
    let filter = ThreadFilter {
        title: Some("e".into()),
        created_from: Some(start + 10),
        ..ThreadFilter::default()
    };
    let (mut found, mut after): (Vec<String>, Option<PageToken>) = (Vec::new(), None);
    loop {
        let page = f.store.threads(&f.scope, &filter, after, 1).await.unwrap();
        found.extend(page.found.iter().map(|thread| thread.id.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["t1", "t3", "t2"]);
}

pub(super) async fn threads_are_found_by_their_newest_turn(f: &mut Fixture<'_>) {
    let one = f.thread("one").await;
    let two = f.thread("two").await;
    f.turn(&two, "of no agent", "and no model").await;
    let run = f.asked(&one, "desk", "anthropic/claude-x").await;
    // A run that is at work counts already.
    assert_eq!(f.of_turn(Some("desk"), None).await, ["one"]);
    f.publish(run.lease, 0, "answer").await;
    for (agent, model, expected) in [
        (Some("desk"), None, &["one"][..]),
        (None, Some("anthropic/claude-x"), &["one"]),
        (None, Some("claude-x"), &["one"]),
        (Some("desk"), Some("claude-x"), &["one"]),
        (Some("Desk"), None, &[]),
        (Some("desk"), Some("anthropic"), &[]),
        (Some("' OR ''='"), None, &[]),
        (None, Some(""), &[]),
    ] {
        assert_eq!(
            f.of_turn(agent, model).await,
            expected,
            "{agent:?} {model:?}"
        );
    }
    // What is added by hand is not a turn.
    for n in 0..5 {
        f.append(&one, &format!("by hand {n}")).await;
    }
    assert_eq!(f.of_turn(Some("desk"), None).await, ["one"]);
    // A fork goes on as the thread that it comes from, until it has a turn of its own.
    let fork = Fork {
        from: one.clone().into(),
        thread: NewThread::new(ThreadId::new("fork").unwrap()),
    };
    f.store.fork(&f.scope, &fork).await.unwrap();
    assert_eq!(f.of_turn(None, Some("claude-x")).await, ["fork", "one"]);
    let run = f.asked(&fork.thread.id, "pilot", "demo").await;
    f.publish(run.lease, 0, "answer").await;
    assert_eq!(f.of_turn(Some("desk"), None).await, ["one"]);
    assert_eq!(f.of_turn(Some("pilot"), Some("demo")).await, ["fork"]);
    // A turn that failed was the newest one all the same.
    let failed = f.asked(&two, "pilot", "demo").await;
    f.end(&failed, Stopped::Failed).await;
    assert_eq!(f.of_turn(Some("pilot"), None).await, ["fork", "two"]);
    let run = f.asked(&two, "desk", "demo").await;
    f.publish(run.lease, 0, "answer").await;
    assert_eq!(f.of_turn(Some("pilot"), None).await, ["fork"]);
    assert_eq!(f.of_turn(Some("desk"), None).await, ["one", "two"]);
    // Another tenant has none of them.
    let stranger = f.scoped(Authority::assume().scope(Tenant::new("stranger").unwrap()));
    assert_eq!(stranger.of_turn(Some("desk"), None).await, [""; 0]);
}

pub(super) async fn threads_are_found_by_the_state_of_their_newest_run(f: &mut Fixture<'_>) {
    use RunState::{Committed, Discarded, Failed, Interrupted, Parked, Running, Unpublished};
    f.thread("empty").await;
    let done = f.thread("done").await;
    f.turn(&done, "ask", "answer").await;
    let mut runs = Vec::new();
    for id in ["failed", "discarded", "unpublished", "parked", "left"] {
        let thread = f.thread(id).await;
        f.turn(&thread, "ask", "answer").await;
        runs.push((thread.clone(), f.begin(&thread, "more").await));
    }
    let all = ["discarded", "failed", "left", "parked", "unpublished"];
    assert_eq!(f.in_state(&[Running]).await, all);
    for ((_, run), how) in
        runs.iter()
            .zip([Stopped::Failed, Stopped::Discarded, Stopped::Unpublished])
    {
        f.end(run, how).await;
    }
    f.store.park(&f.scope, runs[3].1.lease, None).await.unwrap();
    assert_eq!(f.in_state(&[Running]).await, ["left"]);
    // Its owner is lost.
    f.clock.advance(LEASE * 2);
    for (states, expected) in [
        (&[Running][..], &[][..]),
        (&[Interrupted], &["left"]),
        (&[Parked], &["parked"]),
        (&[Failed], &["failed"]),
        (&[Discarded], &["discarded"]),
        (&[Unpublished], &["unpublished"]),
        (&[Committed], &["done"]),
        (&[Parked, Failed, Committed], &["done", "failed", "parked"]),
    ] {
        assert_eq!(f.in_state(states).await, expected, "{states:?}");
    }
    assert_eq!(f.in_state(&[]).await.len(), 7, "no state asks for any");
    // A later run takes the place of one that failed; a fork has no run of its own.
    f.store.renew().await.unwrap();
    f.turn(&runs[0].0, "again", "answer").await;
    let fork = Fork {
        from: done.clone().into(),
        thread: NewThread::new(ThreadId::new("fork").unwrap()),
    };
    f.store.fork(&f.scope, &fork).await.unwrap();
    assert_eq!(f.in_state(&[Failed]).await, [""; 0]);
    assert_eq!(f.in_state(&[Committed]).await, ["done", "failed"]);
}
