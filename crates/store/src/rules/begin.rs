//! Whether a run may begin.

use crate::trials;
use crate::{
    Append, Begin, CallRef, CallState, Error, Idempotency, NodeId, Result, Run, RunId, RunKind,
    RunState, ThreadId, Version,
};

use super::{calls, exists, invalid, lease};

/// A begin can be stored, whatever the store is like: the events of a run start with its first one.
pub(crate) fn check(begin: &Begin) -> Result<()> {
    lease::next_events(begin.run, 0, begin.events.as_ref())
}

/// An append can be stored, whatever the store is like: it has items.
pub(crate) fn check_append(append: &Append) -> Result<()> {
    match append.items.is_empty() {
        true => Err(invalid("an append", "it has no items")),
        false => Ok(()),
    }
}

/// Whether a run that is there was begun by this begin, if its items are the same too. `is_own` says
/// that this process owns the run.
pub(crate) fn is_same(run: &Run, is_own: bool, begin: &Begin) -> bool {
    let key = begin.key.as_ref().map(|key| &key.key);
    is_own && (run.epoch, run.attempt, run.kind) == (1, 0, RunKind::Turn) && run.key.as_ref() == key
}

/// What a begin that may have been sent before finds.
pub(crate) enum Earlier {
    /// Nothing: the run is new.
    Nothing,
    /// This very run, begun by the same request of the same process.
    Same,
    /// Another run, which has the key.
    ByKey(RunId),
}

/// Tell a repeated begin from a new one. `same` says whether the run exists, and then whether this
/// request began it; `keyed` is the run that has the key. The key was checked by [`key`] before.
pub(crate) fn earlier(run: RunId, same: Option<bool>, keyed: Option<RunId>) -> Result<Earlier> {
    match (same, keyed) {
        (Some(true), _) => Ok(Earlier::Same),
        (_, Some(run)) => Ok(Earlier::ByKey(run)),
        (Some(false), None) => Err(exists("run", run)),
        (None, None) => Ok(Earlier::Nothing),
    }
}

/// A key stands for one request. `digest` is that of the run that has the key.
pub(crate) fn key(key: &Idempotency, run: RunId, digest: Option<[u8; 16]>) -> Result<()> {
    if trials::unless("key-other-body", digest != Some(key.request)) {
        return Err(Error::KeyReused {
            key: key.key.clone(),
            run,
        });
    }
    Ok(())
}

/// What a run finds that starts at the head of a thread.
pub(crate) struct FoundHead<'a> {
    pub(crate) current: CurrentHead<'a>,
    /// The thread's unsettled leased run and its state now.
    pub(crate) holder: Option<(RunId, RunState)>,
    /// The first living waiter of the thread.
    pub(crate) first_waiter: Option<RunId>,
}

/// A run may start at the head of a thread: no run holds the thread, it is the run's turn, and the
/// head has not moved since the caller saw it.
pub(crate) fn at_head(found: &FoundHead<'_>, run: RunId, expected: Option<Version>) -> Result<()> {
    free(found.current.thread, found.holder)?;
    turn(found.current.thread, run, found.first_waiter)?;
    expected.map_or(Ok(()), |expected| unmoved(&found.current, expected))
}

/// A thread has no unsettled leased run. `holder` is that run and its state now.
pub(crate) fn free(thread: &ThreadId, holder: Option<(RunId, RunState)>) -> Result<()> {
    match holder {
        Some((run, state)) if trials::unless("busy-unasked", true) => Err(Error::Busy {
            thread: thread.clone(),
            run,
            state,
        }),
        _ => Ok(()),
    }
}

/// It is the turn of a run: `first`, the first living waiter of the thread, is no other run.
pub(crate) fn turn(thread: &ThreadId, run: RunId, first: Option<RunId>) -> Result<()> {
    match first {
        Some(first) if trials::unless("queue-newcomer-first", first != run) => Err(Error::Busy {
            thread: thread.clone(),
            run: first,
            state: RunState::Running,
        }),
        _ => Ok(()),
    }
}

/// Where the head of a thread is.
pub(crate) struct CurrentHead<'a> {
    pub(crate) thread: &'a ThreadId,
    pub(crate) version: Version,
    pub(crate) head: Option<NodeId>,
}

/// The head has not moved since the caller saw it.
pub(crate) fn unmoved(current: &CurrentHead<'_>, expected: Version) -> Result<()> {
    if !trials::unless("no-head-check", current.version != expected) {
        return Ok(());
    }
    Err(Error::HeadMoved {
        thread: current.thread.clone(),
        expected,
        actual: current.version,
        head: current.head,
    })
}

/// The thread is as the caller remembers it.
pub(crate) fn unchanged(thread: &ThreadId, is_same: bool) -> Result<()> {
    if trials::unless("expects-nothing", !is_same) {
        return Err(Error::Changed {
            thread: thread.clone(),
        });
    }
    Ok(())
}

/// Nothing was redacted since the caller read the messages that it goes on from. `seen` and `current` count
/// the redactions of the tenant.
pub(crate) fn unredacted(thread: &ThreadId, seen: Option<u64>, current: u64) -> Result<()> {
    match seen {
        Some(seen) if seen != current => Err(Error::Changed {
            thread: thread.clone(),
        }),
        _ => Ok(()),
    }
}

/// A call that a run takes over from another one.
pub(crate) struct TakenCall {
    /// `None` if the store holds a state that this version does not know.
    pub(crate) state: Option<CallState>,
    pub(crate) taken_by: Option<RunId>,
}

/// A call can be taken: it waits for an approval or for the application, and is named once.
/// `earlier` are the calls that were named before it.
pub(crate) fn take(at: CallRef, call: Option<&TakenCall>, earlier: &[CallRef]) -> Result<()> {
    let call = call.ok_or_else(|| calls::unknown(at))?;
    if earlier.contains(&at) {
        return Err(invalid("the calls to take", "one of them is named twice"));
    }
    match (call.state, call.taken_by) {
        (Some(CallState::Approval | CallState::Client), _) => Ok(()),
        (Some(CallState::Taken), Some(by)) => match trials::planted("take-taken") {
            true => Ok(()),
            false => Err(Error::Taken {
                run: at.run,
                step: at.step,
                position: at.position,
                by,
            }),
        },
        (state, _) => Err(calls::wrong(
            at,
            state.map_or("in no known state", CallState::as_str),
            "it must wait for an approval or for the application",
        )),
    }
}
