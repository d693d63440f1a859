//! Runs of the same id.

use super::twins::{PLANNED, Twins, WAITING, alike};
use crate::conformance::fixture::{Fixture, result, said_by_model};
use crate::{
    At, CallState, Claim, End, ErrorKind, Lease, Publish, RunFilter, RunId, RunState, Step,
    Stopped, ThreadId,
};

/// A lease of the first owner of a run.
fn first(run: RunId) -> Lease {
    Lease { run, epoch: 1 }
}

fn failed() -> End {
    End {
        how: Stopped::Failed,
        note: None,
        events: None,
    }
}

pub(in crate::conformance) async fn tenants_write_to_their_own_runs(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let ids = f.store.ids();
    let unmade = ids.run();
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        let theirs = other.own_lease.run;
        let said = said_by_model(&format!("forged by {}", me.word));
        let step = Step {
            no: 1,
            items: said.clone(),
            ..Step::default()
        };
        alike("step", &theirs, &unmade, async |run| {
            store.step(scope, first(run), &step).await
        })
        .await;
        let call = me.remote_call(1);
        alike("remote_call", &theirs, &unmade, async |run| {
            store.remote_call(scope, first(run), &call).await
        })
        .await;
        alike("intend", &theirs, &unmade, async |run| {
            store.intend(scope, first(run), 0, &[PLANNED]).await
        })
        .await;
        let asked = [me.asked(ids.approval(), 0, PLANNED)];
        alike("ask", &theirs, &unmade, async |run| {
            store.ask(scope, first(run), &asked).await
        })
        .await;
        let results = [result(0, PLANNED, "a")];
        alike("results", &theirs, &unmade, async |run| {
            store.results(scope, first(run), &results).await
        })
        .await;
        alike("flush", &theirs, &unmade, async |run| {
            store.flush(scope, first(run), &me.events(1)).await
        })
        .await;
        let publish = Publish::new(1, said);
        alike("publish", &theirs, &unmade, async |run| {
            store.publish(scope, first(run), &publish).await
        })
        .await;
        alike("park", &theirs, &unmade, async |run| {
            store.park(scope, first(run), None).await
        })
        .await;
        alike("end", &theirs, &unmade, async |run| {
            store.end(scope, first(run), &failed()).await
        })
        .await;
        other.still_sees(&before).await;
    }
    write_under_equal_leases(&twins).await;
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        store.park(scope, me.own_lease, None).await.unwrap();
        let claimed = store.claim(scope, me.own_lease.run, 1, Claim::Parked).await;
        let lease = claimed.unwrap().lease;
        store.end(scope, lease, &failed()).await.unwrap();
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}

/// The same lease means another run for each tenant.
async fn write_under_equal_leases(twins: &Twins<'_>) {
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        store.flush(scope, me.lease, &me.events(1)).await.unwrap();
        store.intend(scope, me.lease, 0, &[PLANNED]).await.unwrap();
        let results = [result(0, PLANNED, "a"), result(0, WAITING, "b")];
        store.results(scope, me.lease, &results).await.unwrap();
        let call = me.remote_call(1);
        store.remote_call(scope, me.lease, &call).await.unwrap();
        let journal = store.journal(scope, me.lease.run).await.unwrap();
        assert_eq!(journal.remote, Some(call));
        other.still_sees(&before).await;
        let asking = Step {
            events: Some(me.events(2)),
            dequeue: vec![other.queued],
            // An approval that the other has.
            ..me.step(1, other.own_approval)
        };
        store.step(scope, me.lease, &asking).await.unwrap();
        let end = Publish {
            results: vec![result(1, PLANNED, "a"), result(1, WAITING, "b")],
            note: Some(me.json()),
            events: Some(me.events(3)),
            dequeue: vec![other.queued],
            ..Publish::new(2, said_by_model(&format!("end of {}", me.word)))
        };
        let published = store.publish(scope, me.lease, &end).await.unwrap();
        let again = store.publish(scope, me.lease, &end).await.unwrap();
        assert_eq!((again, published.moved), (published, true));
        let said = me.texts(&At::Thread(me.work.clone())).await;
        assert_eq!(said.first(), Some(&format!("work of {}", me.word)));
        assert_eq!(said.last(), Some(&format!("end of {}", me.word)));
        assert_eq!(said.len(), 6);
        other.still_sees(&before).await;
    }
}

