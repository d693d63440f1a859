//! Listings: threads, trees, orphans.

use std::sync::LazyLock;

use rusqlite::Connection;
use throughline_model::json;

use crate::engines::sqlite::op_error::{OpResult, corrupt, not_found};
use crate::engines::sqlite::ops::newest_runs::NewestRuns;
use crate::engines::sqlite::ops::read::Reading;
use crate::engines::sqlite::rows::find::{
    node_before, node_of, run_to_write, shown_thread, timeline_chain,
};
use crate::engines::sqlite::rows::nodes::minute;
use crate::engines::sqlite::rows::sql::{one, prepare};
use crate::engines::sqlite::rows::{
    NODE, NODE_TABLES, NodeRow, OPEN, THREAD, THREAD_TABLES, ThreadRow, int, num,
};
use crate::{
    Authority, ItemKind, Listing, Millis, NodeId, Orphan, PageToken, Result, RunId, Tenant, Thread,
    ThreadFilter, ThreadId, TreeNode, rules,
};

/// Rows that a filtered listing looks at before it gives back what it has.
pub(crate) const SCAN_LIMIT: usize = 10_000;

/// Threads, last touched first: `thread_recent` gives them in this order, `alias_thread` the names of one. The other
/// conditions are tried on each of at most [`SCAN_LIMIT`] rows; a page token says where the next page goes on.
pub(crate) fn threads(
    reading: &Reading<'_>,
    filter: &ThreadFilter,
    after: Option<PageToken>,
    limit: usize,
) -> OpResult<Listing<Thread>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {THREAD} {NODE} FROM {THREAD_TABLES} WHERE t.tenant=?1 AND t.stage=0 AND t.recent<=?2
             AND (t.touched, t.thread)<(?3, ?4) AND t.touched<?5 AND t.touched>=?6
             AND (?7 IS NULL OR EXISTS(SELECT 1 FROM alias a WHERE a.thread=t.thread AND a.kind=?7))
             AND t.created>=?8 AND t.created<?9
             ORDER BY t.recent DESC, t.touched DESC, t.thread DESC"
        )
    });
    let mut listing = Listing {
        found: Vec::new(),
        next: None,
    };
    let Some(tenant) = reading.tenant else {
        return Ok(listing);
    };
    let (key, row) = after.map_or((u64::MAX, i64::MAX), |token| (token.key, token.row));
    let before = filter.touched_before.unwrap_or(u64::MAX);
    let from = filter.touched_from.unwrap_or(0);
    let start = minute(key.min(before));
    let mut statement = prepare(reading.conn, &SQL)?;
    let mut rows = statement.query((
        tenant,
        start,
        int(key),
        row,
        int(before),
        int(from),
        &filter.alias_kind,
        int(filter.created_from.unwrap_or(0)),
        int(filter.created_before.unwrap_or(u64::MAX)),
    ))?;
    let mut newest = NewestRuns::new(reading.conn, reading.now, filter);
    let mut last = None;
    let mut scanned = 0;
    while let Some(row) = rows.next()? {
        if listing.found.len() == limit || scanned == SCAN_LIMIT {
            listing.next = last;
            break;
        }
        scanned += 1;
        let thread = ThreadRow::read(row)?;
        last = Some(PageToken {
            key: thread.touched,
            row: thread.row,
        });
        let meta = thread.meta.as_deref();
        let meta = meta.and_then(|text| json::parse(text).ok());
        if rules::threads::has_title(thread.title.as_deref(), filter)
            && rules::threads::has_meta(meta.as_ref(), filter)
            && newest.fit(&thread)?
        {
            listing.found.push(thread.thread(Vec::new())?);
        }
    }
    Ok(listing)
}

/// All nodes that belong to a thread.
pub(crate) fn tree(
    reading: &Reading<'_>,
    id: &ThreadId,
    after: Option<NodeId>,
    limit: usize,
) -> OpResult<Vec<TreeNode>> {
    let nodes = nodes(reading, id, after, limit);
    nodes.map_err(|error| error.in_thread(id))
}

