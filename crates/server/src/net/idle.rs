//! Connections on which no request is at work. When there is no room for another connection, the one
//! that has been idle for the longest time is closed.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use throughline::client::Reservation;
use tokio_util::sync::CancellationToken;

/// All idle connections. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleConnections(Arc<Mutex<IdleList>>);

#[derive(Debug, Default)]
struct IdleList {
    next: u64,
    /// By when they became idle.
    idle: BTreeMap<u64, CancellationToken>,
}

/// A connection, from its beginning to its end.
#[derive(Debug)]
pub(super) struct TrackedConnection {
    all: IdleConnections,
    close: CancellationToken,
    state: Arc<Mutex<ConnectionUse>>,
}

#[derive(Debug, Default)]
struct ConnectionUse {
    /// Its place among the idle ones.
    place: Option<u64>,
    /// Requests that are at work on it.
    at_work: usize,
}

/// A request that is at work on a connection, until the end of its answer.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    all: IdleConnections,
    close: CancellationToken,
    state: Arc<Mutex<ConnectionUse>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IdleConnections {
    /// A connection that was accepted. It is idle.
    pub(super) fn track(&self) -> TrackedConnection {
        let connection = TrackedConnection {
            all: self.clone(),
            close: CancellationToken::new(),
            state: Arc::default(),
        };
        lock(&connection.state).place = Some(self.add(&connection.close));
        connection
    }

    /// Have the connection that has been idle for the longest time end. `false` if none is.
    pub(super) fn close_longest(&self) -> bool {
        let longest = lock(&self.0).idle.pop_first();
        match longest {
            Some((_, close)) => {
                close.cancel();
                true
            }
            None => false,
        }
    }

    fn add(&self, close: &CancellationToken) -> u64 {
        let mut list = lock(&self.0);
        list.next += 1;
        let place = list.next;
        list.idle.insert(place, close.clone());
        place
    }

    fn remove(&self, place: Option<u64>) {
        if let Some(place) = place {
            lock(&self.0).idle.remove(&place);
        }
    }
}

impl TrackedConnection {
    /// Wait until it is to end.
    pub(super) async fn closed(&self) {
        self.close.cancelled().await;
    }

    /// A request begins.
    pub(super) fn begin(&self) -> ActiveRequest {
        let mut state = lock(&self.state);
        state.at_work += 1;
        self.all.remove(state.place.take());
        drop(state);
        ActiveRequest {
            all: self.all.clone(),
            close: self.close.clone(),
            state: Arc::clone(&self.state),
        }
    }
}

impl Drop for TrackedConnection {
    fn drop(&mut self) {
        self.close.cancel();
        self.all.remove(lock(&self.state).place.take());
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.at_work -= 1;
        if state.at_work == 0 && !self.close.is_cancelled() {
            state.place = Some(self.all.add(&self.close));
        }
    }
}

/// An answer whose request is at work until all of it was taken.
pub(super) fn hold_until_sent(body: Body, at_work: ActiveRequest, mut memory: Reservation) -> Body {
    memory.follow(bytes_of(&body));
    Body::new(HeldBody {
        body,
        memory,
        is_sending: false,
        _at_work: at_work,
    })
}

/// The bytes that a body has in memory: zero for a stream, whose frames are made one by one.
fn bytes_of(body: &Body) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

struct HeldBody {
    body: Body,
    /// For what the body has, and what was given to the connection last: the connection asks for
    /// more when it has sent it.
    memory: Reservation,
    /// Whether the connection may still have data that it was given.
    is_sending: bool,
    _at_work: ActiveRequest,
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let data = match &polled {
            Poll::Ready(Some(Ok(frame))) => frame.data_ref(),
            _ => None,
        };
        let given = data.map_or(0, Bytes::len);
        let waiting = bytes_of(&self.body);
        self.memory.follow(given + waiting);
        self.is_sending = given > 0;
        polled
    }

    /// A body that says it has ended is dropped before its last data is sent.
    fn is_end_stream(&self) -> bool {
        !self.is_sending && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use throughline::client::MemoryBudget;

    use super::*;

    #[tokio::test]
    async fn an_answer_counts_until_the_connection_has_sent_it() {
        const LENGTH: usize = 1 << 20;
        let budget = MemoryBudget::new(64 << 20);
        let connection = IdleConnections::default().track();
        let body = Body::from(vec![0; LENGTH]);
        let held = hold_until_sent(body, connection.begin(), budget.reservation());
        let mut held = Box::pin(held);
        assert!(!held.is_end_stream());
        assert_eq!(budget.held(), LENGTH);
        let data = poll_fn(|cx| held.as_mut().poll_frame(cx)).await;
        let data = data.unwrap().unwrap();
        assert_eq!(data.into_data().unwrap().len(), LENGTH);
        // The connection asks for more when it has sent what it has.
        assert!(!held.is_end_stream());
        assert_eq!(budget.held(), LENGTH);
        let end = poll_fn(|cx| held.as_mut().poll_frame(cx)).await;
        assert!(end.is_none());
        assert!(held.is_end_stream());
        assert_eq!(budget.held(), 0);
        let empty = hold_until_sent(Body::empty(), connection.begin(), budget.reservation());
        assert!(empty.is_end_stream());
    }

    #[test]
    fn the_longest_idle_connection_is_closed_and_no_other() {
        let all = IdleConnections::default();
        let [first, second, third] = [(); 3].map(|()| all.track());
        let work = first.begin();
        let more = first.begin();
        drop(work);
        assert!(all.close_longest());
        assert!(second.close.is_cancelled(), "the first is at work");
        drop(more);
        drop(second);
        assert!(all.close_longest());
        assert!(third.close.is_cancelled(), "it has been idle for longer");
        assert!(!first.close.is_cancelled());
        let work = first.begin();
        assert!(!all.close_longest(), "all are at work");
        drop(first);
        drop(work);
        assert!(!all.close_longest(), "it has ended");
        assert_eq!(lock(&all.0).idle.len(), 0);
    }
}
