//! Finding what is opened, in one look: every turn begins with it.

use std::sync::LazyLock;

use rusqlite::{Connection, Row};

use crate::engines::sqlite::op_error::{OpResult, not_found};
use crate::engines::sqlite::rows::find::{alias, named_node};
use crate::engines::sqlite::rows::sql::one;
use crate::engines::sqlite::rows::{
    NODE, NODE_COLUMNS, NodeRow, THREAD, THREAD_COLUMNS, THREAD_TABLES, ThreadRow,
};
use crate::{At, Millis, NodeRef, RunId, ThreadId};

/// What is opened.
pub(crate) struct OpenedRows {
    pub(crate) thread: ThreadRow,
    /// The node that was named, or the head.
    pub(crate) node: Option<NodeRow>,
    /// Whether the thread has an unsettled leased run, messages in its queue, names, a wait queue.
    pub(crate) unsettled: bool,
    pub(crate) queued: bool,
    pub(crate) named: bool,
    pub(crate) awaited: bool,
}

/// The columns of what else a thread may have: mostly there is none of it, and no reason to look twice.
const HAS: &str = ", EXISTS(SELECT 1 FROM run u WHERE u.thread=t.thread AND u.live=0),
 EXISTS(SELECT 1 FROM queue q WHERE q.thread=t.thread), EXISTS(SELECT 1 FROM alias a WHERE a.thread=t.thread),
 EXISTS(SELECT 1 FROM waiter w WHERE w.thread=t.thread)";

/// Where they are.
const HAS_AT: usize = THREAD_COLUMNS + NODE_COLUMNS;

impl OpenedRows {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let thread = ThreadRow::read(row)?;
        Ok(Self {
            node: thread.head.clone(),
            thread,
            unsettled: row.get(HAS_AT)?,
            queued: row.get(HAS_AT + 1)?,
            named: row.get(HAS_AT + 2)?,
            awaited: row.get(HAS_AT + 3)?,
        })
    }

    /// The same with the node that was named behind it.
    fn read_at_node(row: &Row<'_>) -> rusqlite::Result<Self> {
        let node = NodeRow::read(row, HAS_AT + 4)?;
        Ok(Self {
            node: Some(node),
            ..Self::read(row)?
        })
    }
}

/// What a name leads to.
pub(crate) fn find(
    conn: &Connection,
    tenant: Option<i64>,
    at: &At,
    now: Millis,
) -> OpResult<OpenedRows> {
    match at {
        At::Thread(id) => {
            let found = match tenant {
                Some(tenant) => by_id(conn, tenant, id)?,
                None => None,
            };
            found.ok_or_else(|| not_found("thread", id))
        }
        At::Alias(name) => {
            let found = match alias(conn, tenant, name)? {
                Some(row) => row_map(conn, row)?,
                None => None,
            };
            found.ok_or_else(|| not_found("thread", &name.name))
        }
        At::Node(node) => {
            if let (NodeRef::Run(run), Some(tenant)) = (node, tenant)
                && let Some(found) = by_run(conn, tenant, *run)?
            {
                return Ok(found);
            }
            let (node, run) = named_node(conn, tenant, *node, now)?;
            let found = row_map(conn, run.thread)?;
            let mut found = found.ok_or_else(|| not_found("run", &run.id))?;
            found.node = Some(node);
            Ok(found)
        }
    }
}

fn by_id(conn: &Connection, tenant: i64, id: &ThreadId) -> OpResult<Option<OpenedRows>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {THREAD} {NODE}{HAS} FROM {THREAD_TABLES} WHERE t.tenant=? AND t.id=? AND t.stage=0"
        )
    });
    one(conn, &SQL, (tenant, id.as_str()), OpenedRows::read)
}

fn row_map(conn: &Connection, thread: i64) -> OpResult<Option<OpenedRows>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT {THREAD} {NODE}{HAS} FROM {THREAD_TABLES} WHERE t.thread=? AND t.stage=0")
    });
    one(conn, &SQL, [thread], OpenedRows::read)
}

/// The thread and the last node of a run that has one. Who finds nothing has to look again, to say
/// why.
fn by_run(conn: &Connection, tenant: i64, run: RunId) -> OpResult<Option<OpenedRows>> {
    // 32: `HIDDEN`.
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let node = NODE
            .replace("n.", "m.")
            .replace("r.", "w.")
            .replace("s.", "v.");
        format!(
            "SELECT {THREAD} {NODE}{HAS}, {node}
             FROM run w CROSS JOIN node m ON m.tl=w.pub_tl AND m.first=w.pub_first AND m.run=w.run
             LEFT JOIN state v ON v.run=m.state_run AND v.step=m.state_step
             CROSS JOIN {THREAD_TABLES} WHERE w.tenant=? AND w.id=? AND w.flags & 32=0 AND t.thread=w.thread AND t.stage=0"
        )
    });
    one(
        conn,
        &SQL,
        (tenant, run.as_bytes()),
        OpenedRows::read_at_node,
    )
}
