//! Listing runs.

use std::sync::LazyLock;

use rusqlite::Connection;

use crate::engines::sqlite::events::EventEnds;
use crate::engines::sqlite::op_error::OpResult;
use crate::engines::sqlite::ops::lists::SCAN_LIMIT;
use crate::engines::sqlite::ops::read::Reading;
use crate::engines::sqlite::rows::find::{run_by_row, thread_by_id};
use crate::engines::sqlite::rows::sql::{one, prepare};
use crate::engines::sqlite::rows::{RUN, RUN_TABLES, RunRow, SHOWN, flag};
use crate::{Listing, PageToken, Result, Run, RunFilter, RunId};

/// Runs, newest first.
pub(crate) fn runs(
    reading: &Reading<'_>,
    filter: &RunFilter,
    after: Option<PageToken>,
    limit: usize,
) -> OpResult<Listing<Run>> {
    let empty = Listing {
        found: Vec::new(),
        next: None,
    };
    let Some(tenant) = reading.tenant else {
        return Ok(empty);
    };
    let Some(id) = &filter.thread else {
        return runs_of_tenant(reading, tenant, filter, after, limit);
    };
    let Some(thread) = thread_by_id(reading.conn, tenant, id, SHOWN)? else {
        return Ok(empty);
    };
    let before = after.map_or(i64::MAX, |token| token.row);
    let mut rows = OfThread::new(reading.conn, thread.row, before)?;
    let mut ends = EventEnds::default();
    let mut found = Vec::new();
    let mut last = None;
    let mut scanned = 0;
    let next = loop {
        let Some(row) = rows.next(reading.conn)? else {
            break None;
        };
        if found.len() == limit || scanned == SCAN_LIMIT {
            break last;
        }
        scanned += 1;
        last = Some(PageToken { key: 0, row });
        if let Some(mut run) = run_by_row(reading.conn, row)?
            && let Some(run) = wanted(reading, &mut run, filter, &mut ends)?
        {
            found.push(run);
        }
    };
    Ok(Listing { found, next })
}

/// A run if it is one of those asked for.
fn wanted(
    reading: &Reading<'_>,
    run: &mut RunRow,
    filter: &RunFilter,
    ends: &mut EventEnds,
) -> OpResult<Option<Run>> {
    let state = run.seen(reading.now);
    let fits = filter.states.is_empty() || filter.states.contains(&state);
    if !fits || run.has(flag::HIDDEN) {
        return Ok(None);
    }
    ends.set_next_event(reading.conn, run)?;
    run.run(reading.now).map(Some)
}

/// Runs of a tenant by their ids, which are ordered by time.
fn runs_of_tenant(
    reading: &Reading<'_>,
    tenant: i64,
    filter: &RunFilter,
    after: Option<PageToken>,
    limit: usize,
) -> OpResult<Listing<Run>> {
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
    let mut ends = EventEnds::default();
    let mut found = Vec::new();
    let mut last = None;
    let mut scanned = 0;
    while let Some(row) = rows.next()? {
        if found.len() == limit || scanned == SCAN_LIMIT {
            return Ok(Listing { found, next: last });
        }
        scanned += 1;
        let mut run = RunRow::read(row)?;
        last = Some(token_of(run.id));
        if let Some(run) = wanted(reading, &mut run, filter, &mut ends)? {
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
    fn new(conn: &Connection, thread: i64, before: i64) -> OpResult<Self> {
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
    fn push(&mut self, conn: &Connection, mut source: Source) -> OpResult<()> {
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

    fn next(&mut self, conn: &Connection) -> OpResult<Option<i64>> {
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
fn end_of(conn: &Connection, tl: i64, before: i64) -> OpResult<i64> {
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
