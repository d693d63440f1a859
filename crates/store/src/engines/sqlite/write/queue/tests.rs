use super::*;

struct Nothing(Op);

impl Job for Nothing {
    fn op(&self) -> Op {
        self.0
    }

    fn waits(&self) -> bool {
        false
    }

    fn run(&mut self, _: &mut Tx<'_>) -> Result<(), Stop> {
        Ok(())
    }

    fn refuse(&mut self, _: Error) {}

    fn answer(self: Box<Self>) {}

    fn fail(self: Box<Self>, _: Error) {}
}

const BEGIN: (Op, Haste, bool, u8) = (Op::Begin, Haste::Urgent, false, 0);
const PUBLISH: (Op, Haste, bool, u8) = (Op::Publish, Haste::Urgent, true, 0);

fn events(haste: Haste, run: u8) -> (Op, Haste, bool, u8) {
    (Op::Flush, haste, false, run)
}

fn queue(waiting: &[(Op, Haste, bool, u8)]) -> Queue {
    let mut queue = Queue::default();
    for (op, haste, waits, run) in waiting {
        let manner = Manner {
            haste: *haste,
            waits: *waits,
            run: (*run > 0).then(|| RunId::from_bytes([*run; 16])),
        };
        queue.patient += usize::from(*haste == Haste::Patient);
        queue.jobs.push_back((manner, Box::new(Nothing(*op))));
    }
    queue
}

/// What goes together, one after the other.
fn groups(queue: Queue) -> Vec<Vec<Op>> {
    let shared = Shared::new(Options::default(), OwnerId::from_bytes([1; 16]));
    *lock(&shared.queue) = queue;
    let taken = std::iter::from_fn(|| {
        let (jobs, _) = shared.take(false);
        (!jobs.is_empty()).then(|| jobs.iter().map(|job| job.op()).collect())
    });
    taken.collect()
}

#[test]
fn what_is_urgent_goes_before_events_that_gather() {
    use Haste::{Patient, Urgent};
    use Op::{Begin, Flush, Publish};
    let waiting = queue(&[events(Patient, 1), BEGIN, events(Patient, 2)]);
    assert_eq!(groups(waiting), [vec![Begin], vec![Flush, Flush]]);
    let waiting = queue(&[events(Patient, 1), events(Urgent, 2), BEGIN]);
    assert_eq!(groups(waiting), [vec![Flush, Begin], vec![Flush]]);
    // What waits for the disk brings everything along.
    let waiting = queue(&[events(Patient, 1), BEGIN, PUBLISH]);
    assert_eq!(groups(waiting), [vec![Flush, Begin, Publish]]);
    // Events of one run stay in their order.
    let waiting = queue(&[events(Patient, 1), events(Urgent, 1)]);
    assert_eq!(groups(waiting), [vec![Flush, Flush]]);
}

#[test]
fn whoever_has_gathered_long_enough_is_not_overtaken() {
    use Haste::Patient;
    let now = Instant::now();
    let mut waiting = queue(&[events(Patient, 1), BEGIN]);
    assert!(waiting.is_overtaken(now));
    assert_eq!(waiting.overtake(now).len(), 1);
    let (manner, job) = queue(&[BEGIN]).jobs.remove(0).unwrap();
    waiting.jobs.push_back((manner, job));
    assert!(waiting.is_overtaken(now));
    assert!(!waiting.is_overtaken(now + GATHER));
    assert_eq!(waiting.first(now).len(), 2);
}

#[test]
fn events_that_gather_are_not_taken_along_with_a_debt() {
    use Haste::Patient;
    let shared = Shared::new(Options::default(), OwnerId::from_bytes([1; 16]));
    shared.working.store(MANY_STREAMS, Ordering::Relaxed);
    let later = Instant::now() + Duration::from_secs(3600);
    let gathering = || Queue {
        ripe: Some(later),
        ..queue(&[events(Patient, 1), events(Patient, 2)])
    };
    *lock(&shared.queue) = gathering();
    assert_eq!(shared.take(true).0.len(), 0);
    assert_eq!(shared.take(false).0.len(), 2);
    // What is urgent waits for nothing, and what has waited long enough goes along.
    *lock(&shared.queue) = gathering();
    let (manner, job) = queue(&[BEGIN]).jobs.remove(0).unwrap();
    lock(&shared.queue).jobs.push_back((manner, job));
    assert_eq!(shared.take(true).0.len(), 1);
    lock(&shared.queue).ripe = Some(Instant::now());
    assert_eq!(shared.take(true).0.len(), 2);
}

