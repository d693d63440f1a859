//! Threads: making, forking, changing and deleting them, and their queues.

use crate::engines::sqlite::rows;
use rusqlite::{Connection, params};
use throughline_model::json::RawJson;

use crate::engines::sqlite::op_error::{OpResult, exists, not_found};
use crate::engines::sqlite::rows::find::{
    aliases, shown_thread, thread_and_node, thread_by_id, thread_by_row,
};
use crate::engines::sqlite::rows::nodes::minute;
use crate::engines::sqlite::rows::sql::{one, prepare, run_sql};
use crate::engines::sqlite::rows::{NodeRow, SHOWN, int, moved_by_code, num};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::{
    Alias, Fork, NewThread, QueueNo, Queued, TenantScope, Thread, ThreadId, ThreadPatch, rules,
};

/// Refuse names that are taken.
pub(crate) fn check_new(conn: &Connection, tenant: i64, new: &NewThread) -> OpResult<()> {
    let sql = "SELECT 1 FROM thread WHERE tenant=? AND id=?";
    if one(conn, sql, (tenant, new.id.as_str()), |_| Ok(()))?.is_some() {
        return Err(exists("thread", &new.id));
    }
    check_aliases(conn, tenant, &new.aliases, None)
}

/// Refuse names that belong to another thread.
fn check_aliases(conn: &Connection, tenant: i64, new: &[Alias], own: Option<i64>) -> OpResult<()> {
    for alias in new {
        let sql = "SELECT thread FROM alias WHERE tenant=? AND kind=? AND name=?";
        let key = (tenant, &alias.kind, &alias.name);
        let owner = one(conn, sql, key, |row| row.get(0))?;
        rules::threads::alias(alias, owner, own)?;
    }
    Ok(())
}

fn add_aliases(conn: &Connection, tenant: i64, thread: i64, new: &[Alias]) -> OpResult<()> {
    for alias in new {
        // The same name given twice is one name.
        let sql =
            "INSERT INTO alias(tenant, kind, name, thread) VALUES(?,?,?,?) ON CONFLICT DO NOTHING";
        run_sql(conn, sql, (tenant, &alias.kind, &alias.name, thread))?;
    }
    Ok(())
}

/// A thread that is inserted in another way than by being opened.
pub(crate) struct Insert<'a> {
    pub(crate) head: Option<(&'a NodeRow, bool)>,
    pub(crate) created: u64,
    pub(crate) stage: i64,
}

/// Insert a thread whose other names were checked; its row, unless there is one with its id.
pub(crate) fn insert(
    tx: &Tx<'_>,
    tenant: i64,
    new: &NewThread,
    how: Option<&Insert<'_>>,
) -> OpResult<Option<i64>> {
    let created = how.map_or(tx.now, |how| how.created);
    let head = how.and_then(|how| how.head);
    let sql = "INSERT OR IGNORE INTO thread(tenant, id, head_tl, head_first, borrowed, version, created, touched, recent, stage, since,
        moved_by, keep, title, meta, settings, head_digest) VALUES(?1,?2,?3,?4,?5,0,?6,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)";
    let values = params![
        tenant,
        new.id.as_str(),
        head.map(|(node, _)| node.tl),
        head.map(|(node, _)| int(node.first)),
        head.is_some_and(|(_, borrowed)| borrowed),
        int(created),
        minute(created),
        how.map_or(0, |how| how.stage),
        int(tx.now),
        moved_by_code(new.moved_by),
        new.keep.map(int),
        new.title,
        new.meta.as_ref().map(RawJson::get),
        new.settings.as_ref().map(RawJson::get),
        head.map(|(node, _)| node.digest),
    ];
    if run_sql(tx.conn, sql, values)? == 0 {
        return Ok(None);
    }
    let row = tx.conn.last_insert_rowid();
    add_aliases(tx.conn, tenant, row, &new.aliases)?;
    Ok(Some(row))
}

