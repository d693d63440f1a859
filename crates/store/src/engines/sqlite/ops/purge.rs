//! Sweeping up what was deleted.
//!
//! A deleted thread keeps what others reach: of each of its timelines the nodes up to the last
//! place where a timeline of another hangs on it or a fork stands. When those are gone, it is
//! looked at again.

use crate::engines::sqlite::events;
use crate::engines::sqlite::ops::fingerprints;
use crate::engines::sqlite::ops::threads;
use std::collections::HashSet;

use rusqlite::Connection;

use crate::Purged;
use crate::engines::sqlite::op_error::OpResult;
use crate::engines::sqlite::rows::sql::{one, prepare, run_sql};
use crate::engines::sqlite::rows::{int, num};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::trials;

/// How long an import may take.
const IMPORT: u64 = 24 * 3600 * 1000;

/// The state of a run of which nothing is left but items that others say again.
const ITEMS_ONLY: i64 = 10;

/// What may still be done, and what was.
struct Sweep {
    left: u64,
    purged: Purged,
    /// Runs that are gone; the event log may have something of them.
    runs: HashSet<i64>,
}

impl Sweep {
    fn is_over(&self) -> bool {
        self.left == 0
    }

    fn spend(&mut self, rows: u64) {
        self.left = self.left.saturating_sub(rows);
    }
}

/// Sweep up, looking at no more than about so many rows.
pub(crate) fn purge(tx: &mut Tx<'_>, limit: usize) -> OpResult<Purged> {
    let mut sweep = Sweep {
        left: limit as u64,
        purged: Purged::default(),
        runs: HashSet::new(),
    };
    let now = int(tx.now);
    // A run with a living owner or waiter keeps its thread. One whose owner is gone does not: a
    // process that died must not turn an hour into for ever.
    let old = "SELECT t.thread FROM thread t WHERE t.keep IS NOT NULL AND t.stage=0 AND t.touched + t.keep <= ?1
      AND NOT EXISTS(SELECT 1 FROM run r WHERE r.thread=t.thread AND r.live IS NOT NULL AND (r.state=2 OR r.state=1
        AND EXISTS(SELECT 1 FROM owner o WHERE o.owner=r.owner AND o.until>?1))) LIMIT ?2";
    // The index of the stages leaves out what is shown; a statement must say so too.
    let late = "SELECT thread FROM thread WHERE stage=1 AND stage<>0 AND since <= ?1 LIMIT ?2";
    let day = int(tx.now.saturating_sub(IMPORT));
    for (sql, time) in [(old, now), (late, day)] {
        for thread in rows(tx.conn, sql, time, sweep.left)? {
            threads::mark_deleted(tx, thread)?;
            sweep.spend(1);
        }
    }
    let deleted = "SELECT thread FROM thread WHERE stage=2 AND stage<>0 AND since <= ?1 ORDER BY since LIMIT ?2";
    while !sweep.is_over() {
        let threads = rows(tx.conn, deleted, i64::MAX, sweep.left.min(64))?;
        if threads.is_empty() {
            break;
        }
        for thread in threads {
            if sweep.is_over() {
                break;
            }
            sweep_thread(tx, thread, &mut sweep)?;
        }
    }
    events::erase(tx, &sweep.runs)?;
    events::sweep(tx, None)?;
    let sql = "DELETE FROM waiter WHERE NOT EXISTS(SELECT 1 FROM owner o WHERE o.owner=waiter.owner AND o.until>?)";
    run_sql(tx.conn, sql, [now])?;
    let sql = "DELETE FROM owner WHERE until<?1 AND owner<>?2 AND owner NOT IN
      (SELECT owner FROM run INDEXED BY run_live WHERE live IS NOT NULL AND owner IS NOT NULL)";
    run_sql(tx.conn, sql, (day, tx.owner))?;
    let more = !rows(tx.conn, deleted, i64::MAX, 1)?.is_empty()
        || !rows(tx.conn, old, now, 1)?.is_empty()
        || !rows(tx.conn, late, day, 1)?.is_empty();
    sweep.purged.more = more;
    // A run without items may have had a request or a remote call.
    if sweep.purged.items > 0 || !sweep.runs.is_empty() {
        tx.after_commit(CacheUpdate::Erased);
    }
    Ok(sweep.purged)
}

