//! A memory budget that the parts of a process share.
//!
//! Code that reads data of unknown size (a request body, a model's answer) reserves memory before
//! it allocates, and waits or is refused when there is none. The unit is bytes of content times the
//! number of copies that are made of it, not allocations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Reservations up to this size have an eighth of the budget for themselves, so that small requests
/// succeed when large ones have taken the rest.
const SMALL: usize = 64 << 10;

/// How long the first waiter waits before it may exceed the budget.
const PATIENCE: Duration = Duration::from_millis(200);

/// A limit on the bytes that are reserved at the same time. Clones share the budget.
///
/// ```
/// use throughline::client::MemoryBudget;
///
/// let budget = MemoryBudget::new(8 << 20);
/// let mut body = budget.reservation();
/// assert!(body.try_resize(6 << 20).is_ok());
/// assert!(budget.reservation().try_resize(2 << 20).is_err());
/// drop(body);
/// assert_eq!(budget.held(), 0);
/// ```
#[derive(Clone)]
pub struct MemoryBudget(Arc<Shared>);

struct Shared {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bytes of small reservations.
    small: usize,
    /// Bytes of large reservations.
    large: usize,
    /// The number of the next reservation.
    next: u64,
    /// The reservations that wait for memory, by number. Only the first one is woken: waking all of
    /// them would cost as much as there are waiters for each byte that is returned.
    waiting: BTreeMap<u64, Arc<Notify>>,
    /// The one reservation that may exceed the budget. If every waiter held a part of what it
    /// needs, none of them could continue; so one of them may, and returns everything in the end.
    exempt: Option<u64>,
}

/// A [`MemoryBudget`] has no room for a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} bytes of memory are needed, and {held} of {most} are in use")]
pub struct OutOfMemory {
    /// The bytes that were requested.
    pub wanted: usize,
    /// The bytes that were reserved.
    pub held: usize,
    /// The bytes that may be reserved.
    pub most: usize,
}

impl MemoryBudget {
    /// A budget of a number of bytes.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Shared {
            most,
            state: Mutex::default(),
        }))
    }

    /// The bytes that may be reserved.
    pub fn most(&self) -> usize {
        self.0.most
    }

    /// The largest single reservation that can be granted.
    pub fn largest(&self) -> usize {
        self.0.for_large()
    }

    /// The bytes that are reserved.
    pub fn held(&self) -> usize {
        self.0.state().held()
    }

    /// Whether more than half of the budget is reserved, so that caches should release memory.
    pub fn is_scarce(&self) -> bool {
        self.held() > self.0.most / 2
    }

    /// An empty reservation, to be resized.
    pub fn reservation(&self) -> Reservation {
        let mut state = self.0.state();
        state.next += 1;
        let number = state.next;
        drop(state);
        Reservation {
            shared: Arc::clone(&self.0),
            number,
            bytes: 0,
        }
    }
}

impl State {
    fn held(&self) -> usize {
        self.small + self.large
    }

    /// Changes a reservation from `before` to `after` bytes.
    fn replace(&mut self, before: usize, after: usize) {
        *self.pool(before) -= before;
        *self.pool(after) += after;
    }

    /// Exempts a reservation that has waited for a while, if it is the first waiter and no other
    /// one is exempt. Returns whether it became exempt.
    fn exempt_first(&mut self, number: u64) -> bool {
        let is_next = self.exempt.is_none() && self.waiting.keys().next() == Some(&number);
        if is_next {
            self.exempt = Some(number);
        }
        is_next
    }

    /// Wakes the first waiter.
    fn wake(&self) {
        if let Some(first) = self.waiting.values().next() {
            first.notify_one();
        }
    }