fn nodes(
    reading: &Reading<'_>,
    id: &ThreadId,
    after: Option<NodeId>,
    limit: usize,
) -> OpResult<Vec<TreeNode>> {
    let conn = reading.conn;
    let thread = shown_thread(conn, reading.tenant, id)?;
    // A timeline has a higher number than the one it hangs on: in their order, parents come first.
    let mut timelines: Vec<(i64, i64)> = Vec::new();
    if let Some(head) = &thread.head {
        let mut at = Some(timeline_chain(conn, reading.caches, head.tl)?);
        let mut end = head.last;
        while let Some(chain) = at {
            if chain.thread != thread.row {
                timelines.push((chain.tl, int(end)));
            }
            end = end.min(chain.fork);
            at = chain.parent.clone();
        }
    }
    let mut statement = prepare(conn, "SELECT tl FROM timeline WHERE thread=?")?;
    for tl in statement.query_map([thread.row], |row| row.get(0))? {
        timelines.push((tl?, i64::MAX));
    }
    timelines.sort_unstable();
    let start = match after {
        Some(node) => {
            let run = run_to_write(conn, reading.tenant, node.run)?;
            let node_row = node_of(conn, &run, node.step)?;
            let found = node_row.ok_or_else(|| not_found("node", &node))?;
            (found.tl, int(found.first))
        }
        None => (0, 0),
    };
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {NODE} FROM {NODE_TABLES} WHERE n.tl=? AND n.first>? AND n.first<=? ORDER BY n.first LIMIT ?"
        )
    });
    let mut nodes = Vec::new();
    for (tl, end) in timelines.into_iter().filter(|(tl, _)| *tl >= start.0) {
        let left = limit.saturating_sub(nodes.len());
        if left == 0 {
            break;
        }
        let from = if tl == start.0 { start.1 } else { 0 };
        let mut statement = prepare(conn, &SQL)?;
        let rows = statement.query_map((tl, from, end, int(left as u64)), |row| {
            NodeRow::read(row, 0)
        })?;
        let rows: Vec<NodeRow> = rows.collect::<Result<_, _>>()?;
        let mut parent: Option<NodeId> = None;
        for row in rows {
            let before = match parent {
                Some(parent) => Some(parent),
                None => node_before(conn, reading.caches, &row)?.map(|node| node.id),
            };
            parent = Some(row.id);
            nodes.push(TreeNode {
                node: row.id,
                parent: before,
                first: row.first,
                last: row.last,
                first_item: row.item_lo,
                messages: messages(conn, &row)?,
                open: row.flags & OPEN != 0,
                created: row.created,
            });
        }
    }
    Ok(nodes)
}

/// How many messages begin in a node.
fn messages(conn: &Connection, node: &NodeRow) -> OpResult<u64> {
    // By `item_at`; the bodies of the rows are not read.
    let sql = "SELECT count(*) FROM item WHERE run=? AND no BETWEEN ? AND ? AND kind & 15=?";
    let key = (
        node.run,
        node.item_lo,
        node.item_hi(),
        ItemKind::Message.code(),
    );
    let count: Option<i64> = one(conn, sql, key, |row| row.get(0))?;
    Ok(count.map_or(0, num))
}

/// Runs whose owners are gone.
pub(crate) fn orphans(conn: &Connection, now: Millis, limit: usize) -> OpResult<Vec<Orphan>> {
    let sql = "SELECT n.name, r.id, r.epoch, r.attempt FROM run r INDEXED BY run_live CROSS JOIN thread t ON t.thread=r.thread
      CROSS JOIN tenant n ON n.tenant=r.tenant
      WHERE r.live IS NOT NULL AND r.state=1 AND t.stage=0
      AND NOT EXISTS(SELECT 1 FROM owner o WHERE o.owner=r.owner AND o.until>?1) ORDER BY r.run LIMIT ?2";
    let mut statement = prepare(conn, sql)?;
    let rows = statement.query_map((int(now), int(limit as u64)), |row| {
        Ok((
            row.get::<_, String>(0)?,
            RunId::from_bytes(row.get(1)?),
            row.get(2)?,
            row.get(3)?,
        ))
    })?;
    let mut orphans = Vec::new();
    for row in rows {
        let (tenant, run, epoch, attempt) = row?;
        let tenant =
            Tenant::new(&tenant).map_err(|error| corrupt("a tenant", error.to_string()))?;
        orphans.push(Orphan {
            // Upkeep is for all tenants.
            scope: Authority::assume().scope(tenant),
            run,
            epoch,
            attempt,
        });
    }
    Ok(orphans)
}