/// Insert a thread that was found not to be there; its row.
pub(crate) fn insert_new(
    tx: &Tx<'_>,
    tenant: i64,
    new: &NewThread,
    how: Option<&Insert<'_>>,
) -> OpResult<i64> {
    insert(tx, tenant, new, how)?.ok_or_else(|| exists("thread", &new.id))
}

/// Make a thread unless there is one.
pub(crate) fn create(tx: &mut Tx<'_>, scope: &TenantScope, new: &NewThread) -> OpResult<()> {
    if let Some(tenant) = tx.known_tenant(scope.tenant())? {
        let sql = "SELECT thread FROM thread WHERE tenant=? AND id=? AND stage=0";
        let own = one(tx.conn, sql, (tenant, new.id.as_str()), |row| row.get(0))?;
        if own.is_some() {
            return check_aliases(tx.conn, tenant, &new.aliases, own);
        }
        check_new(tx.conn, tenant, new)?;
    }
    let tenant = tx.tenant(scope.tenant())?;
    insert_new(tx, tenant, new, None)?;
    Ok(())
}

/// Make a thread that goes on from a node.
pub(crate) fn fork(tx: &mut Tx<'_>, scope: &TenantScope, fork: &Fork) -> OpResult<Thread> {
    let known = tx.known_tenant(scope.tenant())?;
    let (_, node) = thread_and_node(tx.conn, known, &fork.from, tx.now)?;
    let tenant = known.unwrap_or(0);
    if let Some(row) = thread_by_id(tx.conn, tenant, &fork.thread.id, SHOWN)? {
        let thread = row.thread(aliases(tx.conn, row.row)?)?;
        let base = node.as_ref().map(|node| node.id);
        if rules::threads::is_fork(&thread, row.borrowed, base, fork) {
            return Ok(thread);
        }
    }
    check_new(tx.conn, tenant, &fork.thread)?;
    let how = Insert {
        head: node.as_ref().map(|node| (node, true)),
        created: tx.now,
        stage: 0,
    };
    let row = insert_new(tx, tenant, &fork.thread, Some(&how))?;
    let thread = thread_by_row(tx.conn, row)?;
    let names = aliases(tx.conn, row)?;
    thread
        .ok_or_else(|| not_found("thread", &fork.thread.id))?
        .thread(names)
}

/// Change what is known of a thread.
pub(crate) fn patch(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    id: &ThreadId,
    patch: &ThreadPatch,
) -> OpResult<Thread> {
    let tenant = tx.known_tenant(scope.tenant())?;
    let thread = shown_thread(tx.conn, tenant, id)?;
    let tenant = tenant.unwrap_or(0);
    check_aliases(tx.conn, tenant, &patch.add_aliases, Some(thread.row))?;
    let names = aliases(tx.conn, thread.row)?;
    let patched = rules::threads::patched(thread.thread(names)?, patch);
    let sql = "UPDATE thread SET title=?, meta=?, settings=?, moved_by=?, keep=? WHERE thread=?";
    let values = params![
        patched.title,
        patched.meta.as_ref().map(RawJson::get),
        patched.settings.as_ref().map(RawJson::get),
        moved_by_code(patched.moved_by),
        patched.keep.map(int),
        thread.row,
    ];
    run_sql(tx.conn, sql, values)?;
    for alias in &patch.remove_aliases {
        // The row of the thread stands for its tenant.
        let sql = "DELETE FROM alias WHERE kind=? AND name=? AND thread=?";
        run_sql(tx.conn, sql, (&alias.kind, &alias.name, thread.row))?;
    }
    add_aliases(tx.conn, tenant, thread.row, &patch.add_aliases)?;
    Ok(patched)
}

/// Delete a thread: gone for readers now, swept up later.
pub(crate) fn delete(tx: &mut Tx<'_>, scope: &TenantScope, id: &ThreadId) -> OpResult<()> {
    let Some(tenant) = tx.known_tenant(scope.tenant())? else {
        return Ok(());
    };
    // One that is gone is deleted: a caller that did not hear the answer asks again.
    let Some(thread) = thread_by_id(tx.conn, tenant, id, SHOWN)? else {
        return Ok(());
    };
    tx.after_commit(CacheUpdate::ForgetHead((tenant, id.clone())));
    mark_deleted(tx, thread.row)
}

