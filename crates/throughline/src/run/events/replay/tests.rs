use throughline_model::{Body, Content, Message, Outcome, Output, Reasoning, Role, Text};
use throughline_store::{CallResult, End, Ending, NewItem, Publish, Step, Stopped, Through};
use throughline_testkit::record::{answered, assistant, short, user};

use super::replayed;
use crate::run::RunEvent;
use crate::run::events::fixture::{Fixture, publish, step};
use crate::thread::StopReason;

/// Events in short.
fn told(events: &[RunEvent]) -> Vec<String> {
    let word = |event: &RunEvent| match event {
        RunEvent::Started { .. } => "started".to_owned(),
        RunEvent::Asked { step } => format!("asked {step}"),
        RunEvent::Text { step, at, delta } => {
            format!("text {step} {}.{}.{} {delta}", at.choice, at.item, at.part)
        }
        RunEvent::Refusal { step, at, delta } => {
            format!(
                "refused {step} {}.{}.{} {delta}",
                at.choice, at.item, at.part
            )
        }
        RunEvent::Summary {
            step,
            at,
            part,
            delta,
        } => {
            format!(
                "summary {step} {}.{}.{} {part} {delta}",
                at.choice, at.item, at.part
            )
        }
        RunEvent::Reasoning { step, at, delta } => {
            format!(
                "thought {step} {}.{}.{} {delta}",
                at.choice, at.item, at.part
            )
        }
        RunEvent::Content { step, at, .. } => {
            format!("content {step} {}.{}.{}", at.choice, at.item, at.part)
        }
        RunEvent::Incomplete { .. } => "incomplete".to_owned(),
        RunEvent::Compacted { step, .. } => format!("compacted {step}"),
        RunEvent::Narrated { .. } => "narrated".to_owned(),
        RunEvent::Dispatched { .. } => "dispatched".to_owned(),
        RunEvent::Result {
            step,
            position,
            result,
        } => format!("result {step}.{position} {}", result.call()),
        RunEvent::Message(message) => format!("message {}", short(message)),
        RunEvent::Ended { stop } => format!("ended {stop}"),
    };
    events.iter().map(word).collect()
}

#[tokio::test]
async fn a_run_with_calls_is_told_in_order() {
    let f = Fixture::new().await;
    let lease = f.begin(&[]).await.lease;
    let (store, scope) = (&f.store, &f.scope);
    store
        .step(scope, lease, &step(0, &["a", "b"]))
        .await
        .unwrap();
    // Results come in any order; they are told in that of the calls.
    for (position, id) in [(1, "b"), (0, "a")] {
        let result = CallResult::new(0, position, &answered(id));
        store.results(scope, lease, &[result]).await.unwrap();
    }
    let before = replayed(&f.journal(lease.run).await);
    let end = publish(1, &[assistant("04:12")], StopReason::Terminated);
    store.publish(scope, lease, &end).await.unwrap();

    let journal = f.journal(lease.run).await;
    let events = replayed(&journal);
    assert_eq!(
        told(&events),
        [
            "started",
            "message when is high water?",
            "asked 0",
            "content 0 0.0.0",
            "content 0 0.1.0",
            "message call a+call b",
            "result 0.0 a",
            "result 0.1 b",
            "message result a+result b",
            "asked 1",
            "text 1 0.0.0 04:12",
            "content 1 0.0.0",
            "message 04:12",
            "ended terminated",
        ]
    );
    assert_eq!(
        events[0],
        RunEvent::Started {
            run: lease.run,
            thread: f.thread.clone()
        }
    );
    let messages = events.iter().filter_map(|event| match event {
        RunEvent::Message(message) => Some(message),
        _ => None,
    });
    assert!(messages.eq(journal.entries.iter().map(|entry| &entry.message)));
    // What was told before the end is still told, under the same numbers.
    assert_eq!(before, events[..before.len()]);
    assert_eq!(before.len(), 9);
}

