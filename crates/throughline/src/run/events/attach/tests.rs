use futures_util::StreamExt;
use throughline_model::Place;
use throughline_store::{
    Claim, EventNo, Flush, ItemRef, Publish, RunId, RunState, Started, StoredEvent,
};
use throughline_testkit::record::assistant;

use super::{AttachError, Attached, Reader};
use crate::run::RunEvent;
use crate::run::events::fixture::{Fixture, LEASE, flush, publish};
use crate::run::events::{BadEvent, replayed};
use crate::thread::StopReason;

fn text(delta: &str) -> RunEvent {
    RunEvent::Text {
        step: 0,
        at: Place::new(0, 0, 0),
        delta: delta.to_owned(),
    }
}

fn asked() -> RunEvent {
    RunEvent::Asked { step: 0 }
}

fn ended(stop: StopReason) -> RunEvent {
    RunEvent::Ended { stop }
}

impl Fixture {
    fn attach(&self, run: RunId, after: Option<EventNo>) -> Attached {
        Attached::new(self.store.clone(), self.scope.clone(), run, after)
    }

    /// Everything that a reader gets.
    async fn read(&self, run: RunId, after: Option<EventNo>) -> Vec<(EventNo, RunEvent)> {
        let events = self.attach(run, after).collect::<Vec<_>>().await;
        events.into_iter().map(Result::unwrap).collect()
    }

    async fn flush(&self, started: Started, first: EventNo, events: &[RunEvent]) {
        let flush = flush(first, events);
        let done = self.store.flush(&self.scope, started.lease, &flush).await;
        done.unwrap();
    }

    async fn publish(&self, started: Started, events: Option<Flush>) {
        let publish = Publish {
            events,
            ..publish(0, &[assistant("04:12")], StopReason::Done)
        };
        let done = self
            .store
            .publish(&self.scope, started.lease, &publish)
            .await;
        done.unwrap();
    }
}

fn numbered(first: EventNo, events: &[RunEvent]) -> Vec<(EventNo, RunEvent)> {
    (first..).zip(events.iter().cloned()).collect()
}

#[tokio::test(start_paused = true)]
async fn stored_events_are_read_from_any_number() {
    let f = Fixture::new().await;
    let all = [
        asked(),
        text("0"),
        text("4"),
        text(":"),
        text("12"),
        ended(StopReason::Done),
    ];
    let started = f.begin(&all[..1]).await;
    f.flush(started, 1, &all[1..4]).await;
    f.publish(started, Some(flush(4, &all[4..]))).await;
    let run = started.lease.run;
    assert_eq!(f.read(run, None).await, numbered(0, &all));
    for after in 0..all.len() {
        let rest = numbered(after as u64 + 1, &all[after + 1..]);
        assert_eq!(f.read(run, Some(after as u64)).await, rest, "after {after}");
    }
    assert_eq!(f.read(run, Some(u64::MAX)).await, []);
}

#[tokio::test(start_paused = true)]
async fn many_events_are_read_in_pages() {
    let f = Fixture::new().await;
    let mut all: Vec<RunEvent> = (0..2000).map(|no| text(&no.to_string())).collect();
    all.push(ended(StopReason::Done));
    let started = f.begin(&all[..1]).await;
    for (no, event) in all.iter().enumerate().take(2000).skip(1) {
        f.flush(started, no as u64, std::slice::from_ref(event))
            .await;
    }
    f.publish(started, Some(flush(2000, &all[2000..]))).await;
    let run = started.lease.run;
    assert_eq!(f.read(run, None).await, numbered(0, &all));
    assert_eq!(f.read(run, Some(1700)).await, numbered(1701, &all[1701..]));
}