pub(in crate::conformance) async fn tenants_look_into_their_own_runs(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let unmade = f.store.ids().run();
    let nowhere = ThreadId::new("nowhere").unwrap();
    for (me, other) in twins.pairs() {
        let (store, scope) = (&me.f.store, &me.f.scope);
        for theirs in [other.run, other.own_run, other.own_lease.run] {
            alike("run", &theirs, &unmade, async |run| {
                store.run(scope, run).await
            })
            .await;
            alike("cancelling", &theirs, &unmade, async |run| {
                store.cancelling(scope, run).await
            })
            .await;
            alike("journal", &theirs, &unmade, async |run| {
                store.journal(scope, run).await
            })
            .await;
            alike("events", &theirs, &unmade, async |run| {
                store.events(scope, run, 0, 10).await
            })
            .await;
        }
        for (run, thread, state) in [
            (me.run, &me.thread, RunState::Committed),
            (me.own_run, &me.own, RunState::Committed),
            (me.own_lease.run, &me.own, RunState::Running),
            (me.lease.run, &me.work, RunState::Running),
        ] {
            let known = store.run(scope, run).await.unwrap();
            assert_eq!((&known.thread, known.state), (thread, state));
            let journal = store.journal(scope, run).await.unwrap();
            assert!(journal.entries[0].message.text().ends_with(me.word));
            let events = store.events(scope, run, 0, 10).await.unwrap();
            let bodies = events.iter().flat_map(|flush| flush.events().unwrap());
            assert!(
                bodies
                    .into_iter()
                    .all(|event| event.body == me.word.as_bytes())
            );
        }
        let list = async |filter: RunFilter, after, limit| {
            let page = store.runs(scope, &filter, after, limit).await?;
            Ok((
                page.found.into_iter().map(|run| run.id).collect::<Vec<_>>(),
                page.next,
            ))
        };
        let of = |thread: &ThreadId| RunFilter {
            thread: Some(thread.clone()),
            ..RunFilter::default()
        };
        let (all, _) = list(RunFilter::default(), None, 100).await.unwrap();
        for run in [me.run, me.own_run, me.own_lease.run, me.lease.run] {
            assert!(all.contains(&run), "{run} of {}", me.word);
        }
        for run in [other.run, other.own_run, other.own_lease.run] {
            assert!(!all.contains(&run), "{run} of {}", other.word);
        }
        let (work, _) = list(of(&me.work), None, 100).await.unwrap();
        assert_eq!(work, [me.lease.run]);
        let running = RunFilter {
            states: vec![RunState::Running],
            ..RunFilter::default()
        };
        assert_eq!(list(running, None, 100).await.unwrap().0.len(), 2);
        alike("runs", &other.own, &nowhere, async |id| {
            list(of(&id), None, 100).await
        })
        .await;
        // Where a page of the other ended is a place like any other.
        for filter in [RunFilter::default(), of(&me.own)] {
            let theirs = of(&other.own);
            let theirs = other.f.store.runs(&other.f.scope, &theirs, None, 1).await;
            let after = theirs.unwrap().next;
            let (rest, _) = list(filter, after, 100).await.unwrap();
            assert!(rest.iter().all(|run| all.contains(run)), "{rest:?}");
        }
    }
    twins.are_apart().await;
}

pub(in crate::conformance) async fn tenants_settle_their_own_runs(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let unmade = f.store.ids().run();
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        for theirs in [other.own_lease.run, other.own_run] {
            alike("cancel", &theirs, &unmade, async |run| {
                store.cancel(scope, run).await
            })
            .await;
            for claim in [Claim::Orphan, Claim::Own, Claim::Parked, Claim::Settle] {
                alike("claim", &theirs, &unmade, async |run| {
                    store.claim(scope, run, 1, claim).await
                })
                .await;
            }
            alike("hide", &theirs, &unmade, async |run| {
                store.hide(scope, run).await
            })
            .await;
        }
        let cancelled = store.cancel(scope, me.lease.run).await.unwrap();
        assert_eq!(
            (cancelled.thread, cancelled.cancelling),
            (me.work.clone(), true)
        );
        assert!(store.cancelling(scope, me.lease.run).await.unwrap());
        other.still_sees(&before).await;
        let claimed = store.claim(scope, me.lease.run, 1, Claim::Own).await;
        assert_eq!(claimed.unwrap().lease.epoch, 2);
        // The other's lease of the same run and epoch is as good as before.
        other.still_sees(&before).await;
        let journal = store.journal(scope, me.lease.run).await.unwrap();
        let states: Vec<_> = journal.calls.iter().map(|call| call.state).collect();
        assert_eq!(states, [CallState::Planned, CallState::Approval]);
    }
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        let lease = Lease {
            epoch: 2,
            ..me.lease
        };
        let fenced = store.flush(scope, me.lease, &me.events(1)).await;
        assert_eq!(fenced.unwrap_err().kind(), ErrorKind::Fenced);
        store.flush(scope, lease, &me.events(1)).await.unwrap();
        store.end(scope, lease, &failed()).await.unwrap();
        // Runs of the other are passed over, those of the same id too.
        let noted = [me.lease.run, me.run, other.own_run, unmade];
        store.note_delivered(scope, &noted).await.unwrap();
        assert!(store.run(scope, me.run).await.unwrap().delivered);
        other.still_sees(&before).await;
        for run in [me.lease.run, me.run] {
            store.hide(scope, run).await.unwrap();
            let hidden = store.run(scope, run).await;
            assert_eq!(hidden.unwrap_err().kind(), ErrorKind::NotFound);
        }
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}
