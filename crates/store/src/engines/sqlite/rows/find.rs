//! How rows are looked up.

use std::sync::{Arc, LazyLock};

use rusqlite::Connection;

use crate::engines::sqlite::cache::{Caches, TimelineChain, lock};
use crate::engines::sqlite::op_error::{OpResult, corrupt, not_found};
use crate::engines::sqlite::rows::sql::{one, prepare};
use crate::engines::sqlite::rows::{
    NODE, NODE_TABLES, NodeRow, RUN, RUN_TABLES, RunRow, SHOWN, THREAD, THREAD_TABLES, ThreadRow,
    flag, int, num,
};
use crate::{Alias, At, Error, Millis, NodeRef, Position, Result, RunId, Tenant, ThreadId};

/// The row of a tenant, if it has one. Tenants are never removed, so it may be remembered.
pub(crate) fn tenant(conn: &Connection, caches: &Caches, tenant: &Tenant) -> OpResult<Option<i64>> {
    if let Some(row) = lock(&caches.tenants).get(tenant) {
        return Ok(Some(*row));
    }
    let sql = "SELECT tenant FROM tenant WHERE name=?";
    one(conn, sql, [tenant.as_str()], |row| row.get(0))
}

/// How many redactions a tenant has had.
pub(crate) fn redactions(conn: &Connection, tenant: Option<i64>) -> OpResult<u64> {
    let sql = "SELECT redactions FROM tenant WHERE tenant=?";
    let count: Option<i64> = one(conn, sql, [tenant.unwrap_or(0)], |row| row.get(0))?;
    Ok(count.map_or(0, num))
}

/// The node that starts at a position of a timeline.
pub(crate) fn node_at(conn: &Connection, tl: i64, first: Position) -> OpResult<Option<NodeRow>> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {NODE} FROM {NODE_TABLES} WHERE n.tl=? AND n.first=?"));
    one(conn, &SQL, (tl, int(first)), |row| NodeRow::read(row, 0))
}

/// The node that holds a position of a timeline, or the last one before it.
pub(crate) fn node_holding(
    conn: &Connection,
    tl: i64,
    position: Position,
) -> OpResult<Option<NodeRow>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {NODE} FROM {NODE_TABLES} WHERE n.tl=? AND n.first<=? ORDER BY n.first DESC LIMIT 1"
        )
    });
    one(conn, &SQL, (tl, int(position)), |row| NodeRow::read(row, 0))
}

/// A thread by its id, at a stage.
pub(crate) fn thread_by_id(
    conn: &Connection,
    tenant: i64,
    id: &ThreadId,
    stage: i64,
) -> OpResult<Option<ThreadRow>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {THREAD} {NODE} FROM {THREAD_TABLES} WHERE t.tenant=? AND t.id=? AND t.stage=?"
        )
    });
    one(conn, &SQL, (tenant, id.as_str(), stage), ThreadRow::read)
}

/// A shown thread by its row.
pub(crate) fn thread_by_row(conn: &Connection, thread: i64) -> OpResult<Option<ThreadRow>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT {THREAD} {NODE} FROM {THREAD_TABLES} WHERE t.thread=? AND t.stage=0")
    });
    one(conn, &SQL, [thread], ThreadRow::read)
}

/// A shown thread by its id, or say that there is none.
pub(crate) fn shown_thread(
    conn: &Connection,
    tenant: Option<i64>,
    id: &ThreadId,
) -> OpResult<ThreadRow> {
    let found = match tenant {
        Some(tenant) => thread_by_id(conn, tenant, id, SHOWN)?,
        None => None,
    };
    found.ok_or_else(|| not_found("thread", id))
}

/// The row of the thread that has a name.
pub(crate) fn alias(conn: &Connection, tenant: Option<i64>, name: &Alias) -> OpResult<Option<i64>> {
    let sql = "SELECT thread FROM alias WHERE tenant=? AND kind=? AND name=?";
    let key = (tenant.unwrap_or(0), &name.kind, &name.name);
    one(conn, sql, key, |row| row.get(0))
}