/// Take a thread out of sight.
pub(crate) fn mark_deleted(tx: &mut Tx<'_>, thread: i64) -> OpResult<()> {
    let conn = tx.conn;
    // Threads that kept nodes for this thread's head may let them go.
    let sql = "UPDATE thread SET stage=2 WHERE stage=3 AND thread=
      (SELECT l.thread FROM thread h CROSS JOIN timeline l ON l.tl=h.head_tl WHERE h.thread=? AND h.borrowed=1)";
    run_sql(conn, sql, [thread])?;
    let sql = "UPDATE thread SET id=NULL, stage=2, since=?, title=NULL, meta=NULL, settings=NULL, keep=NULL WHERE thread=?";
    run_sql(conn, sql, (int(tx.now), thread))?;
    run_sql(conn, "DELETE FROM alias WHERE thread=?", [thread])?;
    run_sql(conn, "DELETE FROM queue WHERE thread=?", [thread])?;
    run_sql(conn, "DELETE FROM waiter WHERE thread=?", [thread])?;
    run_sql(conn, "DELETE FROM approval WHERE thread=?", [thread])?;
    let sql = "DELETE FROM remote_call WHERE run IN (SELECT run FROM run WHERE thread=? AND live IS NOT NULL)";
    if run_sql(conn, sql, [thread])? > 0 {
        // A fork may keep the run, so it is not left to the sweep.
        tx.after_commit(CacheUpdate::Erased);
    }
    // A higher epoch: whatever is remembered of them elsewhere no longer fits.
    let sql = "UPDATE run SET live=NULL, state=9, epoch=epoch+1, owner=NULL WHERE thread=? AND live IS NOT NULL";
    run_sql(conn, sql, [thread])?;
    tx.log.expect_changes();
    tx.after_commit(CacheUpdate::ThreadMoved(thread));
    Ok(())
}

/// Put a message into a queue.
pub(crate) fn enqueue(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    id: &ThreadId,
    body: &RawJson,
) -> OpResult<QueueNo> {
    let tenant = tx.known_tenant(scope.tenant())?;
    let thread = shown_thread(tx.conn, tenant, id)?;
    let sql = "INSERT INTO queue(thread, body) VALUES(?,?)";
    run_sql(tx.conn, sql, (thread.row, body.get()))?;
    Ok(num(tx.conn.last_insert_rowid()))
}

/// Take messages out of a queue. Those that are gone already are no matter.
pub(crate) fn dequeue(tx: &Tx<'_>, thread: i64, numbers: &[QueueNo]) -> OpResult<()> {
    for no in numbers {
        let sql = "DELETE FROM queue WHERE no=? AND thread=?";
        run_sql(tx.conn, sql, (int(*no), thread))?;
    }
    Ok(())
}

/// Whether one of these messages still waits in a queue.
pub(crate) fn is_queued(tx: &Tx<'_>, thread: i64, numbers: &[QueueNo]) -> OpResult<bool> {
    for no in numbers {
        let sql = "SELECT 1 FROM queue WHERE no=? AND thread=?";
        if one(tx.conn, sql, (int(*no), thread), |_| Ok(()))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What waits in a queue.
pub(crate) fn queue(
    conn: &Connection,
    tenant: Option<i64>,
    id: &ThreadId,
) -> OpResult<Vec<Queued>> {
    let thread = shown_thread(conn, tenant, id)?;
    let mut statement = prepare(
        conn,
        "SELECT no, body FROM queue WHERE thread=? ORDER BY no",
    )?;
    let rows = statement.query_map([thread.row], |row| {
        Ok((num(row.get(0)?), row.get::<_, String>(1)?))
    })?;
    let mut queue = Vec::new();
    for row in rows {
        let (no, body) = row?;
        if let Some(body) = rows::json(Some(body), "a queued message")? {
            queue.push(Queued { no, body });
        }
    }
    Ok(queue)
}
