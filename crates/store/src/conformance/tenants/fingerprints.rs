use super::twins::Twins;
use crate::conformance::fixture::{Fixture, said_by_model, said_by_user};
use crate::{Anchor, Begin, Begun, Fingerprint, Leasing, NewThread, Publish, ThreadId};

pub(in crate::conformance) async fn tenants_find_their_own_items_by_fingerprints(
    f: &mut Fixture<'_>,
) {
    let twins = Twins::new(f).await;
    let digests = [[7; 16], [8; 16]];
    let run = f.store.ids().run();
    for (place, (me, other)) in twins.pairs().into_iter().enumerate() {
        let (store, scope) = (&me.f.store, &me.f.scope);
        let before = other.view().await;
        let found = store.find_fingerprints(scope, &digests).await.unwrap();
        assert!(found.is_empty(), "what only the other has is not found");
        let at = Anchor::New {
            thread: NewThread::new(ThreadId::new("found").unwrap()),
            leasing: Leasing::Free,
        };
        // The run of the first digest has the same id in both; the second digest has only one of them.
        let finding = |item, place: usize| Fingerprint {
            item,
            digest: digests[place],
        };
        let begin = Begin {
            fingerprints: vec![finding(1, 0)],
            ..Begin::new(run, at, said_by_user(me.word))
        };
        let Begun::Started(started) = store.begin(scope, &begin).await.unwrap() else {
            panic!("it is new")
        };
        let publish = Publish {
            fingerprints: match place {
                0 => vec![finding(2, 1)],
                _ => Vec::new(),
            },
            ..Publish::new(0, said_by_model(me.word))
        };
        store.publish(scope, started.lease, &publish).await.unwrap();
        let found = store.find_fingerprints(scope, &digests).await.unwrap();
        let numbers: Vec<_> = found.iter().map(|one| (one.run.id, one.item)).collect();
        match place {
            0 => assert_eq!(numbers, [(run, 1), (run, 2)]),
            _ => assert_eq!(numbers, [(run, 1)]),
        }
        if place == 0 {
            other.still_sees(&before).await;
        }
    }
    let (me, _) = twins.pairs()[0];
    let (_, other) = twins.pairs()[0];
    let thread = ThreadId::new("found").unwrap();
    me.f.store.delete(&me.f.scope, &thread).await.unwrap();
    while me.f.store.purge(100).await.unwrap().more {}
    let found = other.f.store.find_fingerprints(&other.f.scope, &digests);
    assert_eq!(found.await.unwrap().len(), 1, "the other's is still there");
    twins.are_apart().await;
}