/// Sweep up all of one thread that nothing else references.
pub(crate) fn sweep_at_once(tx: &mut Tx<'_>, thread: i64) -> OpResult<()> {
    let mut sweep = Sweep {
        left: u64::MAX,
        purged: Purged::default(),
        runs: HashSet::new(),
    };
    sweep_thread(tx, thread, &mut sweep)?;
    events::erase(tx, &sweep.runs)?;
    tx.after_commit(CacheUpdate::Erased);
    Ok(())
}

fn rows(conn: &Connection, sql: &str, time: i64, limit: u64) -> OpResult<Vec<i64>> {
    let mut statement = prepare(conn, sql)?;
    let rows = statement.query_map((time, int(limit)), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn numbers(conn: &Connection, sql: &str, of: i64) -> OpResult<Vec<i64>> {
    let mut statement = prepare(conn, sql)?;
    let rows = statement.query_map([of], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn sweep_thread(tx: &Tx<'_>, thread: i64, sweep: &mut Sweep) -> OpResult<()> {
    let conn = tx.conn;
    let stray =
        "SELECT run FROM run WHERE thread=? AND live IS NULL AND pub_tl IS NULL AND state<>10";
    for run in numbers(conn, stray, thread)? {
        if sweep.is_over() {
            return Ok(());
        }
        drop_run(conn, run, sweep)?;
    }
    let mut kept = false;
    // A timeline has a higher number than the one it hangs on: children first.
    for tl in numbers(
        conn,
        "SELECT tl FROM timeline WHERE thread=? ORDER BY tl DESC",
        thread,
    )? {
        if sweep.is_over() {
            return Ok(());
        }
        match sweep_timeline(conn, tl, sweep)? {
            Swept::All => {}
            Swept::Shared => kept = true,
            Swept::Unfinished => return Ok(()),
        }
    }
    if kept {
        run_sql(conn, "UPDATE thread SET stage=3 WHERE thread=?", [thread])?;
    } else {
        run_sql(conn, "DELETE FROM thread WHERE thread=?", [thread])?;
        sweep.purged.threads += 1;
        sweep.spend(1);
    }
    Ok(())
}

/// The last position of a timeline that others reach.
fn reached(conn: &Connection, tl: i64) -> OpResult<i64> {
    let sql = "SELECT max(coalesce((SELECT max(fork) FROM timeline WHERE parent_tl=?1), 0),
      coalesce((SELECT max(n.last) FROM thread h CROSS JOIN node n ON n.tl=h.head_tl AND n.first=h.head_first
        WHERE h.head_tl=?1 AND h.borrowed=1 AND h.stage IN (0, 1)), 0))";
    let last: Option<i64> = one(conn, sql, [tl], |row| row.get(0))?;
    let kept = last.filter(|_| trials::unless("purge-shared", true));
    Ok(kept.unwrap_or(0))
}

/// What is left of a timeline.
enum Swept {
    /// Nothing.
    All,
    /// What others reach.
    Shared,
    /// Perhaps more than that.
    Unfinished,
}

/// Remove the nodes of a timeline that nothing references.
fn sweep_timeline(conn: &Connection, tl: i64, sweep: &mut Sweep) -> OpResult<Swept> {
    let last = reached(conn, tl)?;
    loop {
        if sweep.is_over() {
            return Ok(Swept::Unfinished);
        }
        let sql = "SELECT node, run, step, item_lo, item_lo+last-first FROM node WHERE tl=? AND first>? ORDER BY first DESC LIMIT 1";
        let found = one(conn, sql, (tl, last), |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, u32>(2)?,
                row.get::<_, u32>(3)?,
                row.get::<_, u32>(4)?,
            ))
        })?;
        let Some((node, run, step, lo, hi)) = found else {
            break;
        };
        run_sql(conn, "DELETE FROM node WHERE node=?", [node])?;
        run_sql(
            conn,
            "DELETE FROM state WHERE run=? AND step=?",
            (run, step),
        )?;
        sweep.spend(1);
        // The first node of a run goes last, and the rest of the run with it.
        if lo == 1 {
            drop_run(conn, run, sweep)?;
        } else {
            drop_items(conn, run, lo, hi, sweep)?;
        }
    }
    if last > 0 {
        return Ok(Swept::Shared);
    }
    let sql = "UPDATE thread SET stage=2 WHERE stage=3 AND thread=
      (SELECT p.thread FROM timeline l CROSS JOIN timeline p ON p.tl=l.parent_tl WHERE l.tl=?)";
    run_sql(conn, sql, [tl])?;
    let given = "UPDATE given SET last=?1 WHERE name='timeline' AND last<?1";
    run_sql(conn, given, [tl])?;
    run_sql(conn, "DELETE FROM timeline WHERE tl=?", [tl])?;
    sweep.spend(1);
    Ok(Swept::All)
}

