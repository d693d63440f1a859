//! Listings: threads, runs, trees, orphans.

use std::sync::{Arc, LazyLock};

use rusqlite::Connection;
use throughline_model::json;

use super::cache::{Caches, Line};
use super::fault::Done;
use super::publish::minute;
use super::read::Reading;
use super::rows::{
    NODE, NODE_TABLES, NodeRow, OPEN, RUN, RUN_TABLES, RunRow, THREAD, THREAD_TABLES, ThreadRow,
    flag, int, line, node_before, node_of, run_by_row, run_to_write, shown_thread,
};
use super::sql::{one, prepare};
use crate::{
    Authority, Listing, Millis, NodeId, Orphan, PageToken, Run, RunFilter, RunId, Tenant, Thread,
    ThreadFilter, ThreadId, TreeNode,
};

/// Rows that a filtered listing looks at before it gives back what it has.
const LOOK: usize = 10_000;

/// Threads, last touched first.
pub(super) fn threads(
    reading: &Reading<'_>,
    filter: &ThreadFilter,
    after: Option<PageToken>,
    limit: usize,
) -> Done<Listing<Thread>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {THREAD} {NODE} FROM {THREAD_TABLES} WHERE t.tenant=?1 AND t.stage=0 AND t.recent<=?2
             AND (t.touched, t.thread)<(?3, ?4) AND t.touched<?5 AND t.touched>=?6
             AND (?7 IS NULL OR EXISTS(SELECT 1 FROM alias a WHERE a.thread=t.thread AND a.kind=?7))
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
    ))?;
    let mut last = None;
    let mut looked = 0;
    while let Some(row) = rows.next()? {
        if listing.found.len() == limit || looked == LOOK {
            listing.next = last;
            break;
        }
        looked += 1;
        let thread = ThreadRow::read(row)?;
        last = Some(PageToken {
            key: thread.touched,
            row: thread.row,
        });
        if has_meta(&thread, filter) {
            listing.found.push(thread.thread(Vec::new())?);
        }
    }
    Ok(listing)
}

/// Whether the metadata of a thread has the members asked for.
fn has_meta(thread: &ThreadRow, filter: &ThreadFilter) -> bool {
    if filter.meta.is_empty() {
        return true;
    }
    let Some(value) = thread
        .meta
        .as_deref()
        .and_then(|text| json::parse(text).ok())
    else {
        return false;
    };
    filter.meta.iter().all(|(key, text)| {
        let member = value.get(key);
        member.is_some_and(|member| member.is_str(text))
    })
}

/// Runs, newest first.
pub(super) fn runs(
    reading: &Reading<'_>,
    filter: &RunFilter,
    after: Option<PageToken>,
    limit: usize,
) -> Done<Listing<Run>> {
    let Some(tenant) = reading.tenant else {
        return Ok(Listing {
            found: Vec::new(),
            next: None,
        });
    };
    let rows = match &filter.thread {
        Some(id) => {
            let thread = shown_thread(reading.conn, Some(tenant), id)?;
            let before = after.map_or(i64::MAX, |token| token.row);
            OfThread::new(reading.conn, thread.row, before)?
        }
        None => return runs_of_tenant(reading, tenant, filter, after, limit),
    };
    let mut rows = rows;
    let mut found = Vec::new();
    let mut last = None;
    let mut looked = 0;
    let next = loop {
        let Some(row) = rows.next(reading.conn)? else {
            break None;
        };
        if found.len() == limit || looked == LOOK {
            break last;
        }
        looked += 1;
        last = Some(PageToken { key: 0, row });
        if let Some(run) = run_by_row(reading.conn, row)?
            && let Some(run) = wanted(&run, filter, reading.now)?
        {
            found.push(run);
        }
    };
    Ok(Listing { found, next })
}

/// A run if it is one of those asked for.
fn wanted(run: &RunRow, filter: &RunFilter, now: Millis) -> Done<Option<Run>> {
    let state = run.seen(now);
    let fits = filter.states.is_empty() || filter.states.contains(&state);
    if !fits || run.has(flag::HIDDEN) {
        return Ok(None);
    }
    run.run(now).map(Some)
}