#[tokio::test]
async fn an_open_round_is_not_told_before_it_is_whole() {
    let f = Fixture::new().await;
    let lease = f.begin(&[]).await.lease;
    let (store, scope) = (&f.store, &f.scope);
    store
        .step(scope, lease, &step(0, &["a", "b"]))
        .await
        .unwrap();
    let result = CallResult::new(0, 0, &answered("a"));
    store.results(scope, lease, &[result]).await.unwrap();
    let open = replayed(&f.journal(lease.run).await);
    assert_eq!(told(&open).last().unwrap(), "message call a+call b");

    // Closed: the other call gets a result that says so, and no model is asked.
    let mut closed = answered("b");
    if let Body::ToolResult(result) = &mut closed.contents[0].body {
        result.outcome = Outcome::Cancelled;
        result.output = Output::None;
    }
    let end = Publish {
        results: vec![CallResult::new(0, 1, &closed)],
        through: Through::Everything,
        ending: Ending::Cancelled,
        ..Publish::new(1, Vec::new())
    };
    store.publish(scope, lease, &end).await.unwrap();
    let events = replayed(&f.journal(lease.run).await);
    assert_eq!(open, events[..open.len()]);
    assert_eq!(
        told(&events[open.len()..]),
        [
            "result 0.0 a",
            "result 0.1 b",
            "message result a+result b",
            "ended cancelled",
        ]
    );
}

#[tokio::test]
async fn a_failed_run_tells_the_results_that_it_has() {
    let f = Fixture::new().await;
    let lease = f.begin(&[]).await.lease;
    let (store, scope) = (&f.store, &f.scope);
    store
        .step(scope, lease, &step(0, &["a", "b"]))
        .await
        .unwrap();
    let result = CallResult::new(0, 1, &answered("b"));
    store.results(scope, lease, &[result]).await.unwrap();
    let end = End {
        how: Stopped::Failed,
        note: None,
        events: None,
    };
    store.end(scope, lease, &end).await.unwrap();
    let events = replayed(&f.journal(lease.run).await);
    assert_eq!(
        told(&events)[6..],
        ["result 0.1 b", "message result b", "ended failed"]
    );
}

#[tokio::test]
async fn calls_with_one_id_keep_their_positions() {
    let f = Fixture::new().await;
    let lease = f.begin(&[]).await.lease;
    let (store, scope) = (&f.store, &f.scope);
    store
        .step(scope, lease, &step(0, &["a", "a"]))
        .await
        .unwrap();
    for position in [1, 0] {
        let result = CallResult::new(0, position, &answered("a"));
        store.results(scope, lease, &[result]).await.unwrap();
    }
    let events = replayed(&f.journal(lease.run).await);
    assert_eq!(
        told(&events)[6..],
        ["result 0.0 a", "result 0.1 a", "message result a+result a"]
    );
}

#[tokio::test]
async fn what_was_said_to_the_model_comes_before_it_is_asked() {
    let f = Fixture::new().await;
    let lease = f.begin(&[]).await.lease;
    let (store, scope) = (&f.store, &f.scope);
    let thought = Content::new(Body::Reasoning(Reasoning {
        summary: vec!["in short".to_owned()],
        text: vec!["spring ".to_owned(), "tide".to_owned()],
        sealed: false,
    }));
    let hinted = Content::new(Body::Reasoning(Reasoning {
        summary: vec!["hint".to_owned()],
        ..Reasoning::default()
    }));
    let refusal = Content::new(Body::Refusal(Text {
        text: "no".to_owned(),
        citations: Vec::new(),
    }));
    let contents = vec![thought, hinted, Content::text(""), refusal];
    let first = Step {
        no: 0,
        items: NewItem::of(&[
            user("by the way"),
            Message::new(Role::Assistant, contents),
            assistant("and"),
        ]),
        ..Step::default()
    };
    store.step(scope, lease, &first).await.unwrap();
    let end = publish(1, &[user("later")], StopReason::RoundLimit);
    store.publish(scope, lease, &end).await.unwrap();
    let events = replayed(&f.journal(lease.run).await);
    assert_eq!(
        told(&events)[2..],
        [
            "message by the way",
            "asked 0",
            "summary 0 0.0.0 0 in short",
            "thought 0 0.0.0 spring tide",
            "content 0 0.0.0",
            "summary 0 0.1.0 0 hint",
            "content 0 0.1.0",
            "content 0 0.2.0",
            "refused 0 0.3.0 no",
            "content 0 0.3.0",
            "text 0 1.0.0 and",
            "content 0 1.0.0",
            "message ?+?++?",
            "message and",
            "message later",
            "ended round_limit",
        ]
    );
}