/// The names of a thread, sorted.
pub(crate) fn aliases(conn: &Connection, thread: i64) -> OpResult<Vec<Alias>> {
    let mut statement = prepare(
        conn,
        "SELECT kind, name FROM alias WHERE thread=? ORDER BY kind, name",
    )?;
    let rows = statement.query_map([thread], |row| {
        Ok(Alias::new(
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
        ))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A run by its id, whatever became of its thread.
pub(crate) fn any_run(conn: &Connection, tenant: i64, id: RunId) -> OpResult<Option<RunRow>> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {RUN} FROM {RUN_TABLES} WHERE r.tenant=? AND r.id=?"));
    one(conn, &SQL, (tenant, id.as_bytes()), RunRow::read)
}

/// A run by its row.
pub(crate) fn run_by_row(conn: &Connection, run: i64) -> OpResult<Option<RunRow>> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {RUN} FROM {RUN_TABLES} WHERE r.run=?"));
    one(conn, &SQL, [run], RunRow::read)
}

/// The run with a key.
pub(crate) fn run_by_key(conn: &Connection, tenant: i64, key: &str) -> OpResult<Option<RunRow>> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {RUN} FROM {RUN_TABLES} WHERE r.tenant=? AND r.idem=?"));
    one(conn, &SQL, (tenant, key), RunRow::read)
}

/// The leased run of a thread that is not settled.
pub(crate) fn unsettled(conn: &Connection, thread: i64) -> OpResult<Option<RunRow>> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {RUN} FROM {RUN_TABLES} WHERE r.thread=? AND r.live=0"));
    one(conn, &SQL, [thread], RunRow::read)
}

/// A run of a shown thread by its id, hidden or not.
pub(crate) fn run_to_write(conn: &Connection, tenant: Option<i64>, id: RunId) -> OpResult<RunRow> {
    let found = match tenant {
        Some(tenant) => any_run(conn, tenant, id)?,
        None => None,
    };
    found
        .filter(|run| run.stage == SHOWN)
        .ok_or_else(|| not_found("run", &id))
}

/// A run as readers find it.
pub(crate) fn shown_run(conn: &Connection, tenant: Option<i64>, id: RunId) -> OpResult<RunRow> {
    let run = run_to_write(conn, tenant, id)?;
    if run.has(flag::HIDDEN) {
        return Err(not_found("run", &id));
    }
    Ok(run)
}

/// The node that a step of a run published.
pub(crate) fn node_of(conn: &Connection, run: &RunRow, step: u32) -> OpResult<Option<NodeRow>> {
    let place = match run.published {
        Some((tl, first, last)) if last == step => Some((tl, first)),
        _ => {
            let sql = "SELECT tl, pos FROM step WHERE run=? AND no=? AND tl IS NOT NULL";
            one(conn, sql, (run.row, step), |row| {
                Ok((row.get(0)?, num(row.get(1)?)))
            })?
        }
    };
    match place {
        Some((tl, first)) => node_at(conn, tl, first),
        None => Ok(None),
    }
}

/// The node of a run that holds an item, or the last node if the item is a result that was left
/// unsent behind it.
pub(crate) fn node_with_item(conn: &Connection, run: i64, no: u32) -> OpResult<Option<NodeRow>> {
    // 8: `UNSENT`.
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {NODE} FROM
             (SELECT tl, pos FROM step WHERE run=?1 AND tl IS NOT NULL UNION SELECT pub_tl, pub_first FROM run WHERE run=?1) p
             CROSS JOIN {NODE_TABLES} WHERE n.tl=p.tl AND n.first=p.pos AND n.run=?1 AND n.item_lo<=?2
             AND (n.item_lo+n.last-n.first>=?2 OR r.flags & 8<>0 AND n.tl=r.pub_tl AND n.first=r.pub_first) LIMIT 1"
        )
    });
    one(conn, &SQL, (run, no), |row| NodeRow::read(row, 0))
}

/// Whether a thread that is shown has a node on its way or as its own: nodes of deleted threads
/// live on in others, also where the threads in between are deleted.
pub(crate) fn is_reached(conn: &Connection, node: &NodeRow) -> OpResult<bool> {
    let sql = "WITH RECURSIVE later(tl, after, stage) AS (
        SELECT l.tl, ?2, t.stage FROM timeline l CROSS JOIN thread t ON t.thread=l.thread WHERE l.tl=?1
        UNION ALL SELECT l.tl, 0, t.stage FROM later CROSS JOIN timeline l ON l.parent_tl=later.tl AND l.fork>=later.after
          CROSS JOIN thread t ON t.thread=l.thread WHERE later.stage IN (2, 3))
      SELECT 1 FROM later WHERE stage=0 OR EXISTS(
        SELECT 1 FROM thread h CROSS JOIN node n ON n.tl=h.head_tl AND n.first=h.head_first
        WHERE h.head_tl=later.tl AND h.borrowed=1 AND h.stage=0 AND n.last>=later.after) LIMIT 1";
    Ok(one(conn, sql, (node.tl, int(node.last)), |_| Ok(()))?.is_some())
}