/// Runs of a tenant by their ids, which are ordered by time.
fn runs_of_tenant(
    reading: &Reading<'_>,
    tenant: i64,
    filter: &RunFilter,
    after: Option<PageToken>,
    limit: usize,
) -> Done<Listing<Run>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {RUN} FROM {RUN_TABLES} WHERE r.tenant=?1 AND r.id<?2 AND t.stage=0 ORDER BY r.id DESC"
        )
    });
    let before = match after {
        // Longer than any id, so that all are before it.
        None => vec![0xFF; 17],
        Some(token) => {
            let mut id = token.key.to_be_bytes().to_vec();
            id.extend(token.row.to_be_bytes());
            id
        }
    };
    let mut statement = prepare(reading.conn, &SQL)?;
    let mut rows = statement.query((tenant, before))?;
    let mut found = Vec::new();
    let mut last = None;
    let mut looked = 0;
    while let Some(row) = rows.next()? {
        if found.len() == limit || looked == LOOK {
            return Ok(Listing { found, next: last });
        }
        looked += 1;
        let run = RunRow::read(row)?;
        last = Some(token_of(run.id));
        if let Some(run) = wanted(&run, filter, reading.now)? {
            found.push(run);
        }
    }
    Ok(Listing { found, next: None })
}

/// An id is as long as a token.
fn token_of(id: RunId) -> PageToken {
    let (high, low) = id.as_bytes().split_at(8);
    let mut token = [[0; 8]; 2];
    token[0].copy_from_slice(high);
    token[1].copy_from_slice(low);
    PageToken {
        key: u64::from_be_bytes(token[0]),
        row: i64::from_be_bytes(token[1]),
    }
}

/// The runs of one thread, newest first, without an index of their own: along a timeline runs are
/// newer and newer, because each goes on from what is published. So the timelines of the thread,
/// its unsettled runs and those that published nothing are merged.
struct OfThread {
    /// The next run of each source, and where it comes from.
    heads: Vec<(i64, Source)>,
    last: i64,
}

enum Source {
    /// The next node to look at is before this position of this timeline.
    Timeline(i64, i64),
    /// These rows, the newest last.
    Rows(Vec<i64>),
}

impl OfThread {
    fn new(conn: &Connection, thread: i64, before: i64) -> Done<Self> {
        let mut list = Self {
            heads: Vec::new(),
            last: before,
        };
        let sql = "SELECT run FROM run WHERE thread=?1 AND live IS NOT NULL AND run<?2
          UNION ALL SELECT run FROM run WHERE thread=?1 AND live IS NULL AND pub_tl IS NULL AND run<?2 ORDER BY run";
        let mut statement = prepare(conn, sql)?;
        let rows = statement.query_map((thread, before), |row| row.get(0))?;
        let rows: Vec<i64> = rows.collect::<Result<_, _>>()?;
        list.push(conn, Source::Rows(rows))?;
        let mut statement = prepare(conn, "SELECT tl FROM timeline WHERE thread=?")?;
        let lines = statement.query_map([thread], |row| row.get(0))?;
        for tl in lines {
            let tl = tl?;
            let end = end_of(conn, tl, before)?;
            list.push(conn, Source::Timeline(tl, end))?;
        }
        Ok(list)
    }

    /// Take a source up again with its next run.
    fn push(&mut self, conn: &Connection, mut source: Source) -> Done<()> {
        let next = match &mut source {
            Source::Rows(rows) => rows.pop(),
            Source::Timeline(tl, end) => {
                let sql = "SELECT run, first FROM node WHERE tl=? AND first<? ORDER BY first DESC LIMIT 1";
                let found = one(conn, sql, (*tl, *end), |row| Ok((row.get(0)?, row.get(1)?)))?;
                found.map(|(run, first): (i64, i64)| {
                    *end = first;
                    run
                })
            }
        };
        if let Some(run) = next {
            self.heads.push((run, source));
        }
        Ok(())
    }

