//! The wait queue of a thread: runs that wait until it is free.

use rusqlite::Connection;

use crate::engines::sqlite::op_error::{OpResult, exists};
use crate::engines::sqlite::rows::find::{any_run, shown_thread, thread_by_id};
use crate::engines::sqlite::rows::sql::{one, prepare, run_sql};
use crate::engines::sqlite::rows::{SHOWN, int, num};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::{AfterTurn, Millis, RunId, TenantScope, ThreadId, Waiter, WaiterNo, rules, trials};

/// Take the last place in a wait queue.
pub(crate) fn join(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    id: &ThreadId,
    run: RunId,
) -> OpResult<WaiterNo> {
    let tenant = tx.known_tenant(scope.tenant())?;
    let thread = shown_thread(tx.conn, tenant, id)?;
    if any_run(tx.conn, tenant.unwrap_or(0), run)?.is_some() {
        return Err(exists("run", &run));
    }
    take_place(tx, thread.row, run)
}

/// The place of a run; the last one if it has none.
fn take_place(tx: &mut Tx<'_>, thread: i64, run: RunId) -> OpResult<WaiterNo> {
    tx.after_commit(CacheUpdate::JoinedWaitQueue(run));
    let sql = "SELECT no FROM waiter WHERE thread=? AND run=?";
    let known = one(tx.conn, sql, (thread, run.as_bytes()), |row| row.get(0))?;
    if let Some(no) = known {
        return Ok(num(no));
    }
    let sql = "INSERT INTO waiter(thread, run, owner) VALUES(?,?,?)";
    run_sql(tx.conn, sql, (thread, run.as_bytes(), tx.owner))?;
    Ok(num(tx.conn.last_insert_rowid()))
}

/// Give up a place in a wait queue.
pub(crate) fn leave(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    id: &ThreadId,
    run: RunId,
) -> OpResult<()> {
    tx.after_commit(CacheUpdate::LeftWaitQueue(run));
    let Some(tenant) = tx.known_tenant(scope.tenant())? else {
        return Ok(());
    };
    // The wait queue went with its thread.
    let Some(thread) = thread_by_id(tx.conn, tenant, id, SHOWN)? else {
        return Ok(());
    };
    let sql = "DELETE FROM waiter WHERE thread=? AND run=?";
    run_sql(tx.conn, sql, (thread.row, run.as_bytes()))?;
    Ok(())
}

/// Those who wait and whose processes live.
pub(crate) fn list(
    conn: &Connection,
    tenant: Option<i64>,
    id: &ThreadId,
    now: Millis,
) -> OpResult<Vec<Waiter>> {
    let thread = shown_thread(conn, tenant, id)?;
    let sql = "SELECT w.no, w.run FROM waiter w CROSS JOIN owner o ON o.owner=w.owner
      WHERE w.thread=?1 AND o.until>?2 ORDER BY w.no";
    let mut statement = prepare(conn, sql)?;
    let rows = statement.query_map((thread.row, int(now)), read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The first of them.
pub(crate) fn first(conn: &Connection, thread: i64, now: Millis) -> OpResult<Option<Waiter>> {
    let sql = "SELECT w.no, w.run FROM waiter w CROSS JOIN owner o ON o.owner=w.owner
      WHERE w.thread=?1 AND o.until>?2 ORDER BY w.no LIMIT 1";
    one(conn, sql, (thread, int(now)), read)
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Waiter> {
    Ok(Waiter {
        no: num(row.get(0)?),
        run: RunId::from_bytes(row.get(1)?),
    })
}

/// A turn of a run at the head of a thread.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    thread: i64,
    run: RunId,
    /// Places before this number have lapsed.
    before: i64,
}

impl Turn {
    /// A turn where this is the first living waiter.
    pub(crate) fn new(thread: i64, run: RunId, first: Option<Waiter>) -> Self {
        Self {
            thread,
            run,
            before: first.map_or(i64::MAX, |first| int(first.no)),
        }
    }
}

/// Check that it is the turn of a run: no living waiter stands before it.
pub(crate) fn turn(tx: &Tx<'_>, thread: i64, id: &ThreadId, run: RunId) -> OpResult<Turn> {
    let first = first(tx.conn, thread, tx.now)?;
    rules::begin::turn(id, run, first.map(|first| first.run))?;
    Ok(Turn::new(thread, run, first))
}

/// A run goes ahead in its turn: what becomes of its place, and of those before it.
pub(crate) fn take_turn(tx: &mut Tx<'_>, turn: Turn, place: AfterTurn) -> OpResult<()> {
    let sql = "DELETE FROM waiter WHERE thread=? AND no<?";
    run_sql(tx.conn, sql, (turn.thread, turn.before))?;
    match place {
        AfterTurn::Keep if trials::planted("queue-settler-unlined") => {}
        AfterTurn::Keep => drop(take_place(tx, turn.thread, turn.run)?),
        AfterTurn::Leave => {
            let sql = "DELETE FROM waiter WHERE thread=?1 AND run=?2";
            run_sql(tx.conn, sql, (turn.thread, turn.run.as_bytes()))?;
            tx.after_commit(CacheUpdate::LeftWaitQueue(turn.run));
        }
    }
    Ok(())
}