/// The node that a reference names, with its run.
pub(crate) fn named_node(
    conn: &Connection,
    tenant: Option<i64>,
    node: NodeRef,
    now: Millis,
) -> OpResult<(NodeRow, RunRow)> {
    let run = shown_run(conn, tenant, node.run())?;
    let not_final = Error::NotFinal {
        run: run.id,
        state: run.seen(now),
    };
    let (found, id) = match node {
        NodeRef::Run(id) => match run.published {
            Some((tl, first, _)) => (node_at(conn, tl, first)?, id.to_string()),
            None => return Err(not_final.into()),
        },
        NodeRef::Node(id) => {
            let found = node_of(conn, &run, id.step)?;
            if found.is_none() && run.published.is_none() {
                return Err(not_final.into());
            }
            (found, id.to_string())
        }
    };
    match found {
        Some(node) => Ok((node, run)),
        None => Err(not_found("node", &id)),
    }
}

/// What a name leads to: a thread and a node of it, if it has one.
pub(crate) fn thread_and_node(
    conn: &Connection,
    tenant: Option<i64>,
    at: &At,
    now: Millis,
) -> OpResult<(ThreadRow, Option<NodeRow>)> {
    match at {
        At::Thread(id) => {
            let thread = shown_thread(conn, tenant, id)?;
            let head = thread.head.clone();
            Ok((thread, head))
        }
        At::Alias(name) => {
            let thread = match alias(conn, tenant, name)? {
                Some(row) => thread_by_row(conn, row)?,
                None => None,
            };
            let thread = thread.ok_or_else(|| not_found("thread", &name.name))?;
            let head = thread.head.clone();
            Ok((thread, head))
        }
        At::Node(node) => {
            let (node, run) = named_node(conn, tenant, *node, now)?;
            let thread = thread_by_row(conn, run.thread)?;
            let thread = thread.ok_or_else(|| not_found("run", &run.id))?;
            Ok((thread, Some(node)))
        }
    }
}

/// How a timeline hangs on others.
pub(crate) fn timeline_chain(
    conn: &Connection,
    caches: &Caches,
    tl: i64,
) -> OpResult<Arc<TimelineChain>> {
    // From the timeline down to one that is known, then back up.
    let mut unknown = Vec::new();
    let mut next = Some(tl);
    let mut parent = None;
    while let Some(tl) = next {
        if let Some(known) = lock(&caches.chains).get(&tl) {
            parent = Some(known);
            break;
        }
        let sql = "SELECT thread, parent_tl, fork FROM timeline WHERE tl=?";
        let found = one(conn, sql, [tl], |row| {
            Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?, num(row.get(2)?)))
        })?;
        let Some((thread, parent_tl, fork)) = found else {
            return Err(corrupt(format!("timeline {tl}"), "it is missing"));
        };
        unknown.push((tl, thread, fork));
        next = parent_tl;
    }
    let mut cache = lock(&caches.chains);
    for (tl, thread, fork) in unknown.into_iter().rev() {
        let chain = Arc::new(TimelineChain {
            tl,
            thread,
            fork,
            parent: parent.take(),
        });
        cache.insert(tl, Arc::clone(&chain));
        parent = Some(chain);
    }
    parent.ok_or_else(|| corrupt(format!("timeline {tl}"), "it is missing"))
}

/// The node before a node.
pub(crate) fn node_before(
    conn: &Connection,
    caches: &Caches,
    node: &NodeRow,
) -> OpResult<Option<NodeRow>> {
    if let Some(before) = node_holding(conn, node.tl, node.first.saturating_sub(1))? {
        return Ok(Some(before));
    }
    let chain = timeline_chain(conn, caches, node.tl)?;
    match &chain.parent {
        Some(parent) => node_on_chain(conn, parent, chain.fork),
        None => Ok(None),
    }
}

/// The node that holds a position at or below a timeline.
pub(crate) fn node_on_chain(
    conn: &Connection,
    chain: &Arc<TimelineChain>,
    position: Position,
) -> OpResult<Option<NodeRow>> {
    let mut chain = chain;
    while position <= chain.fork {
        match &chain.parent {
            Some(parent) => chain = parent,
            None => return Ok(None),
        }
    }
    node_holding(conn, chain.tl, position)
}