    fn next(&mut self, conn: &Connection) -> Done<Option<i64>> {
        loop {
            let newest = self
                .heads
                .iter()
                .enumerate()
                .max_by_key(|(_, (run, _))| *run);
            let Some((place, _)) = newest else {
                return Ok(None);
            };
            let (run, source) = self.heads.swap_remove(place);
            self.push(conn, source)?;
            // A run may have several nodes, and be unsettled besides.
            if run < self.last {
                self.last = run;
                return Ok(Some(run));
            }
        }
    }
}

/// The first position of a timeline whose run is not before a row: found by halving.
fn end_of(conn: &Connection, tl: i64, before: i64) -> Done<i64> {
    let sql = "SELECT max(first) FROM node WHERE tl=?";
    let last: Option<i64> = one(conn, sql, [tl], |row| row.get(0))?.flatten();
    let (mut low, mut high) = (0, last.unwrap_or(0).saturating_add(1));
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        let sql = "SELECT run FROM node WHERE tl=? AND first<=? ORDER BY first DESC LIMIT 1";
        let run: Option<i64> = one(conn, sql, (tl, middle), |row| row.get(0))?;
        if run.is_none_or(|run| run < before) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(high)
}

/// All nodes that belong to a thread.
pub(super) fn tree(
    reading: &Reading<'_>,
    id: &ThreadId,
    after: Option<NodeId>,
    limit: usize,
) -> Done<Vec<TreeNode>> {
    let conn = reading.conn;
    let thread = shown_thread(conn, reading.tenant, id)?;
    // A timeline has a higher number than the one it hangs on: in their order, parents come first.
    let mut lines: Vec<(i64, i64)> = Vec::new();
    if let Some(head) = &thread.head {
        let mut at = Some(line(conn, reading.caches, head.tl)?);
        let mut end = head.last;
        while let Some(line) = at {
            if line.thread != thread.row {
                lines.push((line.tl, int(end)));
            }
            end = end.min(line.fork);
            at = line.parent.clone();
        }
    }
    let mut statement = prepare(conn, "SELECT tl FROM timeline WHERE thread=?")?;
    for tl in statement.query_map([thread.row], |row| row.get(0))? {
        lines.push((tl?, i64::MAX));
    }
    lines.sort_unstable();
    let start = match after {
        Some(node) => {
            let run = run_to_write(conn, reading.tenant, node.run)?;
            let node_row = node_of(conn, &run, node.step)?;
            let found = node_row.ok_or_else(|| super::fault::missing("node", &node))?;
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
    for (tl, end) in lines.into_iter().filter(|(tl, _)| *tl >= start.0) {
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
                open: row.flags & OPEN != 0,
                created: row.created,
            });
        }
    }
    Ok(nodes)
}

/// Whether a thread that is shown has a node on its way or as its own: nodes of deleted threads
/// live on in others.
pub(super) fn is_reached(conn: &Connection, caches: &Caches, node: &NodeRow) -> Done<bool> {
    let own: Arc<Line> = line(conn, caches, node.tl)?;
    let stage: Option<i64> = one(
        conn,
        "SELECT stage FROM thread WHERE thread=?",
        [own.thread],
        |row| row.get(0),
    )?;
    if stage == Some(0) {
        return Ok(true);
    }
    // Sweeping keeps exactly what somebody reaches.
    let sql = "SELECT 1 FROM timeline l CROSS JOIN thread t ON t.thread=l.thread WHERE l.parent_tl=?1 AND l.fork>=?2 AND t.stage IN (0, 3)
      UNION ALL SELECT 1 FROM thread h CROSS JOIN node n ON n.tl=h.head_tl AND n.first=h.head_first
      WHERE h.head_tl=?1 AND h.borrowed=1 AND h.stage=0 AND n.last>=?2 LIMIT 1";
    Ok(one(conn, sql, (node.tl, int(node.last)), |_| Ok(()))?.is_some())
}

/// Runs whose owners are gone.
pub(super) fn orphans(conn: &Connection, now: Millis, limit: usize) -> Done<Vec<Orphan>> {
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
        let tenant = Tenant::new(&tenant)
            .map_err(|error| super::fault::corrupt("a tenant", error.to_string()))?;
        orphans.push(Orphan {
            // Whoever looks after the store looks after all tenants.
            scope: Authority::assume().scope(tenant),
            run,
            epoch,
            attempt,
        });
    }
    Ok(orphans)
}