/// Remove items of a run, except those that others say again.
fn drop_items(conn: &Connection, run: i64, lo: u32, hi: u32, sweep: &mut Sweep) -> OpResult<()> {
    let sql = "SELECT DISTINCT o.run FROM item i CROSS JOIN item o ON o.item=i.again CROSS JOIN run r ON r.run=o.run
         WHERE i.run=? AND i.no BETWEEN ? AND ? AND r.state=10 AND r.run<>i.run";
    let mut statement = prepare(conn, sql)?;
    let emptied = statement.query_map((run, lo, hi), |row| row.get(0))?;
    let emptied: Vec<i64> = emptied.collect::<Result<_, _>>()?;
    let again = "DELETE FROM item WHERE run=? AND no BETWEEN ? AND ? AND again IS NOT NULL";
    let said = "DELETE FROM item WHERE run=? AND no BETWEEN ? AND ? AND NOT EXISTS(SELECT 1 FROM item a WHERE a.again=item.item)";
    let mut gone = run_sql(conn, again, (run, lo, hi))? + run_sql(conn, said, (run, lo, hi))?;
    for emptied in emptied {
        let sql = "DELETE FROM item WHERE run=? AND NOT EXISTS(SELECT 1 FROM item a WHERE a.again=item.item)";
        gone += run_sql(conn, sql, [emptied])?;
        drop_redactions(conn, emptied)?;
        drop_if_empty(conn, emptied)?;
    }
    drop_redactions(conn, run)?;
    fingerprints::remove(conn, run, (lo, hi))?;
    sweep.purged.items += gone as u64;
    sweep.spend(gone as u64);
    Ok(())
}

fn drop_redactions(conn: &Connection, run: i64) -> OpResult<()> {
    let sql = "DELETE FROM redaction WHERE run=?1 AND no NOT IN (SELECT no FROM item WHERE run=?1)";
    run_sql(conn, sql, [run])?;
    Ok(())
}

/// Remove a run of which no item is left.
fn drop_if_empty(conn: &Connection, run: i64) -> OpResult<bool> {
    let sql = "DELETE FROM run WHERE run=?1 AND NOT EXISTS(SELECT 1 FROM item WHERE item.run=?1)";
    Ok(run_sql(conn, sql, [run])? == 1)
}

/// Remove a run with all that is journaled of it.
fn drop_run(conn: &Connection, run: i64, sweep: &mut Sweep) -> OpResult<()> {
    drop_items(conn, run, 1, u32::MAX, sweep)?;
    sweep.runs.insert(run);
    let mut gone = 0;
    for sql in [
        "DELETE FROM step WHERE run=?",
        "DELETE FROM call WHERE run=?",
        "DELETE FROM remote_call WHERE run=?",
        "DELETE FROM run_event WHERE run=?",
        "DELETE FROM state WHERE run=?",
        "DELETE FROM approval WHERE run=?",
    ] {
        gone += run_sql(conn, sql, [run])?;
    }
    let sql = "SELECT request FROM run WHERE run=?";
    let request: Option<i64> = one(conn, sql, [run], |row| row.get(0))?.flatten();
    if !drop_if_empty(conn, run)? {
        let sql = "UPDATE run SET state=?2, idem=NULL, idem_digest=NULL, request=NULL, note=NULL, pub_tl=NULL, pub_first=NULL, flags=flags & 255 WHERE run=?1";
        run_sql(conn, sql, (run, ITEMS_ONLY))?;
    }
    if let Some(request) = request {
        let sql = "DELETE FROM request WHERE request=?1 AND NOT EXISTS(SELECT 1 FROM run WHERE run.request=?1)";
        gone += run_sql(conn, sql, [request])?;
    }
    sweep.spend(num(int(gone as u64)) + 1);
    Ok(())
}