#[test]
fn a_nudge_is_not_lost_on_a_writer_that_is_awake() {
    use Haste::Patient;
    let shared = Shared::new(Options::default(), OwnerId::from_bytes([1; 16]));
    shared.nudge();
    // Neither does it sleep, nor does it gather.
    shared.wait(None);
    shared.working.store(MANY_STREAMS, Ordering::Relaxed);
    let later = Instant::now() + Duration::from_secs(3600);
    *lock(&shared.queue) = Queue {
        ripe: Some(later),
        nudged: true,
        ..queue(&[events(Patient, 1)])
    };
    shared.wait(None);
    assert_eq!(shared.take(false).0.len(), 0);
    assert!(!lock(&shared.queue).nudged);
}

/// Whether something would be written by whoever asks.
fn is_written_here(shared: &Shared, sleep: Sleep, asked: (Op, Haste, bool, u8)) -> bool {
    let asked = queue(&[asked]).jobs.remove(0).unwrap().0;
    let mut queue = lock(&shared.queue);
    queue.sleep = sleep;
    shared.pen_for(asked, &queue).is_some()
}

#[test]
fn what_waits_for_nothing_is_written_by_whoever_asks() {
    use Haste::{Patient, Urgent};
    use Sleep::{Awake, Empty, Gathering};
    let shared = Shared::new(Options::default(), OwnerId::from_bytes([1; 16]));
    assert!(is_written_here(&shared, Empty, BEGIN));
    assert!(is_written_here(&shared, Empty, events(Urgent, 1)));
    assert!(is_written_here(&shared, Empty, events(Patient, 1)));
    assert!(!is_written_here(&shared, Empty, PUBLISH));
    // The writer is about to write, perhaps what was asked for before.
    assert!(!is_written_here(&shared, Awake, BEGIN));
    // Somebody else writes.
    let held = lock(&shared.pen);
    assert!(!is_written_here(&shared, Empty, BEGIN));
    drop(held);
    // Where many stream, events gather.
    shared.working.store(MANY_STREAMS, Ordering::Relaxed);
    assert!(!is_written_here(&shared, Empty, events(Patient, 1)));
    *lock(&shared.queue) = queue(&[events(Patient, 1)]);
    let gathering = Gathering(MANY_STREAMS);
    assert!(is_written_here(&shared, gathering, BEGIN));
    assert!(is_written_here(&shared, gathering, events(Urgent, 2)));
    // Events of one run stay in their order.
    assert!(!is_written_here(&shared, gathering, events(Urgent, 1)));
}

#[test]
fn whoever_asks_writes_while_the_disk_takes_what_it_is_owed() {
    use Haste::{Patient, Urgent};
    use Sleep::Disk;
    let shared = Shared::new(Options::default(), OwnerId::from_bytes([1; 16]));
    assert!(is_written_here(&shared, Disk, events(Urgent, 1)));
    assert!(is_written_here(&shared, Disk, events(Patient, 1)));
    assert!(!is_written_here(&shared, Disk, PUBLISH));
    // Not before something urgent that was asked for earlier.
    *lock(&shared.queue) = queue(&[events(Patient, 1), PUBLISH]);
    assert!(!is_written_here(&shared, Disk, events(Urgent, 2)));
    *lock(&shared.queue) = queue(&[events(Patient, 1)]);
    assert!(is_written_here(&shared, Disk, events(Urgent, 2)));
    // The writer sees what lines up meanwhile when it is back, and needs no waking.
    shared.nudge();
    assert_eq!(lock(&shared.queue).sleep, Disk);
    assert!(lock(&shared.queue).nudged);
}