#[tokio::test(start_paused = true)]
async fn a_live_run_is_followed_to_its_end() {
    let f = Fixture::new().await;
    let started = f.begin(&[asked()]).await;
    let mut first = f.attach(started.lease.run, None);
    let mut second = f.attach(started.lease.run, Some(0));
    assert_eq!(first.next().await.unwrap().unwrap(), (0, asked()));
    for no in 1..5 {
        let event = text(&no.to_string());
        let (read, also, ()) = tokio::join!(
            first.next(),
            second.next(),
            // Time is paused: readers have looked and wait when this goes on.
            async {
                tokio::time::sleep(super::PAUSE * 3).await;
                f.flush(started, no, std::slice::from_ref(&event)).await;
            }
        );
        assert_eq!(read.unwrap().unwrap(), (no, event.clone()));
        assert_eq!(also.unwrap().unwrap(), (no, event));
    }
    // A reader that goes away changes nothing.
    drop(second);
    let end = ended(StopReason::Done);
    let last = flush(5, std::slice::from_ref(&end));
    let (read, ()) = tokio::join!(first.next(), f.publish(started, Some(last)));
    assert_eq!(read.unwrap().unwrap(), (5, end));
    assert!(first.next().await.is_none());
    assert!(first.next().await.is_none());
    let run = f.store.run(&f.scope, started.lease.run).await.unwrap();
    assert_eq!(run.state, RunState::Committed);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_stored_no_events_is_told_from_its_journal() {
    let f = Fixture::new().await;
    let started = f.begin(&[]).await;
    let run = started.lease.run;
    let (live, ()) = tokio::join!(f.read(run, None), async {
        tokio::time::sleep(super::PAUSE * 3).await;
        f.publish(started, None).await;
    });
    let expected = numbered(0, &replayed(&f.journal(run).await));
    assert_eq!(expected.last().unwrap().1, ended(StopReason::Done));
    assert_eq!(live, expected);
    assert_eq!(f.read(run, None).await, expected);
    assert_eq!(f.read(run, Some(2)).await, expected[3..]);
    assert_eq!(f.read(run, Some(4711)).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_is_read_as_far_as_it_goes() {
    let f = Fixture::new().await;
    let started = f.begin(&[asked()]).await;
    let run = started.lease.run;
    let parked = ended(StopReason::Parked);
    let last = flush(1, std::slice::from_ref(&parked));
    let (store, scope) = (&f.store, &f.scope);
    store.park(scope, started.lease, Some(&last)).await.unwrap();
    let before = [asked(), parked];
    assert_eq!(f.read(run, None).await, numbered(0, &before));

    // Gone on with: readers from the beginning get both parts, others the second.
    let again = store
        .claim(scope, run, started.lease.epoch, Claim::Parked)
        .await
        .unwrap();
    let after = [text("04:12"), ended(StopReason::Done)];
    let (live, ()) = tokio::join!(f.read(run, Some(1)), async {
        f.flush(again, 2, &after[..1]).await;
        f.publish(again, Some(flush(3, &after[1..]))).await;
    });
    assert_eq!(live, numbered(2, &after));
    let all: Vec<RunEvent> = before.into_iter().chain(after).collect();
    assert_eq!(f.read(run, None).await, numbered(0, &all));
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_between_two_looks_is_not_missed() {
    let f = Fixture::new().await;
    let started = f.begin(&[asked()]).await;
    let (store, scope, run) = (&f.store, &f.scope, started.lease.run);
    store.park(scope, started.lease, None).await.unwrap();
    let mut reader = Reader::new(store.clone(), scope.clone(), run, Some(0));
    // There is nothing to read and the run stands. Before it is read again, the run ends.
    reader.read().await.unwrap();
    let again = store
        .claim(scope, run, started.lease.epoch, Claim::Parked)
        .await
        .unwrap();
    let end = ended(StopReason::Done);
    let last = flush(1, std::slice::from_ref(&end));
    f.publish(again, Some(last)).await;
    assert_eq!(reader.next().await.unwrap(), Some((1, end)));
    assert_eq!(reader.next().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_ends_without_an_end() {
    let f = Fixture::new().await;
    let started = f.begin(&[asked(), text("04")]).await;
    f.clock.advance(LEASE * 2);
    let run = f.store.run(&f.scope, started.lease.run).await.unwrap();
    assert_eq!(run.state, RunState::Interrupted);
    let read = f.read(run.id, None).await;
    assert_eq!(read, numbered(0, &[asked(), text("04")]));
}

#[tokio::test(start_paused = true)]
async fn events_of_a_later_version_are_passed_over() {
    let f = Fixture::new().await;
    let started = f.begin(&[asked()]).await;
    let news = StoredEvent {
        kind: 4711,
        body: b"news".to_vec(),
    };
    let last = Flush::new(1, &[news, super::super::encode(&ended(StopReason::Done))]);
    f.publish(started, Some(last)).await;
    assert_eq!(
        f.read(started.lease.run, None).await,
        [(0, asked()), (2, ended(StopReason::Done))]
    );
}

#[tokio::test(start_paused = true)]
async fn a_redacted_run_still_ends() {
    let f = Fixture::new().await;
    let started = f.begin(&[asked(), text("04:12")]).await;
    let end = ended(StopReason::Done);
    f.publish(started, Some(flush(2, std::slice::from_ref(&end))))
        .await;
    let run = started.lease.run;
    let item = ItemRef { run, no: 2 };
    f.store.redact(&f.scope, item, "somebody").await.unwrap();
    assert_eq!(f.read(run, None).await, [(2, end)]);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_event_is_an_error_after_those_before_it() {
    let f = Fixture::new().await;
    let started = f.begin(&[asked()]).await;
    let damaged = StoredEvent {
        kind: 3,
        body: vec![0xFF],
    };
    f.publish(started, Some(Flush::new(1, &[damaged]))).await;
    let run = started.lease.run;
    let mut attached = f.attach(run, None);
    assert_eq!(attached.next().await.unwrap().unwrap(), (0, asked()));
    match attached.next().await {
        Some(Err(AttachError::Event {
            run: of,
            no: 1,
            source: BadEvent::Damaged { kind: 3, .. },
        })) => assert_eq!(of, run),
        other => panic!("{other:?}"),
    }
    assert!(attached.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_there_is_an_error() {
    let f = Fixture::new().await;
    let read: Vec<_> = f.attach(f.store.ids().run(), None).collect().await;
    assert!(
        matches!(&read[..], [Err(AttachError::Store { .. })]),
        "{read:?}"
    );
}

/// Two stores on one file are what two processes have.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn another_process_reads_along_and_again() {
    let scratch = throughline_testkit::Scratch::new("attached");
    let url = scratch.sqlite("s.db");
    let f = Fixture::on(throughline_store::Store::open(&url).await.unwrap());
    let other = throughline_store::Store::open(&url).await.unwrap();
    let all = [asked(), text("04"), text(":12"), ended(StopReason::Done)];
    let started = f.begin(&all[..1]).await;
    let run = started.lease.run;
    let mut along = Attached::new(other.clone(), f.scope.clone(), run, None);
    for no in 0..3 {
        if no > 0 {
            f.flush(started, no, &all[no as usize..][..1]).await;
        }
        let read = along.next().await.unwrap().unwrap();
        assert_eq!(read, (no, all[no as usize].clone()));
    }
    let (last, ()) = tokio::join!(along.next(), f.publish(started, Some(flush(3, &all[3..]))));
    assert_eq!(last.unwrap().unwrap(), (3, all[3].clone()));
    assert!(along.next().await.is_none());
    drop((f, along, other));

    let later = Fixture::on(throughline_store::Store::open(&url).await.unwrap());
    assert_eq!(later.read(run, None).await, numbered(0, &all));
    assert_eq!(later.read(run, Some(1)).await, numbered(2, &all[2..]));
}
