use throughline_model::json::RawJson;

use super::fixture::{Fixture, said_by_model};
use crate::{Error, Publish, QueueNo, Step, ThreadId};

async fn enqueue(f: &Fixture<'_>, thread: &ThreadId, count: usize) -> Vec<QueueNo> {
    let mut numbers = Vec::new();
    for n in 0..count {
        let body = RawJson::new(&format!(r#"{{"n":{n}}}"#)).unwrap();
        let no = f.store.enqueue(&f.scope, thread, &body).await;
        numbers.push(no.unwrap());
    }
    numbers
}

async fn waiting(f: &Fixture<'_>, thread: &ThreadId) -> Vec<QueueNo> {
    let queue = f.store.queue(&f.scope, thread).await.unwrap();
    queue.iter().map(|queued| queued.no).collect()
}

fn delivering(no: u32, dequeue: Vec<QueueNo>) -> Step {
    Step {
        no,
        items: said_by_model("step"),
        dequeue,
        ..Step::default()
    }
}

pub(super) async fn queued_messages_go_with_what_delivers_them(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let other = f.thread("other").await;
    let theirs = enqueue(f, &other, 5).await;
    let queued = enqueue(f, &id, 4).await;
    // Numbers may be counted in each thread or in all together; this is none of the thread's own.
    let mut foreign = theirs.iter().filter(|no| !queued.contains(no));
    let foreign = *foreign.next().unwrap();
    let lease = f.begin(&id, "one").await.lease;

    // A step that is refused delivers nothing.
    let late = delivering(7, vec![queued[0]]);
    let error = f.store.step(&f.scope, lease, &late).await;
    assert!(matches!(error, Err(Error::OutOfOrder { .. })), "{error:?}");
    assert_eq!(waiting(f, &id).await, queued);

    let first = delivering(0, vec![queued[1], foreign]);
    f.store.step(&f.scope, lease, &first).await.unwrap();
    assert_eq!(waiting(f, &id).await, [queued[0], queued[2], queued[3]]);
    assert_eq!(waiting(f, &other).await, theirs);

    // What is gone already is no matter.
    let second = delivering(1, vec![queued[1], queued[0]]);
    f.store.step(&f.scope, lease, &second).await.unwrap();
    assert_eq!(waiting(f, &id).await, queued[2..]);

    let publish = |dequeue: Vec<QueueNo>| Publish {
        dequeue,
        ..Publish::new(2, said_by_model("end"))
    };
    let last = publish(vec![queued[2], queued[0]]);
    f.store.publish(&f.scope, lease, &last).await.unwrap();
    assert_eq!(waiting(f, &id).await, queued[3..]);
    assert_eq!(f.open(&id).await.queued, 1);
    assert_eq!(waiting(f, &other).await, theirs);
}

pub(super) async fn a_delivery_is_part_of_its_write(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let queued = enqueue(f, &id, 4).await;
    let lease = f.begin(&id, "one").await.lease;
    let step = delivering(0, vec![queued[0]]);
    for _ in 0..2 {
        f.store.step(&f.scope, lease, &step).await.unwrap();
    }
    let more = delivering(0, vec![queued[0], queued[1]]);
    let error = f.store.step(&f.scope, lease, &more).await;
    assert!(matches!(error, Err(Error::OutOfOrder { .. })), "{error:?}");
    let none = delivering(0, Vec::new());
    let error = f.store.step(&f.scope, lease, &none).await;
    assert!(matches!(error, Err(Error::OutOfOrder { .. })), "{error:?}");

    let publish = |dequeue: Vec<QueueNo>| Publish {
        dequeue,
        ..Publish::new(1, said_by_model("end"))
    };
    let last = publish(vec![queued[1]]);
    let first = f.store.publish(&f.scope, lease, &last).await.unwrap();
    let again = f.store.publish(&f.scope, lease, &last).await.unwrap();
    assert_eq!(first, again);
    let more = publish(vec![queued[1], queued[2]]);
    let error = f.store.publish(&f.scope, lease, &more).await;
    assert!(matches!(error, Err(Error::WrongState { .. })), "{error:?}");
    assert_eq!(waiting(f, &id).await, queued[2..]);
}