    fn pool(&mut self, bytes: usize) -> &mut usize {
        match bytes {
            ..=SMALL => &mut self.small,
            _ => &mut self.large,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes that large reservations may take; the rest is for small ones.
    fn for_large(&self) -> usize {
        self.most - self.most / 8
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBudget")
            .field("most", &self.most())
            .field("held", &self.held())
            .finish()
    }
}

/// Reserved memory, until this is dropped.
pub struct Reservation {
    shared: Arc<Shared>,
    number: u64,
    bytes: usize,
}

impl Reservation {
    /// The reserved bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the size, if there is room.
    pub fn try_resize(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        let (shared, before) = (Arc::clone(&self.shared), self.bytes);
        let mut state = shared.state();
        let has_room = match bytes {
            _ if bytes <= before => true,
            ..=SMALL => state.small - before + bytes <= shared.most / 8,
            _ if state.exempt == Some(self.number) => bytes <= shared.for_large(),
            _ => state.held() - before + bytes <= shared.for_large(),
        };
        if !has_room {
            return Err(OutOfMemory {
                wanted: bytes,
                held: state.held(),
                most: shared.most,
            });
        }
        state.replace(before, bytes);
        if bytes < before {
            state.wake();
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Changes the size, and waits for room for a limited time. Waiters are served in the order in
    /// which their reservations were made.
    pub async fn resize(&mut self, bytes: usize, wait: Duration) -> Result<(), OutOfMemory> {
        if self.try_resize(bytes).is_ok() {
            return Ok(());
        }
        let waiting = Waiting::new(&self.shared, self.number);
        let begun = Instant::now();
        let until = begun + wait;
        let mut patience = begun + PATIENCE;
        loop {
            let Err(refused) = self.try_resize(bytes) else {
                return Ok(());
            };
            let now = Instant::now();
            if now >= until {
                return Err(refused);
            }
            // A wake-up that frees too little does not restart this timeout: other runs return
            // small amounts all the time while they make progress. When the exempt one has
            // returned its memory, the next follows at once, unless what is in use already
            // exceeds the budget: that has to shrink first.
            let follows = now >= begun + PATIENCE && refused.held <= refused.most;
            if now >= patience {
                patience = now + PATIENCE;
                self.shared.state().exempt_first(self.number);
                continue;
            }
            if follows && self.shared.state().exempt_first(self.number) {
                continue;
            }
            let woken = waiting.woken.notified();
            // Whether woken or timed out, the loop checks the time and the room again.
            let _ = tokio::time::timeout_at(until.min(patience), woken).await;
        }
    }

    /// Tracks a size that changes often: sizes below 64 KiB count as zero, and changes by less than
    /// that are ignored. Does not fail if there is no room, as [`set`](Self::set).
    pub fn follow(&mut self, bytes: usize) {
        let bytes = if bytes < SMALL { 0 } else { bytes };
        if bytes.abs_diff(self.bytes) >= SMALL {
            self.set(bytes);
        }
    }

    /// Changes the size without checking the room, for memory that is in use already.
    pub fn set(&mut self, bytes: usize) {
        let mut state = self.shared.state();
        state.replace(self.bytes, bytes);
        if bytes < self.bytes {
            state.wake();
        }
        self.bytes = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.set(0);
        let mut state = self.shared.state();
        if state.exempt == Some(self.number) {
            state.exempt = None;
            state.wake();
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reservation").field(&self.bytes).finish()
    }
}

/// Registers a waiting reservation, until it is dropped.
struct Waiting {
    shared: Arc<Shared>,
    number: u64,
    woken: Arc<Notify>,
}

impl Waiting {
    fn new(shared: &Arc<Shared>, number: u64) -> Self {
        let woken = Arc::<Notify>::default();
        let mut state = shared.state();
        state.waiting.insert(number, Arc::clone(&woken));
        drop(state);
        Self {
            shared: Arc::clone(shared),
            number,
            woken,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.waiting.remove(&self.number);
        // There may be room for the next waiter too.
        state.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    fn reserved(budget: &MemoryBudget, bytes: usize) -> Reservation {
        let mut reservation = budget.reservation();
        reservation.try_resize(bytes).expect("there is room");
        reservation
    }

    #[test]
    fn large_reservations_leave_room_for_small_ones() {
        let budget = MemoryBudget::new(8 << 20);
        let mut large = reserved(&budget, budget.largest());
        assert!(budget.reservation().try_resize(SMALL + 1).is_err());
        // Also if more is reserved than the budget allows.
        large.set(budget.most() + 1);
        let small: Vec<_> = (0..16).map(|_| reserved(&budget, SMALL)).collect();
        assert!(budget.reservation().try_resize(1).is_err(), "it is full");
        drop((large, small));
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn what_is_taken_already_is_counted_beyond_the_limit() {
        let budget = MemoryBudget::new(1 << 20);
        let mut taken = budget.reservation();
        taken.set(2 << 20);
        assert!(budget.is_scarce());
        assert!(budget.reservation().try_resize(SMALL + 1).is_err());
        assert!(taken.try_resize(2 << 19).is_ok(), "less is always possible");
        assert_eq!(budget.held(), 1 << 20);
    }

    #[test]
    fn a_size_that_changes_often_is_followed_in_steps() {
        let budget = MemoryBudget::new(8 << 20);
        let mut size = budget.reservation();
        for (bytes, held) in [
            (SMALL - 1, 0),
            (SMALL, SMALL),
            (2 * SMALL - 1, SMALL),
            (3 * SMALL, 3 * SMALL),
            (SMALL - 1, 0),
        ] {
            size.follow(bytes);
            assert_eq!(budget.held(), held, "{bytes}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_those_that_wait_one_goes_on_and_the_others_get_what_is_given_back() {
        let budget = MemoryBudget::new(8 << 20);
        let held = reserved(&budget, 4 << 20);
        let wait = |bytes: usize| {
            let mut one = reserved(&budget, 1 << 20);
            tokio::spawn(async move {
                let resized = one.resize(bytes, WAIT).await;
                (one, resized)
            })
        };
        let (first, second) = (wait(3 << 20), wait(3 << 20));
        let (first, resized) = first.await.unwrap();
        assert_eq!((resized, first.bytes()), (Ok(()), 3 << 20));
        assert_eq!(budget.held(), 8 << 20, "beyond what large ones may take");
        tokio::time::sleep(WAIT / 2).await;
        assert!(!second.is_finished(), "one alone is exempt");
        drop(held);
        let (second, resized) = second.await.unwrap();
        assert_eq!((resized, second.bytes()), (Ok(()), 3 << 20));
        let (one, refused) = wait(8 << 20).await.unwrap();
        let refused = refused.unwrap_err();
        assert_eq!((refused.wanted, refused.held), (8 << 20, 7 << 20));
        assert_eq!(one.bytes(), 1 << 20, "it keeps what it has");
        drop((first, second, one));
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn one_of_many_that_wait_for_each_other_goes_on() {
        let budget = MemoryBudget::new(8 << 20);
        // Seven answers have grown until nothing is left, and none of them is complete.
        let grown = (0..7).map(|_| reserved(&budget, 1 << 20));
        let mut waiting = Vec::new();
        for mut one in grown.collect::<Vec<_>>() {
            waiting.push(tokio::spawn(async move {
                let resized = one.resize((1 << 20) + (1 << 18), WAIT).await;
                // This answer is complete, and its memory is returned.
                drop(one);
                resized
            }));
        }
        for one in waiting {
            assert_eq!(one.await.unwrap(), Ok(()));
        }
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_exempt_one_follows_at_once() {
        let budget = MemoryBudget::new(8 << 20);
        let begun = Instant::now();
        let mut waiting = Vec::new();
        let grown = (0..7).map(|_| reserved(&budget, 1 << 20));
        for mut one in grown.collect::<Vec<_>>() {
            waiting.push(tokio::spawn(async move {
                let resized = one.resize(4 << 20, WAIT).await;
                drop(one);
                resized
            }));
        }
        for one in waiting {
            assert_eq!(one.await.unwrap(), Ok(()));
        }
        assert!(begun.elapsed() < 2 * PATIENCE, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_budget_the_next_exempt_one_does_not_follow_at_once() {
        let budget = MemoryBudget::new(8 << 20);
        let mut in_use = budget.reservation();
        in_use.set(9 << 20);
        let begun = Instant::now();
        let wait = |lasts: Duration| {
            let mut one = budget.reservation();
            tokio::spawn(async move {
                let resized = one.resize(1 << 20, WAIT).await;
                tokio::time::sleep(lasts).await;
                resized
            })
        };
        let first = wait(PATIENCE / 2);
        tokio::time::sleep(PATIENCE / 4).await;
        let second = wait(Duration::ZERO);
        assert_eq!(first.await.unwrap(), Ok(()));
        assert_eq!(begun.elapsed(), PATIENCE + PATIENCE / 2);
        assert_eq!(second.await.unwrap(), Ok(()));
        assert_eq!(begun.elapsed(), 2 * PATIENCE + PATIENCE / 4);
    }

    #[tokio::test(start_paused = true)]
    async fn small_amounts_that_are_given_back_do_not_postpone_the_exemption() {
        let budget = MemoryBudget::new(8 << 20);
        let _held = reserved(&budget, 6 << 20);
        let mut waits = reserved(&budget, 512 << 10);
        let mut other = budget.reservation();
        let giving_back = async {
            loop {
                other.set(2 * SMALL);
                other.set(0);
                tokio::time::sleep(PATIENCE / 4).await;
            }
        };
        tokio::select! {
            granted = waits.resize(3 << 20, WAIT) => assert_eq!(granted, Ok(())),
            () = giving_back => {}
        }
    }
}
